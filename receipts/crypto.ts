/**
 * What this room needs of a cryptography library, as a port: `crypto-node.ts` is the fast one of a server,
 * `crypto-portable.ts` the one that runs anywhere. Both are synchronous and agree on every input.
 */
export interface Crypto {
  /** Bytes in, their 32-byte SHA-256 (FIPS 180-4) out. */
  sha256(data: Uint8Array): Uint8Array;
  /** The same in base64url without padding. */
  sha256Text(data: Uint8Array): string;
  /** A 32-byte Ed25519 public key in, the key ready to verify out. Throws `KeyFault` for a key that must not be trusted. */
  publicKey(bytes: Uint8Array): PublicKey;
  /** A 32-byte Ed25519 private key (the seed of RFC 8032 section 5.1.5) in, the key ready to sign out. Throws `KeyFault`. */
  signingKey(seed: Uint8Array): SigningKey;
}

/** An Ed25519 public key, checked and parsed once. */
export interface PublicKey {
  /** The 32 bytes of the key. */
  readonly bytes: Uint8Array;
  /**
   * Whether the 64 bytes are this key's signature on the message: RFC 8032 section 5.1.7, S in range, the equation
   * without the cofactor. False for anything else; never throws.
   */
  verify(message: Uint8Array, signature: Uint8Array): boolean;
}

/** An Ed25519 private key, parsed once. */
export interface SigningKey {
  /** The 32 bytes of the public key that belongs to it. */
  readonly publicBytes: Uint8Array;
  /** A message in, its 64-byte signature out (RFC 8032 section 5.1.6). */
  sign(message: Uint8Array): Uint8Array;
}
