/**
 * base64url without padding (RFC 4648 section 5). Decoding takes the canonical spelling only: the unused low bits of
 * the last character must be zero (RFC 4648 section 3.5). Otherwise a 64-byte signature would have sixteen spellings,
 * and whatever is looked up or compared as text could be had sixteen times.
 */
const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';

const CODES: Uint8Array = Uint8Array.from(ALPHABET, (letter) => letter.charCodeAt(0));

/** Bytes that are made into characters at once, each an argument of one function call. A multiple of three. */
const AT_ONCE = 3072;

const VALUES: Int8Array = (() => {
  const values = new Int8Array(128).fill(-1);
  for (let i = 0; i < 64; i++) values[ALPHABET.charCodeAt(i)] = i;
  return values;
})();

/**
 * Bytes in, their base64url text out, without padding. The text is made in one piece: one that is put together from parts
 * keeps each of them, and takes thirty times the memory for as long as somebody holds it.
 */
export function encodeBase64url(bytes: Uint8Array): string {
  const { length } = bytes;
  if (length <= AT_ONCE) return encodePiece(bytes, 0, length);
  const parts: string[] = [];
  for (let from = 0; from < length; from += AT_ONCE)
    parts.push(encodePiece(bytes, from, Math.min(from + AT_ONCE, length)));
  return parts.join('');
}

function encodePiece(bytes: Uint8Array, from: number, to: number): string {
  const codes: number[] = [];
  for (let i = from; i < to; i += 3) {
    const n = ((bytes[i] ?? 0) << 16) | ((bytes[i + 1] ?? 0) << 8) | (bytes[i + 2] ?? 0);
    codes.push(CODES[n >> 18] ?? 0, CODES[(n >> 12) & 63] ?? 0, CODES[(n >> 6) & 63] ?? 0, CODES[n & 63] ?? 0);
  }
  // One byte left over makes two characters, two make three.
  codes.length -= (3 - ((to - from) % 3)) % 3;
  return String.fromCharCode.apply(null, codes);
}

/**
 * Base64url text in, its bytes out; `undefined` where the text is not the canonical spelling of any bytes, or not of
 * exactly `length` bytes where that is given. Never throws.
 */
export function decodeBase64url(text: string, length?: number): Uint8Array | undefined {
  const rest = text.length % 4;
  if (rest === 1) return undefined;
  const size = (text.length >> 2) * 3 + (rest === 0 ? 0 : rest - 1);
  if (length !== undefined && size !== length) return undefined;
  const bytes = new Uint8Array(size);
  let held = 0;
  let bits = 0;
  let at = 0;
  for (let i = 0; i < text.length; i++) {
    const value = VALUES[text.charCodeAt(i)] ?? -1;
    if (value < 0) return undefined;
    held = ((held << 6) | value) & 0xffff;
    bits += 6;
    if (bits >= 8) {
      bits -= 8;
      bytes[at++] = (held >> bits) & 0xff;
    }
  }
  return (held & ((1 << bits) - 1)) === 0 ? bytes : undefined;
}

/** Whether `text` is the canonical base64url spelling of exactly `length` bytes; decodes nothing. */
export function isBase64url(text: string, length: number): boolean {
  if (text.length !== Math.ceil((length * 4) / 3)) return false;
  let value = 0;
  for (let i = 0; i < text.length; i++) {
    value = VALUES[text.charCodeAt(i)] ?? -1;
    if (value < 0) return false;
  }
  const unused = (text.length * 6) % 8;
  return (value & ((1 << unused) - 1)) === 0;
}
