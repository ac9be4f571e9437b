import { type CanonicalJson, canonicalize, quoteJson } from './canonical.ts';
import type { Crypto } from './crypto.ts';
import type { JsonValue } from './json-value.ts';

/** What a digest is of. The domain keeps a digest of one kind from ever being one of another kind. */
export type Domain =
  | 'qls-history/1 genesis'
  | 'qls-history/1 link'
  | 'qls-history/1 token'
  | 'qls-confirmation/1'
  | 'qls-arguments/1'
  | 'qls-origins/1'
  | 'qls-result/1'
  | 'qls-result-bytes/1'
  | 'qls-shown/1'
  | 'qls-policy/1'
  | 'qls-call/1'
  | 'qls-tokens/1';

const UTF8 = new TextEncoder();

// One buffer for every digest: the parts are laid side by side in it, so that a digest allocates nothing but its result.
// Nothing here waits, so no two digests are ever made at once.
let scratch: Uint8Array = new Uint8Array(16_384);
const MAX_KEPT_BYTES = 1 << 20;

/**
 * H(domain, parts...) = SHA-256 over the ASCII domain, one zero byte, then the parts with nothing between them; texts
 * as UTF-8. 32 bytes out. At most one part may be of a length that the reader does not know.
 */
export function hashParts(crypto: Crypto, domain: Domain, ...parts: readonly (Uint8Array | string)[]): Uint8Array {
  const length = layOut(domain, parts);
  const digest = crypto.sha256(scratch.subarray(0, length));
  trimScratch();
  return digest;
}

/** As `hashParts`, in base64url. */
function hashText(crypto: Crypto, domain: Domain, ...parts: readonly (Uint8Array | string)[]): string {
  const length = layOut(domain, parts);
  const digest = crypto.sha256Text(scratch.subarray(0, length));
  trimScratch();
  return digest;
}

/** The bytes that a signature of this domain is over: the ASCII domain, one zero byte, the part. */
export function signedBytes(domain: Domain, part: Uint8Array): Uint8Array {
  return scratch.slice(0, layOut(domain, [part]));
}

function layOut(domain: Domain, parts: readonly (Uint8Array | string)[]): number {
  let needed = domain.length + 1;
  // A UTF-16 code unit takes at most three bytes of UTF-8.
  for (const part of parts) needed += typeof part === 'string' ? part.length * 3 : part.length;
  if (needed > scratch.length) scratch = new Uint8Array(Math.max(needed, Math.min(needed * 2, MAX_KEPT_BYTES)));
  let at = UTF8.encodeInto(domain, scratch).written;
  scratch[at++] = 0;
  for (const part of parts) {
    if (typeof part === 'string') at += UTF8.encodeInto(part, scratch.subarray(at)).written;
    else {
      scratch.set(part, at);
      at += part.length;
    }
  }
  return at;
}

/** One huge call must not hold its memory for as long as the process lives. */
function trimScratch(): void {
  if (scratch.length > MAX_KEPT_BYTES) scratch = new Uint8Array(16_384);
}

/** The `arguments` digest of an entry: the history's 16-byte nonce and the call's canonical arguments in, base64url out. */
export function argumentsDigest(crypto: Crypto, nonce: Uint8Array, args: CanonicalJson): string {
  return hashText(crypto, 'qls-arguments/1', nonce, args);
}

/** The `origins` digest of an entry: what the caller said of where its arguments came from; `{}` where it said nothing. */
export function originsDigest(crypto: Crypto, nonce: Uint8Array, origins: CanonicalJson): string {
  return hashText(crypto, 'qls-origins/1', nonce, origins);
}

/** The `result` digest of an answer that is JSON under the strict profile. */
export function resultDigest(crypto: Crypto, nonce: Uint8Array, result: CanonicalJson): string {
  return hashText(crypto, 'qls-result/1', nonce, result);
}

/** The `result` digest of any other answer: its bytes as they came. */
export function resultBytesDigest(crypto: Crypto, nonce: Uint8Array, bytes: Uint8Array): string {
  return hashText(crypto, 'qls-result-bytes/1', nonce, bytes);
}

/** What a person was shown of a call that was held for them. */
export interface Shown {
  readonly tool: string;
  readonly agent: string;
  readonly arguments: JsonValue;
  readonly origins: JsonValue;
  readonly reasons: readonly string[];
}

/** The `shown` digest of a confirmation: a token then covers no call of which the person saw something else. */
export function shownDigest(crypto: Crypto, nonce: Uint8Array, shown: Shown): string {
  const { tool, agent, origins, reasons } = shown;
  const text = canonicalize({ tool, agent, arguments: shown.arguments, origins, reasons });
  return hashText(crypto, 'qls-shown/1', nonce, text);
}

/** The `policy` digest: of everything that decides or shapes what is sent, as it was loaded. The same on every replica. */
export function policyDigest(crypto: Crypto, loaded: CanonicalJson): string {
  return hashText(crypto, 'qls-policy/1', loaded);
}

/** The fingerprint that one idempotency key must keep: of the tool's full name and the call's canonical arguments. */
export function callFingerprint(crypto: Crypto, tool: string, args: CanonicalJson): string {
  return hashText(crypto, 'qls-call/1', `[${quoteJson(tool)},${args}]`);
}
