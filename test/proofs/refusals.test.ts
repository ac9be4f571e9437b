import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { nodeCrypto } from '../../receipts/crypto-node.ts';
import { cutHistory } from '../../receipts/history-cut.ts';
import { APP, inHeader, issuerHistory, OTHER, type ReceiptAnswer, type Said, startWorld, type World } from './world.ts';

/** Tampering with JSON, member by member. */
type Loose = Record<string, unknown> & { entries: Record<string, unknown>[] };

interface Case {
  readonly title: string;
  /** What is sent as receipt; nothing where it gives `undefined`. */
  readonly receipt: () => unknown;
  readonly tool?: string;
  readonly args?: Record<string, unknown>;
  readonly agent?: string;
  readonly reason: string;
  readonly detail?: Record<string, unknown>;
}

const said =
  (of: Said = {}) =>
  (): unknown =>
    issuerHistory(of);
const cut = (of: Said = {}): unknown => cutHistory(nodeCrypto, issuerHistory(of));

/** A history, or its cut, with something of it changed after it was signed. */
function edited(change: (history: Loose) => void, isCut = false): () => unknown {
  return () => {
    const loose = JSON.parse(JSON.stringify(isCut ? cut() : issuerHistory())) as Loose;
    change(loose);
    return loose;
  };
}

const last = (history: Loose): Record<string, unknown> => history.entries.at(-1) ?? {};
const invalid = (fault: string, entry?: number): Pick<Case, 'reason' | 'detail'> => ({
  reason: 'history_invalid',
  detail: entry === undefined ? { fault } : { fault, entry },
});

const OTHER_DIGEST = 'BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBA';
const MEMBERS: readonly (readonly [string, unknown])[] = [
  ['tool', 'shop/send'],
  ['agent', 'billing'],
  ['arguments', OTHER_DIGEST],
  ['origins', OTHER_DIGEST],
  ['labels', ['untrusted:x']],
  ['decision', 'refuse'],
  ['reasons', ['confirmed']],
  ['at', Date.now()],
  ['policy', 'another'],
  ['run', 'r-1'],
  ['undoes', 0],
  ['reports', [{ step: 0, outcome: 'compensated' }]],
  ['token', `${'A'.repeat(85)}A`],
];

