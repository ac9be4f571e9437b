import assert from 'node:assert/strict';
import { test } from 'node:test';
import { encodeBase64url } from '../../receipts/base64url.ts';
import { canonicalize } from '../../receipts/canonical.ts';
import { nodeCrypto } from '../../receipts/crypto-node.ts';
import type { EntryBody, Report } from '../../receipts/history.ts';
import { cutHistory } from '../../receipts/history-cut.ts';
import type { JsonValue } from '../../receipts/json-value.ts';
import {
  evaluateReceipt,
  type ReceiptCall,
  type ReceiptEvaluation,
  type ReceiptFacts,
  readReceipt,
} from '../../receipts/receipt.ts';
import { HEADER, NOW, SOME_DIGEST, sampleBody, sampleOptions, signedHistory } from './sample.ts';

const CALL: ReceiptCall = {
  tool: 'shop/refund_card',
  reachable: true,
  agent: 'billing',
  agents: new Set(['billing']),
  arguments: canonicalize({ amount: 40 }),
};
const FACTS: ReceiptFacts = {
  foreign: false,
  policy: SOME_DIGEST,
  knownLinks: new Map(),
  claim: 'none',
  resendSafe: 'no',
};

/** A history whose second entry is the receipt of CALL. */
function history(changes: Partial<EntryBody> = {}, report?: Report): JsonValue {
  const body = sampleBody(1, { tool: CALL.tool, agent: 'billing', reasons: ['confirmed'], ...changes }, { amount: 40 });
  const last = report === undefined ? { body } : { body, report };
  return cutHistory(nodeCrypto, signedHistory([{ body: sampleBody(0) }, last]));
}

/** Both halves in a row, as a gateway runs them. */
function evaluate(
  value: JsonValue | undefined,
  call: Partial<ReceiptCall> = {},
  facts: Partial<ReceiptFacts> = {},
): ReceiptEvaluation {
  const asked = { ...CALL, ...call };
  const read = readReceipt(asked, value, sampleOptions({ maxAgeMs: 300_000 }));
  return 'answer' in read ? read : evaluateReceipt(nodeCrypto, read, asked, { ...FACTS, ...facts });
}

test('a receipt of exactly this call admits it', () => {
  assert.deepEqual(evaluate(history()), {
    answer: {
      format: 'qls-tool-receipt/1',
      decision: 'allow',
      reason: 'receipt',
      reasons: ['receipt'],
      tool: 'shop/refund_card',
      agent: 'billing',
      session: 'chat-17',
      step: 1,
      resend: false,
      detail: {},
    },
    handling: 'send',
  });
});

const allWrong = { decision: 'confirm', tool: 'shop/x', agent: 'x' } as const;
const reported = { outcome: 'ran' } as const;

