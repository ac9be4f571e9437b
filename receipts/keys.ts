import { Point } from '@noble/ed25519';
import { decodeBase64url, encodeBase64url } from './base64url.ts';

/** Why a key cannot be used. `file` is for a text that is no key file, `length` and on for the key in it. */
export type KeyFaultCode = 'file' | 'length' | 'point' | 'small_order';

/** A key that is refused when it is loaded. The message says what is wrong with it and holds no part of it. */
export class KeyFault extends Error {
  readonly code: KeyFaultCode;

  constructor(code: KeyFaultCode, message: string) {
    super(message);
    this.name = 'KeyFault';
    this.code = code;
  }
}

// The whole DER of an Ed25519 key but for its 32 bytes (RFC 8410 sections 4 and 7): there is one such encoding, so a
// comparison of prefixes parses it.
const SPKI_PREFIX = Uint8Array.of(0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00);
const PKCS8_PREFIX = Uint8Array.of(0x30, 0x2e, 2, 1, 0, 0x30, 5, 0x06, 3, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20);

/**
 * Raises {@link KeyFault} unless the bytes are a public key under which a signature means something: 32 of them, the
 * canonical encoding (RFC 8032 section 5.1.3) of a point on the curve, and not one of the points of small order, under
 * which one signature holds for many messages.
 */
export function checkPublicKey(bytes: Uint8Array): void {
  if (bytes.length !== 32) throw new KeyFault('length', `an Ed25519 key has 32 bytes, this one has ${bytes.length}`);
  let point: Point;
  try {
    point = Point.fromBytes(bytes, false);
  } catch {
    // The encodings of small order that are not canonical as well are told apart only by reading them leniently.
    if (isSmallOrder(bytes)) throw smallOrder();
    throw new KeyFault('point', 'the 32 bytes are not the canonical encoding of a point on the curve');
  }
  if (point.isSmallOrder()) throw smallOrder();
}

function isSmallOrder(bytes: Uint8Array): boolean {
  try {
    return Point.fromBytes(bytes, true).isSmallOrder();
  } catch {
    return false;
  }
}

function smallOrder(): KeyFault {
  return new KeyFault('small_order', 'the key is a point of small order: anyone can sign for it');
}

/**
 * A public key as the config gives it in: the text of an SPKI PEM file, or the 32 bytes in base64url. The checked 32
 * bytes out. Throws {@link KeyFault}.
 */
export function parsePublicKey(text: string): Uint8Array {
  const trimmed = text.trim();
  const bytes = trimmed.startsWith('-----') ? readPem(trimmed, 'PUBLIC KEY', SPKI_PREFIX) : decodeBase64url(trimmed);
  if (bytes === undefined) {
    throw new KeyFault('file', 'this is neither an Ed25519 `PUBLIC KEY` PEM file nor 32 bytes in base64url');
  }
  checkPublicKey(bytes);
  return bytes;
}

/** The text of a PKCS#8 PEM file in, its 32-byte Ed25519 seed out. Throws {@link KeyFault}. */
export function parseSigningKey(text: string): Uint8Array {
  const seed = readPem(text.trim(), 'PRIVATE KEY', PKCS8_PREFIX);
  if (seed === undefined) throw new KeyFault('file', 'this is not an unencrypted Ed25519 `PRIVATE KEY` PEM file');
  return seed;
}

/** The 32 bytes of a public key in, an SPKI PEM file's text out. */
export function renderPublicKeyPem(bytes: Uint8Array): string {
  return renderPem('PUBLIC KEY', SPKI_PREFIX, bytes);
}

/** A 32-byte seed in, a PKCS#8 PEM file's text out. Write it with mode 0600. */
export function renderSigningKeyPem(seed: Uint8Array): string {
  return renderPem('PRIVATE KEY', PKCS8_PREFIX, seed);
}

/** The 32 bytes behind `prefix` in the one block of a PEM text (RFC 7468), else undefined. */
function readPem(text: string, label: string, prefix: Uint8Array): Uint8Array | undefined {
  const head = `-----BEGIN ${label}-----`;
  const foot = `-----END ${label}-----`;
  if (!text.startsWith(head) || !text.endsWith(foot) || text.length < head.length + foot.length) return undefined;
  let body = text
    .slice(head.length, text.length - foot.length)
    .replaceAll('\r', '')
    .replaceAll('\n', '');
  while (body.endsWith('=')) body = body.slice(0, -1);
  const der = decodeBase64url(body.replaceAll('+', '-').replaceAll('/', '_'), prefix.length + 32);
  return der?.subarray(0, prefix.length).every((byte, i) => byte === prefix[i]) ? der.slice(prefix.length) : undefined;
}

function renderPem(label: string, prefix: Uint8Array, key: Uint8Array): string {
  if (key.length !== 32) throw new KeyFault('length', `an Ed25519 key has 32 bytes, this one has ${key.length}`);
  const der = new Uint8Array(prefix.length + 32);
  der.set(prefix);
  der.set(key, prefix.length);
  const base64 = encodeBase64url(der).replaceAll('-', '+').replaceAll('_', '/');
  return `-----BEGIN ${label}-----\n${base64}${'='.repeat((4 - (base64.length % 4)) % 4)}\n-----END ${label}-----\n`;
}