const CASES: readonly Case[] = [
  { title: 'no history', receipt: () => undefined, reason: 'receipt_missing' },
  {
    title: 'a history that has not begun',
    receipt: () => ({ format: 'qls-history/1', entries: [] }),
    reason: 'receipt_missing',
  },
  { title: 'a history without entries', receipt: edited((h) => (h.entries.length = 0)), reason: 'receipt_missing' },
  ...MEMBERS.map(
    ([member, value]): Case => ({
      title: `another \`${member}\` in the last entry`,
      receipt: edited((h) => Object.assign(last(h), { [member]: value })),
      ...invalid('signature', 1),
    }),
  ),
  {
    title: 'another report before the last entry',
    receipt: edited((h) => Object.assign(h.entries[0] ?? {}, { outcome: 'failed' })),
    ...invalid('signature', 1),
  },
  {
    title: 'an earlier entry edited',
    receipt: edited((h) => Object.assign(h.entries[0] ?? {}, { at: 1 })),
    ...invalid('signature', 0),
  },
  { title: 'entries exchanged', receipt: edited((h) => h.entries.reverse()), ...invalid('order', 0) },
  { title: 'the first entry dropped', receipt: edited((h) => h.entries.shift()), ...invalid('order', 0) },
  { title: 'an unknown member', receipt: edited((h) => Object.assign(last(h), { extra: 1 })), ...invalid('format', 1) },
  { title: 'no history but a text', receipt: () => 'a receipt', ...invalid('format', 0) },
  {
    title: 'another nonce',
    receipt: edited((h) => Object.assign(h, { nonce: 'BBECAwQFBgcICQoLDA0ODw' })),
    ...invalid('signature', 0),
  },
  {
    title: 'a cut whose previous link is another',
    receipt: edited((h) => Object.assign(h['prev'] as object, { link: OTHER_DIGEST }), true),
    ...invalid('signature', 0),
  },
  {
    title: 'a cut whose previous report is another',
    receipt: edited((h) => Object.assign(h['prev'] as object, { outcome: 'failed' }), true),
    ...invalid('signature', 0),
  },
  {
    title: 'a cut without what is before it',
    receipt: edited((h) => Reflect.deleteProperty(h, 'prev'), true),
    ...invalid('order', 0),
  },
  { title: 'a cut with two entries', receipt: edited((h) => h.entries.push(last(h)), true), ...invalid('format', 0) },
  {
    title: 'a cut of step 0 with something before it',
    receipt: () => ({ ...issuerHistory({ before: 0 }), prev: { link: OTHER_DIGEST } }),
    ...invalid('format', 0),
  },
  ...[false, true].flatMap((isCut): Case[] => {
    const name = isCut ? 'cut' : 'whole';
    return [
      {
        title: `${name}, labelled with another session`,
        receipt: edited((h) => Object.assign(h, { session: 'another' }), isCut),
        ...invalid('signature', 0),
      },
      {
        title: `${name}, labelled with another audience`,
        receipt: edited((h) => Object.assign(h, { audience: 'another' }), isCut),
        ...invalid('audience', 0),
      },
      {
        title: `${name}, labelled with another issuer`,
        receipt: edited((h) => Object.assign(h, { issuer: 'lapsed' }), isCut),
        ...invalid('key', 0),
      },
    ];
  }),
  {
    title: 'made for another audience',
    receipt: said({ header: { audience: 'elsewhere' } }),
    ...invalid('audience', 0),
  },
  { title: 'an issuer that nobody knows', receipt: said({ header: { issuer: 'nobody' } }), ...invalid('key', 0) },
  { title: 'an issuer whose key has expired', receipt: said({ header: { issuer: 'lapsed' } }), ...invalid('key', 0) },
  { title: 'an issuer whose key was revoked', receipt: said({ header: { issuer: 'revoked' } }), ...invalid('key', 0) },
  {
    title: 'an issuer whose key is not good yet',
    receipt: said({ header: { issuer: 'early' } }),
    ...invalid('key', 0),
  },
  { title: 'an agent that the issuer may not speak for', receipt: said({ agent: 'night' }), ...invalid('key', 1) },
  {
    title: 'a tool that the issuer may not speak for',
    receipt: said({ tool: 'mixed/charge' }),
    tool: 'mixed/charge',
    ...invalid('key', 1),
  },
  { title: 'a tool that is not there', receipt: said(), tool: 'shop/nothing', reason: 'unknown_tool' },
  {
    title: "a tool out of this agent's reach",
    receipt: said({ tool: 'shop/secret' }),
    tool: 'shop/secret',
    reason: 'unknown_tool',
  },
  {
    title: 'a call that was refused',
    receipt: said({ body: { decision: 'refuse', reasons: ['write'] } }),
    reason: 'receipt_not_allowed',
    detail: { decision: 'refuse' },
  },
  {
    title: 'a call that was only to be confirmed',
    receipt: said({ body: { decision: 'confirm', reasons: ['write'] } }),
    reason: 'receipt_not_allowed',
    detail: { decision: 'confirm' },
  },
  ...[null, true, 41, -0.5, '40', [40], { amount: 40 }, ''].map(
    (note): Case => ({
      title: `other arguments: ${JSON.stringify(note)} where none was`,
      receipt: said(),
      args: { amount: 40, order_id: 'A1', note },
      reason: 'receipt_mismatch',
      detail: { differs: ['arguments'] },
    }),
  ),
  {
    title: 'another amount',
    receipt: said(),
    args: { amount: 40.5, order_id: 'A1' },
    reason: 'receipt_mismatch',
    detail: { differs: ['arguments'] },
  },
  {
    title: 'an argument left out',
    receipt: said(),
    args: { order_id: 'A1' },
    reason: 'receipt_mismatch',
    detail: { differs: ['arguments'] },
  },
  {
    title: 'another tool',
    receipt: said({ tool: 'shop/send' }),
    reason: 'receipt_mismatch',
    detail: { differs: ['tool'] },
  },
  {
    title: 'another agent',
    receipt: said(),
    agent: 'billing',
    reason: 'receipt_mismatch',
    detail: { differs: ['agent'] },
  },
  {
    title: 'another tool, arguments and agent',
    receipt: said({ tool: 'shop/send' }),
    args: { order_id: 'A2' },
    agent: 'billing',
    reason: 'receipt_mismatch',
    detail: { differs: ['tool', 'arguments', 'agent'] },
  },
  ...(['ran', 'failed', 'outcome_unknown', 'compensated'] as const).map(
    (outcome): Case => ({
      title: `the outcome \`${outcome}\` is reported already`,
      receipt: said({ report: { outcome } }),
      reason: 'receipt_spent',
    }),
  ),
  { title: 'too old', receipt: said({ body: { at: Date.now() - 361_000 } }), ...invalid('expired', 1) },
  { title: 'from the future', receipt: said({ body: { at: Date.now() + 600_000 } }), ...invalid('future', 1) },
];

