import { createPrivateKey, createPublicKey, hash, type KeyObject, sign, verify } from 'node:crypto';
import type { Crypto, PublicKey, SigningKey } from './crypto.ts';
import { checkPublicKey, renderPublicKeyPem, renderSigningKeyPem } from './keys.ts';

/**
 * The server's cryptography: `node:crypto` (OpenSSL), 16 times as fast as the portable one. Keys are parsed here, once:
 * a PEM text parsed at every call would cost several times the verification itself.
 */
export const nodeCrypto: Crypto = {
  sha256: (data) => hash('sha256', data, 'buffer'),
  sha256Text: (data) => hash('sha256', data, 'base64url'),
  publicKey(bytes): PublicKey {
    checkPublicKey(bytes);
    const key = createPublicKey(renderPublicKeyPem(bytes));
    return {
      bytes: bytes.slice(),
      verify: (message, signature) => signature.length === 64 && verify(null, message, key, signature),
    };
  },
  signingKey(seed): SigningKey {
    const key = createPrivateKey(renderSigningKeyPem(seed));
    return { publicBytes: rawPublicKey(key), sign: (message) => sign(null, message, key) };
  },
};

/** The 32 bytes of the public half: the last of its SPKI encoding (RFC 8410 section 4). */
function rawPublicKey(key: KeyObject): Uint8Array {
  return new Uint8Array(createPublicKey(key).export({ format: 'der', type: 'spki' }).subarray(-32));
}
