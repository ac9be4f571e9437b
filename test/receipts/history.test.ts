import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { encodeBase64url } from '../../receipts/base64url.ts';
import { canonicalize } from '../../receipts/canonical.ts';
import { nodeCrypto } from '../../receipts/crypto-node.ts';
import { portableCrypto } from '../../receipts/crypto-portable.ts';
import { hashParts } from '../../receipts/digest.ts';
import {
  type Entry,
  type History,
  HistoryFault,
  type HistoryFaultCode,
  type WholeHistory,
} from '../../receipts/history.ts';
import { cutHistory } from '../../receipts/history-cut.ts';
import { compareHead, historyHead } from '../../receipts/history-head.ts';
import { entryLink, genesisLink } from '../../receipts/history-links.ts';
import { parseHistory } from '../../receipts/history-parse.ts';
import { type VerifiedHistory, type VerifyOptions, verifyHistory } from '../../receipts/history-verify.ts';
import { parseJson } from '../../receipts/json.ts';
import { JsonFault } from '../../receipts/json-fault.ts';
import type { JsonValue } from '../../receipts/json-value.ts';
import {
  bytesOf,
  GATEWAY_KEY,
  HEADER,
  issuerOf,
  NOW,
  richHistory,
  SOME_DIGEST,
  sampleBody,
  sampleKey,
  sampleOptions,
  signedHistory,
} from './sample.ts';

/** Parses and verifies as a gateway does; the fault's name, or `ok`. */
function faultOf(value: JsonValue, options: VerifyOptions = sampleOptions()): HistoryFaultCode | 'ok' {
  try {
    accepted(value, options);
    return 'ok';
  } catch (error) {
    if (error instanceof HistoryFault) return error.fault;
    throw error;
  }
}

function accepted(value: JsonValue, options: VerifyOptions = sampleOptions()): VerifiedHistory {
  const carried = parseHistory(value);
  if (carried.kind === 'opening') throw new Error('an opening is no history');
  return verifyHistory(carried.history, options);
}

function withEntry(history: WholeHistory, index: number, changes: Record<string, JsonValue>): JsonValue {
  return { ...history, entries: history.entries.map((entry, i) => (i === index ? { ...entry, ...changes } : entry)) };
}

test('a history with every kind of member verifies, on both cryptographies, and gives its links and newest reports', () => {
  const history = richHistory();
  const verified = accepted(parseJson(canonicalize(history)));
  assert.equal(verified.links.length, 4);
  assert.deepEqual(
    [...verified.reports],
    [
      [0, { outcome: 'ran', result: SOME_DIGEST }],
      [2, { outcome: 'ran', result: SOME_DIGEST }],
    ],
  );
  const options = sampleOptions({
    crypto: portableCrypto,
    issuers: new Map([['shop-gateway', issuerOf(GATEWAY_KEY, portableCrypto)]]),
  });
  const portable = accepted(history, options);
  assert.deepEqual(portable.links.map(encodeBase64url), verified.links.map(encodeBase64url));
});

test('a link is taken over the canonical texts of report and body', () => {
  const history = richHistory();
  const genesis = genesisLink(nodeCrypto, history);
  let prev = genesis;
  let report: JsonValue = {};
  for (const entry of history.entries) {
    const { token: _token, outcome, result, ...body } = entry;
    const link = hashParts(nodeCrypto, 'qls-history/1 link', genesis, prev, canonicalize(report), canonicalize(body));
    assert.deepEqual(entryLink(nodeCrypto, genesis, prev, report, entry), link);
    prev = link;
    report = outcome === undefined ? {} : { outcome, ...(result === undefined ? {} : { result }) };
  }
});