test('refusals come in their order, each before whatever else is wrong', () => {
  const claimed = { claim: 'settled' } as const;
  const rows: readonly [ReceiptEvaluation, string, JsonValue][] = [
    [evaluate(undefined, { reachable: false }), 'unknown_tool', {}],
    [evaluate(undefined), 'receipt_missing', {}],
    [evaluate({ format: 'qls-history/1', entries: [] }), 'receipt_missing', {}],
    [evaluate({ ...HEADER, entries: [] }), 'receipt_missing', {}],
    [evaluate(null), 'history_invalid', { fault: 'format', entry: 0 }],
    [
      evaluate({ ...HEADER, audience: 'x', entries: [{ ...sampleBody(0), token: 'A'.repeat(86) }] }),
      'history_invalid',
      { fault: 'audience', entry: 0 },
    ],
    [
      evaluate(history({ ...allWrong, at: NOW - 360_001 }), {}, claimed),
      'history_invalid',
      { fault: 'expired', entry: 0 },
    ],
    [
      evaluate(history({ ...allWrong, at: NOW + 60_001 }), {}, claimed),
      'history_invalid',
      { fault: 'future', entry: 0 },
    ],
    [
      evaluate(history(allWrong), {}, { ...claimed, foreign: true, policy: 'x' }),
      'history_invalid',
      { fault: 'session', entry: 0 },
    ],
    [evaluate(history(allWrong), {}, { ...claimed, policy: 'x' }), 'history_invalid', { fault: 'policy', entry: 0 }],
    [
      evaluate(history(allWrong), {}, { ...claimed, knownLinks: new Map([[0, SOME_DIGEST]]) }),
      'history_invalid',
      { fault: 'link', entry: 0 },
    ],
    [
      evaluate(history(allWrong), {}, { ...claimed, knownLinks: new Map([[1, SOME_DIGEST]]) }),
      'history_invalid',
      { fault: 'forked', entry: 0 },
    ],
    [evaluate(history(allWrong), {}, claimed), 'receipt_not_allowed', { decision: 'confirm' }],
    [evaluate(history({ decision: 'refuse' })), 'receipt_not_allowed', { decision: 'refuse' }],
    [evaluate(history({}, reported), { tool: 'shop/x' }, claimed), 'receipt_mismatch', { differs: ['tool'] }],
    [
      evaluate(history({}, reported), { arguments: canonicalize({ amount: 41 }) }),
      'receipt_mismatch',
      { differs: ['arguments'] },
    ],
    [evaluate(history(), { agent: 'desk' }), 'receipt_mismatch', { differs: ['agent'] }],
    [evaluate(history(), { agent: '', agents: new Set(['desk']) }), 'receipt_mismatch', { differs: ['agent'] }],
    [
      evaluate(history(), { tool: 'x/y', agent: 'z', arguments: canonicalize({}) }),
      'receipt_mismatch',
      { differs: ['tool', 'arguments', 'agent'] },
    ],
    [evaluate(history({}, reported)), 'receipt_spent', {}],
    [evaluate(history({}, reported), {}, { claim: 'settled', resendSafe: 'write' }), 'receipt_spent', {}],
    [evaluate(history(), {}, claimed), 'receipt_spent', {}],
  ];
  for (const [{ answer, handling, sentence }, reason, detail] of rows) {
    assert.equal(answer.reason, reason);
    assert.deepEqual(answer.detail, detail);
    assert.deepEqual(answer.reasons, [reason]);
    assert.equal(answer.decision, 'refuse');
    assert.equal(handling, 'refuse');
    assert.ok(sentence);
  }
});

test('what was admitted before is handled by its state and by whether a resend is safe', () => {
  const rows = [
    ['none', 'no', 'send', false],
    ['not_sent', 'no', 'resend', true],
    ['in_flight', 'no', 'refuse', false],
    ['unknown', 'no', 'refuse', false],
    ['in_flight', 'read', 'resend', true],
    ['settled', 'read', 'resend', true],
    ['unknown', 'read', 'resend', true],
    ['in_flight', 'write', 'wait', true],
    ['settled', 'write', 'replay', true],
    ['unknown', 'write', 'resend', true],
  ] as const;
  for (const [claim, resendSafe, handling, resend] of rows) {
    const evaluation = evaluate(history(), {}, { claim, resendSafe });
    assert.equal(evaluation.handling, handling, `${claim}, ${resendSafe}`);
    assert.equal(evaluation.answer.resend, resend);
  }
});

test('links that the store knows alike do no harm, and an issuer’s policy is not compared', () => {
  const read = readReceipt(CALL, history(), sampleOptions());
  if ('answer' in read) throw new Error('the receipt should verify');
  const knownLinks = new Map([
    [0, read.verified.history.prev?.link ?? ''],
    [1, encodeBase64url(read.link)],
    [2, SOME_DIGEST],
  ]);
  const { policy: _policy, ...facts } = FACTS;
  const evaluation = evaluateReceipt(nodeCrypto, read, CALL, { ...facts, knownLinks });
  assert.equal(evaluation.answer.decision, 'allow');
});

test('a whole history that left a known line at an earlier step is forked there', () => {
  const whole = signedHistory([
    { body: sampleBody(0) },
    { body: sampleBody(1) },
    { body: sampleBody(2, { tool: CALL.tool, agent: 'billing' }, { amount: 40 }) },
  ]);
  assert.equal(evaluate(whole).answer.decision, 'allow');
  assert.deepEqual(evaluate(whole, {}, { knownLinks: new Map([[1, SOME_DIGEST]]) }).answer.detail, {
    fault: 'forked',
    entry: 1,
  });
});

test('a caller without credentials may be any agent, and one that names none is the entry’s', () => {
  const evaluation = evaluate(history(), { agents: 'any', agent: '' });
  assert.equal(evaluation.answer.decision, 'allow');
  assert.equal(evaluation.answer.agent, 'billing');
});
