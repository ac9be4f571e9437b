import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { GateRefusal } from '../../policy/call.ts';
import type { Usage } from '../../policy/conditions/condition.ts';
import {
  type CountedCall,
  compileLimits,
  type LimitsSource,
  type Reservation,
} from '../../policy/conditions/limits.ts';
import { makeWindows } from '../../policy/conditions/period.ts';
import type { JsonObject } from '../../receipts/json-value.ts';

const HOUR_MS = 3_600_000;
const settings = { tenant: 'shop', windowOf: makeWindows('Europe/Lisbon'), carryMs: 24 * HOUR_MS };

function limitsOf(words: Partial<LimitsSource>): ReturnType<typeof compileLimits> {
  return compileLimits({ tool: 'shop/pay', limits: [], spend: [], currency: 'EUR', ...words }, settings);
}

function callOf(args: JsonObject, more: Partial<CountedCall> = {}): CountedCall {
  const nowMs = Date.parse('2026-03-28T12:00:00Z');
  return { nowMs, arguments: args, caller: { name: 'shop-app', host: true }, session: 's-1', ...more };
}

function counted(limits: ReturnType<typeof compileLimits>, call: CountedCall, amount: string): Usage {
  return { counted: new Map(limits.buckets(call).map(({ name }) => [name, amount])) };
}

function reasonOf(refusal: GateRefusal | undefined): string | undefined {
  return refusal?.reason;
}

test('a limit takes its last call and not one more', () => {
  const limits = limitsOf({ limits: [{ count: 3, per: 'day' }] });
  const call = callOf({});
  assert.equal(limits.check(call, counted(limits, call, '2'), 0), undefined);
  assert.deepEqual(limits.check(call, counted(limits, call, '3'), 0), {
    reason: 'limit_reached',
    detail: { limit: { count: 3, per: 'day' }, until: Date.parse('2026-03-29T00:00:00Z') },
  });
});

test('a pool of 100.00 takes two calls of 40.00 and a rest of 20', () => {
  const limits = limitsOf({ spend: [{ field: 'amount', at_most: '100.00', per: 'day', pool: 'trading' }] });
  const spends = (amount: number, before: string): string | undefined => {
    const call = callOf({ amount });
    return reasonOf(limits.check(call, counted(limits, call, before), 0));
  };
  assert.equal(spends(40, '0'), undefined);
  assert.equal(spends(40, '40'), undefined);
  assert.equal(spends(40, '80'), 'spend_exceeded');
  assert.equal(spends(20, '80'), undefined);
  assert.equal(spends(20.01, '80'), 'spend_exceeded');
});

test('decimals are added exactly', () => {
  const limits = limitsOf({ spend: [{ field: 'amount', at_most: 0.3, per: 'day' }] });
  const call = callOf({ amount: 0.2 });
  assert.equal(limits.check(call, counted(limits, call, '0.1'), 0), undefined);
  assert.equal(reasonOf(limits.check(call, counted(limits, call, '0.10000000000000001'), 0)), 'spend_exceeded');
  assert.deepEqual(
    limits.reserve(callOf({ amount: 1e-7 })).map(({ amount }) => amount),
    ['0.0000001'],
  );
});

test('a spend that is absent, negative or no number is unknown', () => {
  const limits = limitsOf({ spend: [{ field: 'amount', at_most: 25, per: 'call' }] });
  const bad: readonly JsonObject[] = [
    {},
    { amount: null },
    { amount: '5' },
    { amount: -0.01 },
    { amount: -5n },
    { amount: [5] },
    { amount: true },
    { amount: 1e300 },
    { amount: 5e-324 },
  ];
  for (const args of bad) {
    assert.equal(reasonOf(limits.check(callOf(args), { counted: new Map() }, 0)), 'spend_unknown');
    assert.deepEqual(limits.reserve(callOf(args)), []);
  }
  assert.equal(limits.check(callOf({ amount: 0 }), { counted: new Map() }, 0), undefined);
  assert.equal(limits.check(callOf({ amount: 25 }), { counted: new Map() }, 0), undefined);
  assert.equal(reasonOf(limits.check(callOf({ amount: 25.01 }), { counted: new Map() }, 0)), 'spend_exceeded');
  assert.equal(
    reasonOf(limits.check(callOf({ amount: 12345678901234567890n }), { counted: new Map() }, 0)),
    'spend_exceeded',
  );
});