describe('receipts that admit nothing', { concurrency: 4 }, () => {
  let world: World;
  before(async () => {
    world = await startWorld();
  });
  after(() => world.close());

  for (const one of CASES) {
    test(one.title, async () => {
      const receipt = one.receipt();
      for (const [way, answer] of Object.entries(await everyWay(world, one, receipt))) {
        assert.equal(answer.reason, one.reason, `${way}: ${JSON.stringify(answer)}`);
        assert.equal(answer.decision, 'refuse', way);
        assert.equal(answer.resend, false, way);
        if (one.detail !== undefined) assert.deepEqual(answer.detail, one.detail, way);
      }
      assert.deepEqual(world.backend.seen, [], 'nothing reaches the backend');
    });
  }

  test("a receipt of the gateway's own under another caller's credential", async () => {
    const options = {
      key: APP.key,
      body: {
        tool: 'shop/charge',
        arguments: { order_id: 'A1' },
        agent: 'desk',
        history: { format: 'qls-history/1', entries: [] },
      },
    };
    const answer = (await world.gateway.request('POST', '/v1/check', options)).json as {
      history: object;
      entry: object;
      decision: string;
    };
    assert.equal(answer.decision, 'confirm');
    const history = { ...answer.history, entries: [answer.entry] };
    const foreign = await world.gateway.request('POST', '/v1/receipts', {
      key: OTHER.key,
      body: { tool: 'shop/charge', arguments: { order_id: 'A1' }, agent: 'desk', history },
    });
    const receipt = foreign.json as ReceiptAnswer;
    assert.deepEqual([receipt.reason, receipt.detail], ['history_invalid', { fault: 'session', entry: 0 }]);
    const own = await world.gateway.request('POST', '/v1/receipts', {
      key: APP.key,
      body: { tool: 'shop/charge', arguments: { order_id: 'A1' }, agent: 'desk', history },
    });
    assert.equal((own.json as ReceiptAnswer).reason, 'receipt_not_allowed');
  });

  test('a call that names another session than its receipt is of', async () => {
    const history = issuerHistory();
    const body = {
      tool: 'shop/charge',
      arguments: { amount: 40, order_id: 'A1' },
      agent: 'desk',
      session: 'mine',
      history,
    };
    const answer = (await world.gateway.request('POST', '/v1/receipts', { key: APP.key, body })).json as ReceiptAnswer;
    assert.deepEqual([answer.reason, answer.detail], ['history_invalid', { fault: 'session', entry: 0 }]);
  });

  test('an agent that the caller may not be, where the call names none', async () => {
    const history = issuerHistory({ agent: 'night' });
    const body = { tool: 'shop/charge', arguments: { amount: 40, order_id: 'A1' }, history };
    const answer = (await world.gateway.request('POST', '/v1/receipts', { key: APP.key, body })).json as ReceiptAnswer;
    assert.deepEqual([answer.reason, answer.detail], ['history_invalid', { fault: 'key', entry: 1 }]);
  });

  test('a route that checks each call itself takes no receipt', async () => {
    const headers = { 'toolgate-receipt': inHeader(issuerHistory()), 'toolgate-agent': 'desk' };
    const answer = await world.gateway.request('POST', '/plain/charge', {
      key: APP.key,
      headers,
      body: { order_id: 'A1' },
    });
    assert.equal(answer.status, 400);
  });
});

/** The same case by the API, on the route, and by `/v1/call`. */
async function everyWay(world: World, one: Case, receipt: unknown): Promise<Record<string, ReceiptAnswer>> {
  const { tool = 'shop/charge', args = { amount: 40, order_id: 'A1' }, agent = 'desk' } = one;
  const key = APP.key;
  const body = { tool, arguments: args, agent, ...(receipt === undefined ? {} : { history: receipt }) };
  const asked = await world.gateway.request('POST', '/v1/receipts', { key, body });
  if (typeof receipt === 'string') assert.equal(asked.status, 200, asked.text);
  const called = await world.gateway.request('POST', '/v1/call', {
    key,
    headers: receipt === undefined ? {} : { 'toolgate-receipt': inHeader(receipt) },
    body: { tool, arguments: args, agent },
  });
  const ways: Record<string, ReceiptAnswer> = { api: asked.json as ReceiptAnswer };
  if (called.status === 200) ways['call'] = (called.json as { receipt: ReceiptAnswer }).receipt;
  const [, name = ''] = tool.split('/');
  const headers = {
    'toolgate-agent': agent,
    ...(receipt === undefined ? {} : { 'toolgate-receipt': inHeader(receipt) }),
  };
  const routed = await world.gateway.request('POST', `/${tool.split('/')[0]}/${name}`, { key, headers, body: args });
  const problem = routed.json as { type: string; receipt: ReceiptAnswer };
  assert.equal(routed.status, 403, routed.text);
  assert.equal(problem.type, `urn:toolgate:${one.reason}`);
  ways['route'] = problem.receipt;
  assert.equal(routed.headers.get('toolgate-decision'), 'refuse');
  return ways;
}