test('each fault has its name', () => {
  const history = richHistory();
  const { entries } = history;
  const [e0, e1, e2, e3] = entries as [Entry, Entry, Entry, Entry];
  const cases: readonly [string, JsonValue, HistoryFaultCode][] = [
    ['an unknown format', { ...history, format: 'qls-history/2' }, 'format'],
    ['an unknown member of the history', { ...history, extra: 1 }, 'format'],
    ['an unknown member of an entry', withEntry(history, 1, { extra: 1 }), 'format'],
    ['a decision that is none', withEntry(history, 1, { decision: 'maybe' }), 'format'],
    ['unsorted labels', withEntry(history, 1, { labels: ['b', 'a'] }), 'format'],
    ['a label twice', withEntry(history, 1, { labels: ['a', 'a'] }), 'format'],
    ['a result without an outcome', withEntry(history, 3, { result: SOME_DIGEST }), 'format'],
    ['empty reports', withEntry(history, 3, { reports: [] }), 'format'],
    ['a report of the step itself', withEntry(history, 3, { reports: [{ step: 3, outcome: 'ran' }] }), 'format'],
    ['a tool of 201 characters', withEntry(history, 1, { tool: 'x'.repeat(201) }), 'format'],
    ['a step as text', withEntry(history, 1, { step: '1' }), 'format'],
    ['no entries member', { ...HEADER }, 'format'],
    ['`prev` on a whole history', { ...history, prev: { link: SOME_DIGEST } }, 'format'],
    ['a moved entry', { ...history, entries: [e0, e2, e1, e3] }, 'order'],
    ['a left out entry', { ...history, entries: [e0, e2, e3] }, 'order'],
    ['a doubled entry', { ...history, entries: [e0, e0, e1] }, 'order'],
    ['another session', { ...history, session: 'chat-18' }, 'signature'],
    ['another nonce', { ...history, nonce: 'AQECAwQFBgcICQoLDA0ODw' }, 'signature'],
    ['another audience', { ...history, audience: 'other' }, 'audience'],
    ['another issuer', { ...history, issuer: 'other' }, 'key'],
    ['an edited agent', withEntry(history, 2, { agent: 'billing' }), 'signature'],
    ['an edited frozen outcome', withEntry(history, 2, { outcome: 'ran' }), 'signature'],
    ['another entry’s token', withEntry(history, 3, { token: e2.token }), 'signature'],
    ['an outcome on a confirm', withEntry({ ...history, entries: [e0, e1] }, 1, { outcome: 'ran' }), 'outcome'],
  ];
  for (const [title, value, fault] of cases) assert.equal(faultOf(value), fault, title);
});

test('the session that is expected must be the session that it is', () => {
  assert.equal(faultOf(richHistory(), sampleOptions({ session: 'chat-17' })), 'ok');
  assert.equal(faultOf(richHistory(), sampleOptions({ session: 'chat-18' })), 'session');
});

test('a fault names the first entry at fault', () => {
  const history = richHistory();
  for (let i = 0; i < 4; i++) {
    assert.throws(() => accepted(withEntry(history, i, { agent: 'x' })), { fault: 'signature', entry: i });
    assert.throws(() => accepted(withEntry(history, i, { extra: 'x' })), { fault: 'format', entry: i });
  }
});

test('an entry of another session does not continue this one, though one key signed both', () => {
  const other = signedHistory([{ body: sampleBody(0) }, { body: sampleBody(1) }], GATEWAY_KEY, {
    ...HEADER,
    session: 'chat-18',
  });
  const own = signedHistory([{ body: sampleBody(0) }, { body: sampleBody(1) }]);
  const [first] = own.entries;
  const [, second] = other.entries;
  assert.equal(faultOf({ ...own, entries: [first ?? null, second ?? null] }), 'signature');
  assert.equal(faultOf({ ...own, entries: other.entries }), 'signature');
});

test('every one-byte edit of a history is a fault, warm cache or cold, but for the last entry’s own report', () => {
  const history = signedHistory([
    { body: sampleBody(0), report: { outcome: 'ran', result: SOME_DIGEST } },
    {
      body: sampleBody(1, {
        labels: ['untrusted:x'],
        run: 'r-1',
        undoes: 0,
        reports: [{ step: 0, outcome: 'compensated' }],
      }),
    },
  ]);
  const cache = new Map<string, string>();
  accepted(history, sampleOptions({ cache }));
  const bytes = new TextEncoder().encode(canonicalize(history));
  for (let i = 0; i < bytes.length; i++) {
    for (const flip of [1, 2, 0x80]) {
      const edited = bytes.slice();
      edited[i] = (edited[i] ?? 0) ^ flip;
      assert.ok(isFault(edited, sampleOptions()), `cold: byte ${i} xor ${flip}`);
      assert.ok(isFault(edited, sampleOptions({ cache })), `warm: byte ${i} xor ${flip}`);
    }
  }
});

function isFault(bytes: Uint8Array, options: VerifyOptions): boolean {
  try {
    return faultOf(parseJson(bytes), options) !== 'ok';
  } catch (error) {
    if (error instanceof JsonFault) return true;
    throw error;
  }
}

test('any removal, move or doubling of entries is a fault or shows against the kept head', () => {
  const history = signedHistory(
    Array.from({ length: 6 }, (_, i) => ({ body: sampleBody(i), report: { outcome: 'ran' as const } })),
  );
  const verified = accepted(history);
  const head = historyHead(verified);
  const kept = (step: number): string | undefined => verified.links[step] && encodeBase64url(verified.links[step]);
  assert.equal(compareHead(verified, head, kept), 'same');
  assert.equal(compareHead(verified, undefined, kept), 'ahead');
  for (let length = 0; length < 6; length++) {
    const shorter = accepted({ ...history, entries: history.entries.slice(0, length) });
    assert.equal(compareHead(shorter, head, kept), 'dropped', `cut off after ${length}`);
    assert.equal(compareHead(verified, historyHead(shorter), kept), 'ahead');
  }
  fc.assert(
    fc.property(fc.array(fc.nat(5), { maxLength: 7 }), (order) => {
      if (order.every((n, i) => n === i)) return;
      const entries = order.map((n) => history.entries[n] ?? null);
      assert.equal(faultOf({ ...history, entries }), 'order');
    }),
  );
});

