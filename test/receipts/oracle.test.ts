import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { canonicalize } from '../../receipts/canonical.ts';
import { openConfirmation, signConfirmation } from '../../receipts/confirmation.ts';
import { nodeCrypto } from '../../receipts/crypto-node.ts';
import { argumentsDigest } from '../../receipts/digest.ts';
import { HistoryFault, type WholeHistory } from '../../receipts/history.ts';
import { cutHistory } from '../../receipts/history-cut.ts';
import { parseHistory } from '../../receipts/history-parse.ts';
import { type Issuer, type VerifyOptions, verifyHistory } from '../../receipts/history-verify.ts';
import { parseJson } from '../../receipts/json.ts';
import { JsonFault } from '../../receipts/json-fault.ts';
import type { JsonArray, JsonObject, JsonValue } from '../../receipts/json-value.ts';
import {
  h,
  jcs,
  type OracleOptions,
  oracleConfirmation,
  oracleCut,
  oracleHistory,
  oracleKey,
  oracleVerdict,
} from './oracle.ts';
import { oracleProfile } from './oracle-json.ts';
import { bytesOf, GATEWAY_KEY, HEADER, NOW, richHistory, SOME_DIGEST, sampleKey } from './sample.ts';

const DESK_KEY = sampleKey(11);

/** What both are given: the gateway with a key that was replaced, and an issuer with limits. */
const ORACLE_OPTIONS: OracleOptions = {
  now: NOW,
  audience: 'shop-gateway',
  maxAgeMs: 300_000,
  issuers: {
    'shop-gateway': {
      keys: [{ raw: sampleKey(8).publicBytes, notAfter: NOW - 30_000 }, { raw: GATEWAY_KEY.publicBytes }],
    },
    'desk-runtime': {
      keys: [{ raw: DESK_KEY.publicBytes, revokedAt: NOW }],
      agents: ['desk'],
      tools: ['shop/get_order'],
    },
  },
};

const OPTIONS: VerifyOptions = {
  crypto: nodeCrypto,
  now: NOW,
  audience: 'shop-gateway',
  maxAgeMs: 300_000,
  issuers: new Map(
    Object.entries(ORACLE_OPTIONS.issuers).map(([id, { keys, agents, tools }]): [string, Issuer] => {
      const limits = agents && tools ? { agents: new Set(agents), tools: new Set(tools) } : ('none' as const);
      return [id, { keys: keys.map(({ raw, ...span }) => ({ key: nodeCrypto.publicKey(raw), ...span })), limits }];
    }),
  ),
};

function verdict(value: JsonValue): string {
  try {
    const carried = parseHistory(value);
    if (carried.kind === 'opening') return 'opening';
    verifyHistory(carried.history, OPTIONS);
    return 'ok';
  } catch (error) {
    if (error instanceof HistoryFault) return `${error.fault} ${error.entry}`;
    throw error;
  }
}

/** Both verdicts, which must be one. */
function agreed(value: JsonValue): string {
  const ours = verdict(value);
  assert.equal(oracleVerdict(value, ORACLE_OPTIONS), ours, canonicalize(value));
  return ours;
}

const outcomes = fc.constantFrom('ran', 'failed', 'outcome_unknown', 'compensated');
const digests = fc
  .uint8Array({ minLength: 32, maxLength: 32 })
  .map((bytes) => Buffer.from(bytes).toString('base64url'));
const reports = fc.oneof(
  fc.constant({}),
  fc.record({ outcome: outcomes, result: digests }, { requiredKeys: ['outcome'] }),
);
const texts = fc.oneof(
  fc.constantFrom('', 'desk', 'shop/get_order', 'é\u{1f600}'),
  fc.string({ unit: 'binary', maxLength: 8 }),
);

/** Entries without tokens, most of them as they may be. */
const entries = fc
  .array(
    fc.record({
      base: fc.record({
        tool: fc.oneof({ weight: 3, arbitrary: fc.constant('shop/get_order') }, { weight: 1, arbitrary: texts }),
        agent: fc.oneof({ weight: 3, arbitrary: fc.constant('desk') }, { weight: 1, arbitrary: texts }),
        arguments: digests,
        origins: digests,
        labels: fc.uniqueArray(texts, { maxLength: 3 }).map((labels) => labels.sort()),
        decision: fc.oneof(
          { weight: 4, arbitrary: fc.constant('allow') },
          { weight: 1, arbitrary: fc.constantFrom('confirm', 'refuse') },
        ),
        reasons: fc.array(texts, { maxLength: 2 }),
        at: fc.oneof(
          { weight: 8, arbitrary: fc.integer({ min: NOW - 40_000, max: NOW }) },
          { weight: 1, arbitrary: fc.integer({ min: NOW - 400_000, max: NOW + 70_000 }) },
        ),
        policy: texts,
      }),
      more: fc.record({ run: texts, undoes: fc.nat(5) }, { requiredKeys: [] }),
      late: fc.option(fc.record({ back: fc.integer({ min: 1, max: 3 }), outcome: outcomes }), { freq: 3 }),
      report: reports,
    }),
    { maxLength: 5 },
  )
  .map((drawn) =>
    drawn.map(({ base, more, late, report }, step): JsonObject => {
      const of = late === null ? -1 : step - late.back;
      const told = of < 0 ? {} : { reports: [{ step: of, outcome: late?.outcome ?? 'ran' }] };
      const kept = base.decision === 'allow' ? report : {};
      return { step, ...base, ...more, ...told, ...kept };
    }),
  );

