import { isIP } from 'node:net';
import type { Config, Listen, StoreConfig } from './config.ts';
import type { RawConfig } from './raw.ts';
import type { Reading } from './reading.ts';

/** The address to listen on. */
export function readListen(raw: RawConfig, reading: Reading): Listen {
  const given = raw.listen ?? {};
  if (typeof given === 'string') {
    const colon = given.lastIndexOf(':');
    const host = given.slice(0, colon).replace(/^\[|\]$/g, '');
    const port = Number(given.slice(colon + 1));
    if (port > 65_535) reading.log.error('wrong_value', ['listen'], `there is no port ${port}; the last is 65535`);
    return { host, port, loopback: isLoopback(host) };
  }
  const host = given.host ?? '127.0.0.1';
  const base = { host, port: given.port ?? 8080, loopback: isLoopback(host) };
  if (given.tls === undefined) return base;
  const tls = given.tls;
  // Read once, so that a missing file is told before the gateway listens.
  for (const word of ['cert', 'key', 'client_ca'] as const) {
    const name = tls[word];
    if (name !== undefined) reading.text(name, ['listen', 'tls', word]);
  }
  return {
    ...base,
    tls: {
      certFile: reading.file(tls.cert),
      keyFile: reading.file(tls.key),
      ...(tls.client_ca === undefined ? {} : { clientCaFile: reading.file(tls.client_ca) }),
    },
  };
}

/** Whether a host is this machine's own by its text alone: a name that merely resolves there today does not count. */
function isLoopback(host: string): boolean {
  if (host === 'localhost' || host === '::1') return true;
  return isIP(host) === 4 && host.startsWith('127.');
}

/** The store: PostgreSQL by its scheme, anything else is a SQLite file. */
export function readStore(raw: RawConfig, reading: Reading): StoreConfig {
  const given = typeof raw.store === 'string' ? { url: raw.store } : (raw.store ?? {});
  const path = typeof raw.store === 'string' ? ['store'] : ['store', 'url'];
  const url = reading.secret(given.url ?? './data/toolgate.db', path);
  const text = url.reveal();
  const scheme = /^([a-z][a-z0-9+.-]+):\/\//i.exec(text)?.[1]?.toLowerCase();
  const postgres = scheme === 'postgres' || scheme === 'postgresql';
  if (scheme !== undefined && !postgres) {
    reading.log.error('wrong_value', path, `there is no store \`${scheme}://\`; a file or \`postgres://\``);
  } else if (postgres && !URL.canParse(text)) {
    reading.log.error(
      'wrong_value',
      path,
      'the `postgres://` address cannot be read; special characters in it are percent-encoded',
    );
  }
  const encryptionKey =
    given.encryption_key === undefined ? undefined : readEncryptionKey(given.encryption_key, reading);
  return {
    target: postgres ? { kind: 'postgres', url } : { kind: 'sqlite', file: reading.output(text) },
    unavailable: given.unavailable ?? 'refuse',
    maxAnswerBytes: reading.sizeBytes(given.max_answer, '1MiB'),
    ...(encryptionKey === undefined ? {} : { encryptionKey }),
  };
}

function readEncryptionKey(given: string, reading: Reading): Uint8Array | undefined {
  const path = ['store', 'encryption_key'];
  const text = reading.secret(given, path).reveal();
  // Only a file that is not there or is empty gives nothing, and that is told already.
  if (text === '') return undefined;
  const bytes = /^[0-9a-fA-F]{64}$/.test(text)
    ? Buffer.from(text, 'hex')
    : /^[A-Za-z0-9_-]{43}=?$/.test(text)
      ? Buffer.from(text, 'base64url')
      : undefined;
  if (bytes?.length === 32) return new Uint8Array(bytes);
  reading.log.error(
    'bad_key',
    path,
    'the key must be 32 bytes in hexadecimal (64 digits) or base64url (43 characters)',
  );
  return undefined;
}

/** The IANA time zone, told where this Node does not know it. */
export function readTimezone(raw: RawConfig, reading: Reading): string {
  const timezone = raw.timezone ?? 'UTC';
  // Known to every Node; asking it would read its table of zones at each start.
  if (timezone === 'UTC') return timezone;
  try {
    new Intl.DateTimeFormat('en', { timeZone: timezone });
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    reading.log.error(
      'wrong_value',
      ['timezone'],
      `there is no time zone \`${timezone}\`; write one of the IANA list, such as \`Europe/Lisbon\``,
    );
  }
  return timezone;
}

/** Proxies in front, each an address or a CIDR block. */
export function readTrustedProxies(raw: RawConfig, reading: Reading): readonly string[] {
  const proxies = raw.trusted_proxies ?? [];
  for (const [index, proxy] of proxies.entries()) {
    const [address, prefix, ...more] = proxy.split('/');
    const family = isIP(address ?? '');
    const bits = prefix === undefined ? 0 : /^[0-9]{1,3}$/.test(prefix) ? Number(prefix) : Number.NaN;
    if (family === 0 || more.length > 0 || !(bits <= (family === 4 ? 32 : 128))) {
      reading.log.error(
        'wrong_value',
        ['trusted_proxies', index],
        `\`${proxy}\` is no address and no CIDR block such as \`10.0.0.0/8\``,
      );
    }
  }
  return proxies;
}

/** How many processes serve, told where they could not share what one has for itself. */
export function readWorkers(raw: RawConfig, { target }: StoreConfig, reading: Reading): number {
  const workers = raw.workers ?? 1;
  if (workers === 1) return workers;
  if (target.kind === 'sqlite') {
    reading.log.error(
      'workers_share',
      ['workers'],
      'a SQLite store belongs to one process: keep the store in PostgreSQL (`store: postgres://...`), or take `workers` out',
    );
  }
  if (raw.audit?.file === 'stdout') {
    reading.log.error(
      'workers_share',
      ['workers'],
      'each worker writes a chain of its own, and standard output takes one: name a file in `audit.file`, or take `workers` out',
    );
  }
  return workers;
}

/** The licence, its file read once so that a missing one is told. */
export function readLicence(raw: RawConfig, reading: Reading): Pick<Config, 'licence'> {
  if (raw.licence === undefined) return {};
  const given = typeof raw.licence === 'string' ? { file: raw.licence } : raw.licence;
  const path = typeof raw.licence === 'string' ? ['licence'] : ['licence', 'file'];
  reading.text(given.file, path);
  const publicKey =
    given.public_key === undefined ? undefined : reading.publicKey(given.public_key, ['licence', 'public_key']);
  return {
    licence: {
      file: reading.file(given.file),
      lapsed: given.lapsed ?? 'writes',
      ...(publicKey === undefined ? {} : { publicKey }),
    },
  };
}

/** Where the rulebook is, absolute; each file or folder must be there. */
export function readRulebook(raw: RawConfig, reading: Reading): readonly string[] {
  const paths = raw.rulebook === undefined ? [] : [raw.rulebook].flat();
  return paths.map((path, index) => {
    const at = typeof raw.rulebook === 'string' ? ['rulebook'] : ['rulebook', index];
    reading.exists(path, at);
    return reading.file(path);
  });
}
