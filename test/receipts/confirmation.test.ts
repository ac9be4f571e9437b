import assert from 'node:assert/strict';
import { test } from 'node:test';
import { encodeBase64url } from '../../receipts/base64url.ts';
import { canonicalize } from '../../receipts/canonical.ts';
import {
  type Confirmation,
  confirmationFault,
  openConfirmation,
  signConfirmation,
} from '../../receipts/confirmation.ts';
import { nodeCrypto } from '../../receipts/crypto-node.ts';
import { signedBytes } from '../../receipts/digest.ts';
import type { IssuerKey } from '../../receipts/history-verify.ts';
import { bytesOf, GATEWAY_KEY, NOW, SOME_DIGEST, sampleKey } from './sample.ts';

const CONFIRMATION: Confirmation = {
  id: 'AAECAwQFBgcICQoLDA0ODw',
  session: 'chat-17',
  step: 3,
  link: SOME_DIGEST,
  tool: 'shop/refund_card',
  agent: 'billing',
  arguments: SOME_DIGEST,
  shown: SOME_DIGEST,
  expires: NOW + 86_400_000,
};
const KEYS: readonly IssuerKey[] = [{ key: nodeCrypto.publicKey(GATEWAY_KEY.publicBytes) }];
const TOKEN = signConfirmation(GATEWAY_KEY, CONFIRMATION);

/** Signs whatever payload, as only a broken gateway would. */
function signPayload(payload: string): string {
  const bytes = new TextEncoder().encode(payload);
  return `${encodeBase64url(bytes)}.${encodeBase64url(GATEWAY_KEY.sign(signedBytes('qls-confirmation/1', bytes)))}`;
}

test('a token gives back what was confirmed, with an approver or without', () => {
  assert.deepEqual(openConfirmation(TOKEN, KEYS, NOW), { state: 'open', confirmation: CONFIRMATION });
  const approved = { ...CONFIRMATION, approver: 'ana' };
  assert.deepEqual(openConfirmation(signConfirmation(GATEWAY_KEY, approved), KEYS, NOW), {
    state: 'open',
    confirmation: approved,
  });
});

test('a token expires at its moment', () => {
  assert.equal(openConfirmation(TOKEN, KEYS, CONFIRMATION.expires - 1).state, 'open');
  assert.equal(openConfirmation(TOKEN, KEYS, CONFIRMATION.expires).state, 'expired');
});

test('every changed, missing or added character makes a token invalid', () => {
  for (let i = 0; i < TOKEN.length; i++) {
    const other = TOKEN[i] === 'A' ? 'B' : 'A';
    assert.deepEqual(openConfirmation(TOKEN.slice(0, i) + other + TOKEN.slice(i + 1), KEYS, NOW), { state: 'invalid' });
    assert.deepEqual(openConfirmation(TOKEN.slice(0, i), KEYS, NOW), { state: 'invalid' });
  }
  for (const text of ['', '.', '..', `${TOKEN}.`, `.${TOKEN}`, `${TOKEN}=`, ` ${TOKEN}`, CONFIRMATION.id]) {
    assert.deepEqual(openConfirmation(text, KEYS, NOW), { state: 'invalid' });
  }
});

test('one of the sixteen spellings of the signature’s last character is the token', () => {
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
  const first = alphabet.indexOf(TOKEN.slice(-1)) & ~15;
  const states = Array.from(
    { length: 16 },
    (_, i) => openConfirmation(TOKEN.slice(0, -1) + alphabet.charAt(first + i), KEYS, NOW).state,
  );
  assert.deepEqual(states, ['open', ...Array<string>(15).fill('invalid')]);
});

test('a payload that is not canonical, or not a confirmation, is invalid though signed', () => {
  const text = canonicalize(CONFIRMATION);
  assert.equal(openConfirmation(signPayload(text), KEYS, NOW).state, 'open');
  const { expires: _expires, ...without } = CONFIRMATION;
  const payloads = [
    ` ${text}`,
    JSON.stringify(CONFIRMATION),
    canonicalize({ ...CONFIRMATION, extra: 1 }),
    canonicalize({ ...CONFIRMATION, id: 'short' }),
    canonicalize({ ...CONFIRMATION, expires: 1.5 }),
    canonicalize({ ...CONFIRMATION, expires: '1' }),
    canonicalize({ ...CONFIRMATION, approver: null }),
    canonicalize(without),
    '[]',
    'null',
    '{',
  ];
  for (const payload of payloads)
    assert.deepEqual(openConfirmation(signPayload(payload), KEYS, NOW), { state: 'invalid' }, payload);
});

test('another key, or one that is not valid now, opens nothing', () => {
  assert.equal(openConfirmation(signConfirmation(sampleKey(9), CONFIRMATION), KEYS, NOW).state, 'invalid');
  const key = nodeCrypto.publicKey(GATEWAY_KEY.publicBytes);
  assert.equal(openConfirmation(TOKEN, [{ key, notAfter: NOW }], NOW).state, 'open');
  assert.equal(openConfirmation(TOKEN, [{ key, notAfter: NOW - 1 }], NOW).state, 'invalid');
  assert.equal(openConfirmation(TOKEN, [{ key, revokedAt: NOW }], NOW).state, 'invalid');
});

test('an entry’s token is no confirmation and the other way round', () => {
  const payload = new TextEncoder().encode(canonicalize(CONFIRMATION));
  const token = `${encodeBase64url(payload)}.${encodeBase64url(GATEWAY_KEY.sign(signedBytes('qls-history/1 token', payload)))}`;
  assert.equal(openConfirmation(token, KEYS, NOW).state, 'invalid');
  const signature = bytesOf(TOKEN.slice(TOKEN.indexOf('.') + 1));
  assert.ok(
    !nodeCrypto.publicKey(GATEWAY_KEY.publicBytes).verify(signedBytes('qls-history/1 token', payload), signature),
  );
});

test('why a token does not cover a call is named in its order', () => {
  const { session, tool, agent, shown } = CONFIRMATION;
  const facts = { session, tool, agent, arguments: CONFIRMATION.arguments, shown, spent: false, covers: true };
  const open = openConfirmation(TOKEN, KEYS, NOW);
  assert.equal(confirmationFault(open, facts), undefined);
  assert.equal(confirmationFault({ state: 'invalid' }, facts), 'invalid');
  assert.equal(
    confirmationFault(openConfirmation(TOKEN, KEYS, CONFIRMATION.expires), { ...facts, tool: 'x', spent: true }),
    'expired',
  );
  for (const member of ['session', 'tool', 'agent', 'arguments', 'shown']) {
    assert.equal(confirmationFault(open, { ...facts, [member]: 'x', spent: true }), 'other_call');
  }
  assert.equal(confirmationFault(open, { ...facts, spent: true, covers: false }), 'spent');
  assert.equal(confirmationFault(open, { ...facts, covers: false }), 'other_point');
});
