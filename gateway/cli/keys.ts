import { randomBytes } from 'node:crypto';
import { mkdirSync, readFileSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { encodeBase64url } from '../../receipts/base64url.ts';
import { nodeCrypto } from '../../receipts/crypto-node.ts';
import {
  KeyFault,
  parsePublicKey,
  parseSigningKey,
  renderPublicKeyPem,
  renderSigningKeyPem,
} from '../../receipts/keys.ts';
import { keyIdOf } from '../audit/chain-lines.ts';
import { systemCode } from '../audit/fault.ts';
import { CliFault } from './command.ts';
import { print, printJson } from './output.ts';

const NAME_MAX = 100;

/** Makes a pair of files and prints where they are. Throws `CliFault` where one is there already. */
export async function makeKeyPair(name: string, folder: string, json: boolean): Promise<void> {
  if (name === '' || name.length > NAME_MAX || name.startsWith('.') || name.includes('/') || name.includes('\\'))
    throw new CliFault(2, `\`${name}\` is no name for a pair of files; give one such as \`gateway\``);
  const seed = randomBytes(32);
  const { publicBytes } = nodeCrypto.signingKey(seed);
  const [signing, publicKey] = [join(folder, `${name}.pem`), join(folder, `${name}.pub`)];
  writeNew(folder, signing, renderSigningKeyPem(seed), 0o600);
  try {
    writeNew(folder, publicKey, renderPublicKeyPem(publicBytes), 0o644);
  } catch (error) {
    // Half of a pair is of no use, and would stand in the way of the next try.
    unlinkSync(signing);
    throw error;
  }
  const shown = { signing_key: signing, public_key: publicKey, ...described(publicBytes) };
  if (json) return printJson(shown);
  await print(
    `${signing}  the signing key; keep it secret\n${publicKey}  the public key: ${shown.base64url}\nkey id: ${shown.key_id}\n`,
  );
}

function writeNew(folder: string, path: string, text: string, mode: number): void {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    // `wx`: a key that is there already is never written over.
    writeFileSync(path, text, { mode, flag: 'wx' });
  } catch (error) {
    if (systemCode(error) === 'EEXIST')
      throw new CliFault(1, `\`${path}\` is there already; give another name, or move it away`);
    throw new CliFault(1, `cannot write \`${path}\`: ${systemCode(error)}`);
  }
}

/** Prints the public half of a key file. Throws `CliFault` where it is none. */
export async function showKey(file: string, json: boolean): Promise<void> {
  const bytes = readPublicBytes(file);
  const shown = described(bytes);
  if (json) return printJson({ ...shown, pem: renderPublicKeyPem(bytes) });
  await print(`key id:  ${shown.key_id}\nbase64url:  ${shown.base64url}\n${renderPublicKeyPem(bytes)}`);
}

function described(publicBytes: Uint8Array): { readonly key_id: string; readonly base64url: string } {
  return { key_id: keyIdOf(publicBytes), base64url: encodeBase64url(publicBytes) };
}

/** The 32 bytes of a key's public half: from a file of either half, or base64url text. Throws `CliFault`. */
export function readPublicBytes(fileOrText: string): Uint8Array {
  const text = readIfFile(fileOrText) ?? fileOrText;
  try {
    if (!text.includes('PRIVATE KEY')) return parsePublicKey(text);
    return nodeCrypto.signingKey(parseSigningKey(text)).publicBytes;
  } catch (error) {
    if (error instanceof KeyFault) throw new CliFault(2, `\`${fileOrText}\`: ${error.message}`);
    throw error;
  }
}

function readIfFile(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    const code = systemCode(error);
    // Then it may be the key itself.
    if (code === 'ENOENT' || code === 'ENAMETOOLONG') return undefined;
    throw new CliFault(2, `cannot read \`${path}\`: ${code}`);
  }
}