test('a spend may be the sum of a list', () => {
  const limits = limitsOf({ spend: [{ field: 'items[].price', at_most: 0.3, per: 'day' }] });
  const call = callOf({ items: [{ price: 0.1 }, { price: 0.2 }] });
  assert.equal(limits.check(call, counted(limits, call, '0'), 0), undefined);
  assert.deepEqual(
    limits.reserve(call).map(({ amount }) => amount),
    ['0.3'],
  );
  const mixed = callOf({ items: [{ price: 0.1 }, { price: -0.1 }] });
  assert.equal(reasonOf(limits.check(mixed, counted(limits, mixed, '0'), 0)), 'spend_unknown');
});

test('what was not counted refuses', () => {
  const call = callOf({ amount: 1 });
  const spend = limitsOf({ spend: [{ field: 'amount', at_most: 5, per: 'day' }] });
  const calls = limitsOf({ limits: [{ count: 5, per: 'hour' }] });
  for (const usage of ['unknown', { counted: new Map<string, string>() }] as const) {
    assert.equal(reasonOf(spend.check(call, usage, 0)), 'spend_unknown');
    assert.equal(reasonOf(calls.check(call, usage, 0)), 'usage_unknown');
  }
});

test('a limit per run needs a run', () => {
  for (const words of [
    { limits: [{ count: 1, per: 'run' as const }] },
    { spend: [{ field: 'amount', at_most: 5, per: 'run' as const }] },
  ]) {
    const limits = limitsOf(words);
    const without = callOf({ amount: 1 });
    assert.equal(reasonOf(limits.check(without, counted(limits, without, '0'), 0)), 'usage_unknown');
    const within = callOf({ amount: 1 }, { run: 'r-1' });
    assert.equal(limits.check(within, counted(limits, within, '0'), 0), undefined);
    const other = callOf({ amount: 1 }, { run: 'r-1', caller: { name: 'another', host: true } });
    assert.notDeepEqual(namesOf(limits.reserve(within)), namesOf(limits.reserve(other)));
  }
});

test('what is counted of a kept session or run goes with that session, and none of its name goes on with the count', () => {
  for (const per of ['session', 'run'] as const) {
    const limits = limitsOf({ spend: [{ field: 'amount', at_most: 5, per }] });
    const [first, second] = ['sid-1', 'sid-2'].map((sid) => callOf({ amount: 1 }, { run: 'r-1', sid }));
    const [one, other] = [first, second].map((call) => limits.reserve(call ?? callOf({})));
    assert.deepEqual([one?.[0]?.sid, other?.[0]?.sid], ['sid-1', 'sid-2']);
    assert.notEqual(one?.[0]?.name, other?.[0]?.name);
    assert.equal(limits.reserve(callOf({ amount: 1 }, { run: 'r-1' }))[0]?.sid, undefined);
  }
});

test('calls per session are counted by the history of the session', () => {
  const limits = limitsOf({ limits: [{ count: 2, per: 'session' }] });
  const call = callOf({});
  assert.deepEqual(limits.buckets(call), []);
  assert.equal(limits.check(call, { counted: new Map() }, 1), undefined);
  assert.equal(reasonOf(limits.check(call, { counted: new Map() }, 2)), 'limit_reached');
});

test("an agent's spend per session follows it into its next session, a host's does not", () => {
  const limits = limitsOf({ spend: [{ field: 'amount', at_most: 5, per: 'session' }] });
  const host = callOf({ amount: 1 });
  const agent = callOf({ amount: 1 }, { caller: { name: 'desk', host: false } });
  assert.equal(limits.buckets(host).length, 1);
  const [first, second] = [limits.buckets(agent), limits.buckets({ ...agent, session: 's-2' })];
  assert.equal(first.length, 2);
  assert.notEqual(first[0]?.name, second[0]?.name);
  assert.deepEqual(first[1], second[1]);
  assert.equal(first[1]?.sinceMs, agent.nowMs - settings.carryMs + 1);
});

