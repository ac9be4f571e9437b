import { etc, getPublicKey, hashes, Point, sign } from '@noble/ed25519';
import { sha256, sha512 } from '@noble/hashes/sha2.js';
import { encodeBase64url } from './base64url.ts';
import type { Crypto, PublicKey, SigningKey } from './crypto.ts';
import { checkPublicKey, KeyFault } from './keys.ts';

// Without it the library can only hash asynchronously, through WebCrypto.
hashes.sha512 = sha512;

/** Cryptography for any runtime (browsers, workers): plain TypeScript, no WebCrypto, synchronous. */
export const portableCrypto: Crypto = {
  sha256: (data) => sha256(data),
  sha256Text: (data) => encodeBase64url(sha256(data)),
  publicKey(bytes): PublicKey {
    checkPublicKey(bytes);
    const own = bytes.slice();
    const point = Point.fromBytes(own, false);
    return { bytes: own, verify: (message, signature) => verifyStrictly(point, own, message, signature) };
  },
  signingKey(seed): SigningKey {
    if (seed.length !== 32) throw new KeyFault('length', `an Ed25519 key has 32 bytes, this one has ${seed.length}`);
    const own = seed.slice();
    return { publicBytes: getPublicKey(own), sign: (message) => sign(message, own) };
  },
};

/**
 * RFC 8032 section 5.1.7 with the equation as OpenSSL checks it: R is recomputed as [S]B - [k]A and compared as bytes.
 * The library's own `verify` multiplies by the cofactor and so accepts signatures that OpenSSL refuses: what one side
 * takes for a valid history the other must not refuse.
 */
function verifyStrictly(key: Point, keyBytes: Uint8Array, message: Uint8Array, signature: Uint8Array): boolean {
  if (signature.length !== 64) return false;
  const r = signature.subarray(0, 32);
  const s = littleEndian(signature.subarray(32));
  const order = Point.CURVE().n;
  if (s >= order) return false;
  const k = etc.mod(littleEndian(sha512(etc.concatBytes(r, keyBytes, message))), order);
  const expected = Point.BASE.multiply(s, false).subtract(key.multiply(k, false)).toBytes();
  return expected.every((byte, i) => byte === r[i]);
}

function littleEndian(bytes: Uint8Array): bigint {
  return BigInt(`0x${etc.bytesToHex(Uint8Array.from(bytes).reverse())}`);
}