test('another line of the same session is forked, whichever is longer', () => {
  const line = signedHistory([{ body: sampleBody(0) }, { body: sampleBody(1) }, { body: sampleBody(2) }]);
  const fork = signedHistory([{ body: sampleBody(0) }, { body: sampleBody(1, { agent: 'billing' }) }]);
  const longFork = signedHistory([
    { body: sampleBody(0) },
    { body: sampleBody(1, { agent: 'billing' }) },
    { body: sampleBody(2) },
    { body: sampleBody(3) },
  ]);
  const kept = accepted(line);
  const knownLink = (step: number): string | undefined => kept.links[step] && encodeBase64url(kept.links[step]);
  assert.equal(compareHead(accepted(fork), historyHead(kept), knownLink), 'forked');
  assert.equal(compareHead(accepted(longFork), historyHead(kept), knownLink), 'forked');
});

test('a cut history verifies wherever it is cut, and no edit of it does', () => {
  const history = richHistory();
  const whole = accepted(history);
  for (let step = 0; step < 4; step++) {
    const cut = cutHistory(nodeCrypto, history, step);
    assert.equal(cut.entries.length, 1);
    const verified = accepted(cut);
    assert.deepEqual(verified.links[0], whole.links[step]);
    assert.deepEqual(cutHistory(nodeCrypto, cut, step), cut);
  }
  const cut = cutHistory(nodeCrypto, history);
  const prev = cut.prev ?? { link: '' };
  assert.deepEqual(prev, { link: encodeBase64url(whole.links[2] as Uint8Array), outcome: 'outcome_unknown' });
  const edits: readonly [JsonValue, HistoryFaultCode][] = [
    [{ ...cut, prev: { ...prev, outcome: 'ran' } }, 'signature'],
    [{ ...cut, prev: { link: prev.link } }, 'signature'],
    [{ ...cut, prev: { ...prev, link: SOME_DIGEST } }, 'signature'],
    [{ ...cut, prev: { ...prev, extra: 1 } }, 'format'],
    [{ ...HEADER, entries: cut.entries }, 'order'],
    [{ ...cut, entries: [...cut.entries, ...cut.entries] }, 'format'],
    [{ ...cut, entries: [] }, 'format'],
    [{ ...cut, session: 'chat-18' }, 'signature'],
    [{ ...cutHistory(nodeCrypto, history, 0), prev: { link: prev.link } }, 'format'],
  ];
  for (const [value, fault] of edits) assert.equal(faultOf(value), fault, JSON.stringify(value).slice(-120));
  assert.throws(() => cutHistory(nodeCrypto, history, 4), RangeError);
});

test('sixteen spellings of a token’s last character, one of them canonical', () => {
  const history = richHistory();
  const token = history.entries[3]?.token ?? '';
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
  const first = alphabet.indexOf(token.slice(-1)) & ~15;
  const verdicts = Array.from({ length: 16 }, (_, i) =>
    faultOf(withEntry(history, 3, { token: token.slice(0, -1) + alphabet[first + i] })),
  );
  assert.deepEqual(verdicts, ['ok', ...Array<string>(15).fill('format')]);
});

test('reports follow the table: none to any, unknown to ran or failed, ran or unknown to compensated', () => {
  const outcomes = ['ran', 'failed', 'outcome_unknown', 'compensated'] as const;
  const allowed = new Set([
    'outcome_unknown ran',
    'outcome_unknown failed',
    'outcome_unknown compensated',
    'ran compensated',
  ]);
  for (const late of outcomes) {
    const none = signedHistory([
      { body: sampleBody(0) },
      { body: sampleBody(1, { reports: [{ step: 0, outcome: late }] }) },
    ]);
    assert.equal(faultOf(none), 'ok');
    for (const before of outcomes) {
      const steps = [
        { body: sampleBody(0), report: { outcome: before } },
        { body: sampleBody(1, { reports: [{ step: 0, outcome: late }] }) },
      ];
      const history = signedHistory(steps);
      assert.equal(faultOf(history), allowed.has(`${before} ${late}`) ? 'ok' : 'outcome', `${before} then ${late}`);
      assert.equal(faultOf(cutHistory(nodeCrypto, history)), allowed.has(`${before} ${late}`) ? 'ok' : 'outcome');
    }
  }
});