const signers = fc.constantFrom(
  { issuer: 'shop-gateway', seed: 7 },
  { issuer: 'shop-gateway', seed: 7 },
  { issuer: 'shop-gateway', seed: 8 },
  { issuer: 'desk-runtime', seed: 11 },
  { issuer: 'stranger', seed: 7 },
);

const histories = fc.tuple(signers, entries).map(([{ issuer, seed }, list]): JsonObject => {
  const made = oracleHistory({ ...HEADER, issuer }, list, oracleKey(new Uint8Array(32).fill(seed)));
  return parseJson(jcs(made)) as JsonObject;
});

test('the second implementation makes histories that are accepted, and both agree where one is not', () => {
  const seen = new Map<string, number>();
  fc.assert(
    fc.property(histories, (history) => {
      const fault = agreed(history).split(' ')[0] ?? '';
      seen.set(fault, (seen.get(fault) ?? 0) + 1);
      const length = (history['entries'] as JsonArray).length;
      for (let n = 0; n < length; n++) {
        const cut = parseJson(jcs(oracleCut(history, n)));
        agreed(cut);
        assert.deepEqual(cut, cutHistory(nodeCrypto, history as unknown as WholeHistory, n));
      }
    }),
    { numRuns: 300 },
  );
  for (const fault of ['ok', 'outcome', 'key']) assert.ok((seen.get(fault) ?? 0) > 10, fault);
});

/** A JSON value in, the same with one place changed: a member dropped, doubled, renamed, replaced or swapped. */
const tamperings = fc.record({
  place: fc.nat(),
  kind: fc.constantFrom('drop', 'replace', 'rename', 'swap', 'edit'),
  value: fc.oneof(
    texts,
    digests,
    fc.integer({ min: -1, max: 6 }),
    fc.constantFrom<JsonValue[]>(null, [], {}, 1.5, 'failed', [{ step: 0, outcome: 'ran' }]),
  ),
});

type Tampering = typeof tamperings extends fc.Arbitrary<infer T> ? T : never;

function tamper(value: JsonValue, { place, kind, value: other }: Tampering): JsonValue {
  const copy: unknown = structuredClone(value);
  const places: { readonly holder: Record<string, JsonValue>; readonly key: string }[] = [];
  const walk = (holder: unknown): void => {
    if (typeof holder !== 'object' || holder === null) return;
    for (const key of Object.keys(holder)) {
      places.push({ holder: holder as Record<string, JsonValue>, key });
      walk((holder as Record<string, unknown>)[key]);
    }
  };
  walk(copy);
  const chosen = places[place % places.length];
  if (chosen === undefined) return null;
  const { holder, key } = chosen;
  const held = holder[key] ?? null;
  if (Array.isArray(holder)) {
    if (kind === 'drop') holder.splice(Number(key), 1);
    else if (kind === 'swap') holder.reverse();
    else if (kind === 'rename') holder.push(held);
    else holder[key] = kind === 'edit' ? edited(held) : other;
  } else if (kind === 'drop') delete holder[key];
  else if (kind === 'rename') {
    delete holder[key];
    holder[`${key}x`] = held;
  } else holder[key] = kind === 'edit' ? edited(held) : other;
  return copy as JsonValue;
}

/** The least change of a value. */
function edited(value: JsonValue): JsonValue {
  if (typeof value === 'number') return value + 1;
  if (typeof value !== 'string' || value === '') return 'x';
  const last = value.charCodeAt(value.length - 1);
  return value.slice(0, -1) + String.fromCharCode(last ^ 1);
}

test('both agree on every tampering with a good history, whole or cut', () => {
  const whole = parseJson(canonicalize(richHistory())) as JsonObject;
  const goods = [whole, ...[0, 1, 2, 3].map((n) => parseJson(jcs(oracleCut(whole, n))))];
  for (const good of goods) assert.equal(agreed(good), 'ok');
  const seen = new Set<string>();
  fc.assert(
    fc.property(fc.constantFrom(...goods), fc.array(tamperings, { minLength: 1, maxLength: 2 }), (good, list) => {
      const changed = list.reduce(tamper, good);
      const opening = typeof changed === 'object' && changed !== null && verdict(changed) === 'opening';
      if (!opening) seen.add(agreed(changed).split(' ')[0] ?? '');
    }),
    { numRuns: 3000 },
  );
  for (const fault of ['ok', 'format', 'order', 'signature', 'audience', 'key']) assert.ok(seen.has(fault), fault);
});