test('tools of one pool and currency share a count, others do not', () => {
  const spend = [{ field: 'amount', at_most: 5, per: 'day' as const, pool: 'trading' }];
  const nameIn = (words: Partial<LimitsSource>): string | undefined =>
    limitsOf(words).buckets(callOf({ amount: 1 }))[0]?.name;
  const own = nameIn({ spend });
  assert.equal(nameIn({ tool: 'shop/other', spend }), own);
  assert.notEqual(nameIn({ spend, currency: 'USD' }), own);
  assert.notEqual(nameIn({ spend: [{ field: 'amount', at_most: 5, per: 'day', pool: 'gifts' }] }), own);
  assert.notEqual(nameIn({ spend: [{ field: 'amount', at_most: 5, per: 'week', pool: 'trading' }] }), own);
  const alone = nameIn({ spend: [{ field: 'amount', at_most: 5, per: 'day' }] });
  assert.notEqual(alone, own);
  assert.notEqual(nameIn({ tool: 'shop/other', spend: [{ field: 'amount', at_most: 5, per: 'day' }] }), alone);
});

test('two fields of one call that spend from one pool count together', () => {
  const limits = limitsOf({
    spend: [
      { field: 'amount', at_most: 10, per: 'day', pool: 'p' },
      { field: 'fee', at_most: 10, per: 'day', pool: 'p' },
    ],
  });
  const call = callOf({ amount: 8, fee: 3 });
  assert.equal(reasonOf(limits.check(call, counted(limits, call, '0'), 0)), 'spend_exceeded');
  const less = callOf({ amount: 8, fee: 2 });
  assert.equal(limits.check(less, counted(limits, less, '0'), 0), undefined);
});

test('minute and hour slide, the others are fixed when the call is reserved', () => {
  const limits = limitsOf({
    limits: [
      { count: 1, per: 'minute' },
      { count: 2, per: 'hour' },
      { count: 3, per: 'day' },
      { count: 4, per: 'week' },
      { count: 5, per: 'month' },
    ],
  });
  const beforeMidnight = callOf({}, { nowMs: Date.parse('2026-03-28T23:59:59.999Z') });
  const atMidnight = callOf({}, { nowMs: Date.parse('2026-03-29T00:00:00Z') });
  const [one, other] = [limits.reserve(beforeMidnight), limits.reserve(atMidnight)];
  assert.deepEqual(
    one.map(({ sinceMs }) => (sinceMs === undefined ? undefined : beforeMidnight.nowMs - sinceMs)),
    [59_999, HOUR_MS - 1, undefined, undefined, undefined],
  );
  assert.equal(one[2]?.untilMs, atMidnight.nowMs);
  assert.notEqual(one[2]?.name, other[2]?.name);
  assert.deepEqual(namesOf(one).toSpliced(2, 1), namesOf(other).toSpliced(2, 1));
  // The day on which clocks go forward has 23 hours.
  assert.equal(other[2]?.untilMs, atMidnight.nowMs + 23 * HOUR_MS);
});

test('limits are judged in the order in which they are written, counts before spend', () => {
  const limits = limitsOf({
    limits: [{ count: 1, per: 'hour' }],
    spend: [{ field: 'amount', at_most: 1, per: 'call' }],
  });
  const call = callOf({ amount: 5 });
  assert.equal(reasonOf(limits.check(call, counted(limits, call, '1'), 0)), 'limit_reached');
  assert.equal(reasonOf(limits.check(call, counted(limits, call, '0'), 0)), 'spend_exceeded');
});

function namesOf(reservations: readonly Reservation[]): readonly string[] {
  return reservations.map(({ name }) => name);
}
