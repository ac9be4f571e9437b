import { BlockList, isIP } from 'node:net';

/**
 * Addresses and networks (`10.0.0.0/8`, `fd00::/8`) of the operator's `trusted_proxies` in, whether a peer is one of them
 * out. Throws a TypeError that names an entry which is neither.
 */
export function createTrustedProxies(entries: readonly string[]): (address: string) => boolean {
  const list = new BlockList();
  for (const entry of entries) {
    const slash = entry.indexOf('/');
    const address = slash === -1 ? entry : entry.slice(0, slash);
    const version = isIP(address);
    const bits = slash === -1 ? (version === 4 ? 32 : 128) : Number(entry.slice(slash + 1));
    const isWhole = slash === -1 || /^\d{1,3}$/.test(entry.slice(slash + 1));
    if (version === 0 || !isWhole || bits > (version === 4 ? 32 : 128)) {
      throw new TypeError(`\`${entry}\` is no address or network; write \`10.0.0.7\` or \`10.0.0.0/8\``);
    }
    list.addSubnet(address, bits, version === 4 ? 'ipv4' : 'ipv6');
  }
  return (address) => {
    const version = isIP(address);
    return version !== 0 && list.check(address, version === 4 ? 'ipv4' : 'ipv6');
  };
}
