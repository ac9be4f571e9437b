import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { canonicalize } from '../../receipts/canonical.ts';
import { nodeCrypto } from '../../receipts/crypto-node.ts';
import { portableCrypto } from '../../receipts/crypto-portable.ts';
import {
  argumentsDigest,
  callFingerprint,
  hashParts,
  originsDigest,
  policyDigest,
  resultBytesDigest,
  resultDigest,
  shownDigest,
  signedBytes,
} from '../../receipts/digest.ts';

const NONCE = new Uint8Array(16).fill(5);

/** The definition, the slow way. */
function digest(domain: string, ...parts: (string | Uint8Array)[]): string {
  const hash = createHash('sha256').update(domain, 'ascii').update(Uint8Array.of(0));
  for (const part of parts) hash.update(part);
  return hash.digest('base64url');
}

test('every digest is over its domain, a zero byte and its parts', () => {
  const value = { b: ['é', 1n << 64n], a: 'x'.repeat(100) };
  const text = canonicalize(value);
  const bytes = new TextEncoder().encode('not JSON');
  const shown = { tool: 's/t', agent: 'a', arguments: value, origins: {}, reasons: ['write'] };
  for (const crypto of [nodeCrypto, portableCrypto]) {
    assert.equal(argumentsDigest(crypto, NONCE, text), digest('qls-arguments/1', NONCE, text));
    assert.equal(originsDigest(crypto, NONCE, canonicalize({})), digest('qls-origins/1', NONCE, '{}'));
    assert.equal(resultDigest(crypto, NONCE, text), digest('qls-result/1', NONCE, text));
    assert.equal(resultBytesDigest(crypto, NONCE, bytes), digest('qls-result-bytes/1', NONCE, bytes));
    assert.equal(policyDigest(crypto, text), digest('qls-policy/1', text));
    assert.equal(callFingerprint(crypto, 's/"t', text), digest('qls-call/1', canonicalize(['s/"t', value])));
    assert.equal(shownDigest(crypto, NONCE, shown), digest('qls-shown/1', NONCE, canonicalize(shown)));
  }
});

test('digests do not depend on what was digested before, however large', () => {
  const small = canonicalize({ a: 1 });
  const before = argumentsDigest(nodeCrypto, NONCE, small);
  for (const size of [20_000, 400_000, 3_000_000]) {
    const large = canonicalize('ü'.repeat(size));
    assert.equal(argumentsDigest(nodeCrypto, NONCE, large), digest('qls-arguments/1', NONCE, large));
    assert.equal(argumentsDigest(nodeCrypto, NONCE, small), before);
  }
  const bytes = new Uint8Array(100_000).fill(9);
  assert.deepEqual(
    Buffer.from(hashParts(nodeCrypto, 'qls-result-bytes/1', bytes)).toString('base64url'),
    digest('qls-result-bytes/1', bytes),
  );
});

test('the bytes that are signed are the domain, a zero byte and the part', () => {
  const signed = signedBytes('qls-history/1 token', Uint8Array.of(1, 2));
  assert.deepEqual(Buffer.from(signed).toString('latin1'), 'qls-history/1 token\0\x01\x02');
});
