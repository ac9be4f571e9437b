import { createHash, randomBytes } from 'node:crypto';

/** A new API key and what the configuration holds of it. */
export interface NewCredential {
  /** `tg_` and 43 characters (32 random bytes in base64url). Shown once, kept nowhere. */
  readonly key: string;
  /** `sha256:<hex>` of the key, for `credentials`. */
  readonly digest: string;
}

/** Makes an API key. Its prefix lets secret scanners find one that was committed by mistake. */
export function newCredential(): NewCredential {
  const key = `tg_${randomBytes(32).toString('base64url')}`;
  return { key, digest: credentialDigest(key) };
}

/**
 * `sha256:<hex>` of a key as a caller sends it. One fast hash is enough: keys are made by `newCredential` with 256 random
 * bits, which nobody finds by trying.
 */
export function credentialDigest(key: string): string {
  return `sha256:${createHash('sha256').update(key, 'utf8').digest('hex')}`;
}
