import { randomBytes } from 'node:crypto';
import { link, mkdir, open, readFile, unlink } from 'node:fs/promises';
import { dirname } from 'node:path';
import { encodeBase64url } from '../../receipts/base64url.ts';
import type { Crypto, SigningKey } from '../../receipts/crypto.ts';
import { parseSigningKey, renderSigningKeyPem } from '../../receipts/keys.ts';

/** The gateway's signing key, and whether it was made just now. */
interface OwnKey {
  readonly key: SigningKey;
  readonly made: boolean;
}

/**
 * Reads the signing key, a PKCS#8 PEM file, or makes it with mode 0600 where there is none. Throws `KeyFault` for a file
 * that is no such key, and the system's error where it cannot be read or made.
 */
export async function readOrMakeSigningKey(crypto: Crypto, file: string): Promise<OwnKey> {
  try {
    return { key: crypto.signingKey(parseSigningKey(await readFile(file, 'utf8'))), made: false };
  } catch (error) {
    if (!isMissing(error)) throw error;
  }
  const seed = randomBytes(32);
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  // Written aside and then given its name: of two processes that start at once the second reads what the first wrote,
  // and never the beginning of it.
  const aside = `${file}.${encodeBase64url(randomBytes(8))}`;
  const handle = await open(aside, 'wx', 0o600);
  try {
    await handle.writeFile(renderSigningKeyPem(seed));
    await handle.sync();
  } finally {
    await handle.close();
  }
  try {
    await link(aside, file);
  } catch (error) {
    if (!isExisting(error)) throw error;
    return { key: crypto.signingKey(parseSigningKey(await readFile(file, 'utf8'))), made: false };
  } finally {
    await unlink(aside);
  }
  return { key: crypto.signingKey(seed), made: true };
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ENOENT';
}

function isExisting(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'EEXIST';
}
