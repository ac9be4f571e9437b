import {
  createCipheriv,
  createDecipheriv,
  createSecretKey,
  hkdfSync,
  type KeyObject,
  randomBytes,
  randomFillSync,
} from 'node:crypto';
import { StoreFault, StoreSetupError } from './port.ts';

const CIPHER = 'aes-256-gcm';
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const FORMAT = 1;
const HEAD_BYTES = 1 + NONCE_BYTES + TAG_BYTES;

/** Seals values at rest, each bound to the place that it stands in so that none can be moved to another row. */
export interface Sealer {
  /** Format byte, nonce, tag, ciphertext. */
  seal(column: string, key: string, plain: Uint8Array): Buffer;
  /** Throws `StoreFault` where the value was not sealed by this key for this place. */
  open(column: string, key: string, sealed: Uint8Array): Buffer;
}

/**
 * A sealer of AES-256-GCM (NIST SP 800-38D) under a key of this store's own, derived (RFC 5869) from the configured one
 * and the store's salt: random nonces are then used up per store, not over all stores that share the configured key.
 *
 * @param key 32 bytes; anything else is a `StoreSetupError`.
 */
function makeSealer(key: Uint8Array, salt: Uint8Array): Sealer {
  if (key.byteLength !== 32) {
    throw new StoreSetupError(
      `store.encryption_key must be 32 bytes, got ${key.byteLength}; make one with \`openssl rand -base64 32\``,
    );
  }
  const derived: KeyObject = createSecretKey(new Uint8Array(hkdfSync('sha256', key, salt, 'toolgate store/1', 32)));
  // One call to the random source per 128 nonces: a call costs as much as sealing a short value does.
  const pool = Buffer.alloc(NONCE_BYTES * 128);
  let used = pool.length;
  return {
    seal(column, rowKey, plain) {
      if (used === pool.length) {
        randomFillSync(pool);
        used = 0;
      }
      const nonce = pool.subarray(used, used + NONCE_BYTES);
      used += NONCE_BYTES;
      const cipher = createCipheriv(CIPHER, derived, nonce, { authTagLength: TAG_BYTES });
      cipher.setAAD(Buffer.from(`${column}\0${rowKey}`));
      const body = cipher.update(plain);
      cipher.final();
      const out = Buffer.allocUnsafeSlow(HEAD_BYTES + body.length);
      out[0] = FORMAT;
      out.set(nonce, 1);
      out.set(cipher.getAuthTag(), 1 + NONCE_BYTES);
      out.set(body, HEAD_BYTES);
      return out;
    },
    open(column, rowKey, sealed) {
      try {
        if (sealed.byteLength < HEAD_BYTES || sealed[0] !== FORMAT) throw new Error('not a sealed value');
        const nonce = sealed.subarray(1, 1 + NONCE_BYTES);
        const decipher = createDecipheriv(CIPHER, derived, nonce, { authTagLength: TAG_BYTES });
        decipher.setAAD(Buffer.from(`${column}\0${rowKey}`));
        decipher.setAuthTag(sealed.subarray(1 + NONCE_BYTES, HEAD_BYTES));
        const plain = decipher.update(sealed.subarray(HEAD_BYTES));
        return Buffer.concat([plain, decipher.final()]);
      } catch (cause) {
        throw new StoreFault(
          `a sealed value of ${column} cannot be opened: it was altered, or sealed with another key`,
          { cause },
        );
      }
    },
  };
}

const SECRET_BYTES = 32;
const SECRET_COLUMN = 'meta.secret';

export interface OpenSecret {
  readonly secret: Uint8Array;
  /** Absent where the store is not encrypted. */
  readonly sealer: Sealer | undefined;
}

/** What a new store is given: a salt, and a secret, which is sealed where there is a key. */
export function makeSecret(key: Uint8Array | undefined): { salt: Uint8Array; secret: Uint8Array } {
  const salt = randomBytes(SECRET_BYTES);
  const secret = randomBytes(SECRET_BYTES);
  return { salt, secret: key === undefined ? secret : makeSealer(key, salt).seal(SECRET_COLUMN, '', secret) };
}

/**
 * Opens the secret that a store was made with, which also proves that the key is the store's.
 *
 * @param store how messages name the store.
 * @throws StoreSetupError where the store was made with another key, or with one where none is given, or the reverse.
 */
export function openSecret(
  store: string,
  key: Uint8Array | undefined,
  salt: Uint8Array | undefined,
  stored: Uint8Array | undefined,
): OpenSecret {
  if (salt === undefined || stored === undefined) {
    throw new StoreSetupError(`${store} has lost its secret; restore it from a backup`);
  }
  const encrypted = stored.byteLength !== SECRET_BYTES;
  if (key === undefined) {
    if (!encrypted) return { secret: new Uint8Array(stored), sealer: undefined };
    throw new StoreSetupError(
      `${store} is encrypted and \`store.encryption_key\` is not set; set the key that it was made with`,
    );
  }
  if (!encrypted) {
    throw new StoreSetupError(
      `${store} was made without encryption; unset \`store.encryption_key\`, or begin a new store with it`,
    );
  }
  const sealer = makeSealer(key, salt);
  try {
    return { secret: new Uint8Array(sealer.open(SECRET_COLUMN, '', stored)), sealer };
  } catch (cause) {
    throw new StoreSetupError(`\`store.encryption_key\` is not the key that ${store} was made with`, { cause });
  }
}