test('of several keys one that was valid at the entry’s time must verify', () => {
  const old = sampleKey(8);
  const oldKey = nodeCrypto.publicKey(old.publicBytes);
  const newKey = nodeCrypto.publicKey(GATEWAY_KEY.publicBytes);
  const at = NOW - 10_000;
  const history = signedHistory([{ body: sampleBody(0) }], old);
  const verdict = (key: object): string =>
    faultOf(
      history,
      sampleOptions({
        issuers: new Map([['shop-gateway', { keys: [{ key: newKey }, { key: oldKey, ...key }], limits: 'none' }]]),
      }),
    );
  assert.equal(verdict({}), 'ok');
  assert.equal(verdict({ notBefore: at, notAfter: at }), 'ok');
  assert.equal(verdict({ notAfter: at - 1 }), 'key');
  assert.equal(verdict({ notBefore: at + 1 }), 'key');
  assert.equal(verdict({ revokedAt: at }), 'key');
  assert.equal(verdict({ revokedAt: at + 1 }), 'ok');
  assert.equal(faultOf(history), 'signature');
  const gone = new Map([['shop-gateway', { keys: [{ key: oldKey, notAfter: at - 1 }], limits: 'none' as const }]]);
  assert.equal(faultOf(history, sampleOptions({ issuers: gone })), 'key');
});

test('an issuer admits only its agents and tools', () => {
  const history = signedHistory([{ body: sampleBody(0, { tool: 'own/tool' }) }, { body: sampleBody(1) }]);
  const { keys } = issuerOf(GATEWAY_KEY);
  const verdict = (agents: string[], tools: string[]): string =>
    faultOf(
      history,
      sampleOptions({
        issuers: new Map([['shop-gateway', { keys, limits: { agents: new Set(agents), tools: new Set(tools) } }]]),
      }),
    );
  assert.equal(verdict(['desk'], ['shop/get_order']), 'ok');
  assert.equal(verdict([], ['shop/get_order']), 'key');
  assert.equal(verdict(['desk'], ['own/tool']), 'key');
});

test('the future is a minute of skew away, and a receipt is old after its age and that minute', () => {
  const dated = (at: number): WholeHistory => signedHistory([{ body: sampleBody(0, { at }) }]);
  assert.equal(faultOf(dated(NOW + 60_000)), 'ok');
  assert.equal(faultOf(dated(NOW + 60_001)), 'future');
  assert.equal(faultOf(dated(0)), 'ok');
  const options = sampleOptions({ maxAgeMs: 300_000 });
  assert.equal(faultOf(dated(NOW - 360_000), options), 'ok');
  assert.equal(faultOf(dated(NOW - 360_001), options), 'expired');
});

test('a known prefix costs no signature: only what is new is verified', () => {
  let verified = 0;
  const inner = nodeCrypto.publicKey(GATEWAY_KEY.publicBytes);
  const key = {
    bytes: inner.bytes,
    verify(message: Uint8Array, signature: Uint8Array): boolean {
      verified++;
      return inner.verify(message, signature);
    },
  };
  const issuers = new Map([['shop-gateway', { keys: [{ key }], limits: 'none' as const }]]);
  const options = sampleOptions({ issuers, cache: new Map() });
  const history = signedHistory(Array.from({ length: 50 }, (_, i) => ({ body: sampleBody(i) })));
  const cost = (value: History): number => {
    verified = 0;
    accepted(value, options);
    return verified;
  };
  const upTo = (length: number): History => ({ ...history, entries: history.entries.slice(0, length) });
  assert.equal(cost(upTo(48)), 48);
  assert.equal(cost(upTo(48)), 0);
  assert.equal(cost(upTo(49)), 1);
  assert.equal(cost(cutHistory(nodeCrypto, history, 48)), 1);
  assert.equal(cost(history), 1);
  assert.equal(cost(cutHistory(nodeCrypto, history, 48)), 0);
  assert.equal(cost(upTo(49)), 0);
});

test('a history to begin has no header yet, and a begun one may be empty', () => {
  assert.deepEqual(parseHistory({ format: 'qls-history/1', entries: [] }), { kind: 'opening' });
  assert.deepEqual(parseHistory({ format: 'qls-history/1', session: 's', entries: [] }), {
    kind: 'opening',
    session: 's',
  });
  assert.throws(() => parseHistory({ format: 'qls-history/1', session: '', entries: [] }), { fault: 'format' });
  assert.throws(() => parseHistory({ format: 'qls-history/1', x: 1, entries: [] }), { fault: 'format' });
  assert.throws(() => parseHistory({ format: 'qls-history/1', nonce: HEADER.nonce, entries: [] }), { fault: 'format' });
  assert.equal(parseHistory({ ...HEADER, entries: [] }).kind, 'whole');
  assert.equal(bytesOf(HEADER.nonce).length, 16);
});

test('values that are no history at all are a format fault and nothing else', () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      assert.throws(() => parseHistory(value as JsonValue), HistoryFault);
    }),
  );
});