test('both agree on transplants: entries, tokens, headers and reports of one history in another', () => {
  const one = parseJson(canonicalize(richHistory())) as JsonObject;
  const other = parseJson(
    jcs(oracleHistory({ ...HEADER, session: 'chat-18' }, stripped(one), oracleKey(new Uint8Array(32).fill(7)))),
  ) as JsonObject;
  assert.equal(agreed(other), 'ok');
  const [mine, theirs] = [one['entries'] as JsonArray, other['entries'] as JsonArray];
  for (let i = 0; i < mine.length; i++) {
    const entry = mine[i] as JsonObject;
    const foreign = theirs[i] as JsonObject;
    assert.match(agreed({ ...one, entries: mine.with(i, foreign) }), /^signature /);
    assert.match(
      agreed({ ...one, entries: mine.with(i, { ...entry, token: foreign['token'] ?? null }) }),
      /^signature /,
    );
    assert.match(agreed({ ...one, entries: [...mine.slice(0, i), ...theirs.slice(i)] }), /^signature /);
  }
  for (const member of Object.keys(one).filter((name) => name !== 'entries')) {
    const changed = { ...one, [member]: other[member] ?? null };
    assert.equal(agreed(changed), member === 'session' ? 'signature 0' : 'ok');
  }
});

function stripped(history: JsonObject): JsonObject[] {
  return (history['entries'] as JsonArray).map((entry) => {
    const { token: _token, ...rest } = entry as JsonObject;
    return rest;
  });
}

test('both take the same texts for JSON under the profile', () => {
  const pieces = [
    '{',
    '}',
    '[',
    ']',
    ',',
    ':',
    '"a"',
    '"\\u0061"',
    '"__proto__"',
    '"\\ud800"',
    '"\\ud83d\\ude00"',
    '1',
    '-0',
    '0.10',
    '1e3',
    '1e-400',
    '0.30000000000000004',
    '0.300000000000000040',
    '0.3000000000000000444',
    '9007199254740993',
    '9007199254740993.0',
    '-0.0e9',
    'null',
    ' ',
  ];
  const numbers = fc
    .tuple(
      fc.constantFrom('', '-'),
      fc.bigInt({ min: 0n, max: 10n ** 25n }),
      fc.constantFrom('', '.'),
      fc.nat(),
      fc.constantFrom('', 'e', 'E-'),
      fc.nat(400),
    )
    .map(([sign, whole, point, part, e, power]) => sign + whole + (point && point + part) + (e && e + power));
  const lists = fc.array(fc.oneof(fc.constantFrom(...pieces.filter((p) => p.length > 1)), numbers), { maxLength: 4 });
  const nested = lists.map((list) => `[${list.join(',')}]`);
  const objects = lists.map(
    (list) => `{${list.map((item, i) => `${item.startsWith('"') ? item : `"k${i % 2}"`}:${item}`).join(', ')}}`,
  );
  const soup = fc.array(fc.constantFrom(...pieces), { maxLength: 10 }).map((list) => list.join(''));
  fc.assert(
    fc.property(fc.oneof(soup, nested, objects, numbers), (text) => {
      let ours = 'ok';
      try {
        assert.equal(jcs(parseJson(text)), canonicalize(parseJson(text)));
      } catch (error) {
        if (!(error instanceof JsonFault)) throw error;
        ours = error.code;
      }
      const theirs = oracleProfile(text);
      // A text that is not JSON at all may show another fault before the one that makes it so.
      if (theirs === 'syntax') assert.notEqual(ours, 'ok', text);
      else assert.equal(ours, theirs, text);
    }),
    { numRuns: 4000 },
  );
});

test('both give a digest and a confirmation the same meaning', () => {
  const nonce = bytesOf(HEADER.nonce);
  const args = { b: 1, a: ['é', 2 ** 60 + 0.0] };
  const expected = h('qls-arguments/1', Buffer.from(nonce), jcs(args)).toString('base64url');
  assert.equal(argumentsDigest(nodeCrypto, nonce, canonicalize(args)), expected);
  const keys = [{ key: nodeCrypto.publicKey(GATEWAY_KEY.publicBytes) }];
  const confirmation = {
    id: HEADER.nonce,
    session: 's',
    step: 1,
    link: SOME_DIGEST,
    tool: 't',
    agent: 'a',
    arguments: SOME_DIGEST,
    shown: SOME_DIGEST,
    expires: NOW,
  };
  for (const said of [confirmation, { ...confirmation, approver: 'ana' }]) {
    const token = signConfirmation(GATEWAY_KEY, said);
    for (const now of [NOW - 1, NOW]) {
      for (let i = -1; i < token.length; i += i < 0 || i > token.length - 4 ? 1 : 7) {
        const changed = i < 0 ? token : token.slice(0, i) + (token[i] === 'Q' ? 'R' : 'Q') + token.slice(i + 1);
        assert.equal(
          openConfirmation(changed, keys, now).state,
          oracleConfirmation(changed, GATEWAY_KEY.publicBytes, now),
        );
      }
    }
  }
});
