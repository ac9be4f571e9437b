import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { type Answer, CarriedHistory, KEYS, startWorld, TYPED, type World } from './world.ts';

type Json = Record<string, unknown>;

const RULEBOOK = `define user ask refund
  "refund an order"

define flow refunds
  user ask refund
  if $order_paid and $manager_agrees
    execute refund_card
  else
    bot refuse
`;

const READ = { tool: 'get_order', arguments: { order_id: '4411' } };
const CHARGE = { tool: 'charge_card', arguments: { order_id: '4411', amount: 40 }, ...TYPED };
const BILLING = { agent: 'billing' };

/** A world of its own for what carries over from session to session. */
async function inWorld(use: (world: World) => Promise<void>): Promise<void> {
  const world = await startWorld();
  try {
    await use(world);
  } finally {
    await world.close();
  }
}

describe('what an agent says', () => {
  let world: World;
  before(async () => {
    const change = { rulebook: './policy.co', facts: { order_paid: { from: 'get_order.status == paid' } } };
    world = await startWorld(change, {}, { files: { 'policy.co': RULEBOOK } });
  });
  after(() => world.close());

  test('of origins and turns makes no value trusted', async () => {
    for (const word of [
      'typed',
      'reply',
      'context',
      'computed',
      'model',
      'result:0',
      'result:0.order_id',
      'result:99.x',
      'nonsense',
    ]) {
      const body = {
        tool: 'note',
        arguments: { text: 'A1', number: 40 },
        origins: { text: word, number: word },
        turns: TYPED.turns,
      };
      const answer = await world.check(body, KEYS.billing);
      assert.equal(answer.reason, 'argument_origin: text, number', word);
      assert.equal(answer.confirmation?.token, undefined);
      const shown = (answer.detail['arguments'] ?? []) as { origin: string }[];
      assert.doesNotMatch(JSON.stringify(shown.map(({ origin }) => origin)), /typed|reply|context|computed/, word);
    }
    const host = await world.check({
      tool: 'note',
      arguments: { text: 'A1' },
      origins: { text: 'typed' },
      turns: TYPED.turns,
      ...BILLING,
    });
    assert.equal(host.decision, 'allow');
  });

  test('of facts sets none, and nobody sets one that the config names', async () => {
    const refund = { tool: 'refund_card', arguments: { order_id: '4412', amount: 1 }, ...BILLING };
    const context = { order_paid: true, manager_agrees: true };
    for (const [key, session] of [
      [KEYS.app, 'host-facts'],
      [KEYS.billing, 'agent-facts'],
    ] as const) {
      const before = await world.check({ ...refund, context, session }, key);
      assert.equal(before.reason, 'refuse', `no answer says that the order is paid: ${JSON.stringify(before)}`);
      const read = await world.call({ tool: 'get_order', arguments: { order_id: '4412' }, ...BILLING, session }, key);
      assert.equal((read.result as Json)['status'], 'paid');
      const then = await world.check({ ...refund, context, session }, key);
      assert.equal(
        then.reason,
        key === KEYS.app ? 'argument_origin: order_id, amount' : 'refuse',
        JSON.stringify(then),
      );
    }
  });

  test('of outcomes is recorded and loosens nothing', async () => {
    const session = 'agent-says-ran';
    const read = await world.check({ ...READ, session, ...BILLING }, KEYS.billing);
    assert.equal(read.decision, 'allow');
    const told = await world.post(
      '/v1/outcomes',
      { session, step: 0, outcome: 'ran', result: { status: 'paid', order_id: '4411' } },
      KEYS.billing,
    );
    assert.equal(told.status, 200, told.text);
    assert.equal((told.json as Json)['believed'], false);
    const charge = await world.check({ ...CHARGE, session, ...BILLING }, KEYS.billing);
    assert.equal(charge.reason, 'order_rule', '`after` counts what the gateway, or a host, saw');
    const bound = {
      tool: 'note',
      arguments: { text: '4411' },
      origins: { text: 'result:0.order_id' },
      session,
      ...BILLING,
    };
    assert.equal((await world.check(bound, KEYS.billing)).reason, 'argument_origin: text');

    const carried = new CarriedHistory();
    carried.take(await world.check({ ...READ, history: carried.value, ...BILLING }, KEYS.billing));
    Object.assign(carried.entries[0] ?? {}, { outcome: 'ran' });
    const after = await world.check({ ...CHARGE, history: carried.value, ...BILLING }, KEYS.billing);
    assert.equal(after.reason, 'order_rule', 'nor does an outcome that it carries');
  });

  test('of what failed gives back no place of `at_most`', async () => {
    const session = 'agent-at-most';
    const call = { ...READ, session, ...BILLING };
    assert.equal((await world.call(call, KEYS.billing)).outcome, 'ran');
    for (let place = 0; place < 2; place += 1) {
      const asked = await world.check(
        { ...CHARGE, arguments: { order_id: '4411', amount: place }, session, ...BILLING },
        KEYS.billing,
      );
      assert.equal(asked.decision, 'confirm', JSON.stringify(asked));
      await world.post(`/v1/confirmations/${asked.confirmation?.id}/approve`, undefined, KEYS.ana);
      const allowed = await world.check(
        { ...CHARGE, arguments: { order_id: '4411', amount: place }, session, ...BILLING },
        KEYS.billing,
      );
      assert.equal(allowed.reason, 'confirmed', JSON.stringify(allowed));
      const told = await world.post('/v1/outcomes', { session, step: allowed.step, outcome: 'failed' }, KEYS.billing);
      assert.equal(told.status, 200);
    }
    const third = await world.check({ ...CHARGE, session, ...BILLING }, KEYS.billing);
    assert.equal(third.detail['rule'], 'at_most 2', JSON.stringify(third));
  });

  test('of another agent, or of a tool that is another’s, is unknown_tool', async () => {
    const cases: readonly (readonly [string, Json])[] = [
      [KEYS.desk, { tool: 'refund_card', arguments: { order_id: '1', amount: 1 } }],
      [KEYS.desk, { tool: 'shop/refund_card', arguments: {} }],
      [KEYS.desk, { ...READ, agent: 'billing' }],
      [KEYS.desk, { ...READ, agent: 'nobody' }],
      [KEYS.billing, { ...READ, agent: 'desk' }],
      [KEYS.otherApp, { ...READ, agent: 'desk' }],
      [KEYS.app, { ...READ, agent: 'root' }],
      [KEYS.app, { tool: 'shop/Get_order', arguments: {}, agent: 'desk' }],
      [KEYS.app, { tool: 'shop/get_order ', arguments: {}, agent: 'desk' }],
      [KEYS.app, { tool: 'toString', arguments: {}, agent: 'desk' }],
      [KEYS.app, { tool: '__proto__', arguments: {}, agent: 'desk' }],
    ];
    for (const [key, body] of cases) {
      const answer = await world.check(body, key);
      assert.equal(answer.reason, 'unknown_tool', JSON.stringify(answer));
      assert.deepEqual(answer.detail, {}, JSON.stringify(body));
    }
    assert.equal((await world.check(READ)).reason, 'agent_required');
    const mine = await world.get('/v1/tools', KEYS.desk);
    assert.doesNotMatch(mine.text, /refund_card"/, 'nor is it listed');
  });
});

describe('what an agent cannot shake off', () => {
  const taintedNote = { tool: 'note', arguments: { text: 'A1' } };

  test('a taint, and `not_after`: by a new session, a broken, foreign or opened history', () =>
    inWorld(async (world) => {
      const clean = await world.check({ ...taintedNote, session: 'clean' }, KEYS.billing);
      assert.equal(clean.reason, 'argument_origin: text');
      const carried = new CarriedHistory();
      carried.take(await world.check({ tool: 'read_inbox', arguments: {}, history: carried.value }, KEYS.billing));
      const broken = carried.copy();
      Object.assign(broken.entries[0] ?? {}, { tool: 'shop/get_order' });
      const ways: Readonly<Record<string, Json>> = {
        'no session': {},
        'a new session': { session: 'fresh' },
        'a new carried history': { history: { format: 'qls-history/1', entries: [] } },
        'a named one': { history: { format: 'qls-history/1', session: 'fresh-2', entries: [] } },
        'the old one, without its entries': { history: { ...carried.header, entries: [] } },
        'the old id, opened again': {
          history: { format: 'qls-history/1', session: carried.header['session'], entries: [] },
        },
        'the old one as a held one': { session: carried.header['session'] },
      };
      for (const [name, members] of Object.entries(ways)) {
        const first = await world.check({ ...taintedNote, ...members }, KEYS.billing);
        const next = first.reason === 'history_invalid' ? await followUp(world, first) : first;
        assert.deepEqual(next.reasons, ['argument_origin: text', 'tainted_call'], `${name}: ${JSON.stringify(next)}`);
        const charge = await world.check({ ...CHARGE, ...members }, KEYS.billing);
        assert.notEqual(charge.decision, 'allow', name);
      }
      const anew = new CarriedHistory();
      anew.take(await world.check({ ...taintedNote, history: broken.value }, KEYS.billing));
      const tainted = await world.check({ ...taintedNote, history: anew.value }, KEYS.billing);
      assert.deepEqual(tainted.reasons, ['argument_origin: text', 'tainted_call']);

      const read = await world.call({ ...READ, session: 'later' }, KEYS.billing);
      assert.equal(read.outcome, 'ran');
      const charge = await world.check({ ...CHARGE, session: 'later' }, KEYS.billing);
      assert.equal(charge.detail['rule'], 'not_after read_inbox');
      const other = await world.check({ ...taintedNote, session: 'other' }, KEYS.desk);
      assert.equal(other.reason, 'argument_origin: text', 'another caller is not tainted by it');
    }));

  test('`at_most`, by new sessions', () =>
    inWorld(async (world) => {
      for (let round = 0; round < 3; round += 1) {
        const session = `round-${round}`;
        await world.call({ ...READ, session }, KEYS.billing);
        const asked = await world.check({ ...CHARGE, session }, KEYS.billing);
        if (round === 2) {
          assert.equal(asked.detail['rule'], 'at_most 2', JSON.stringify(asked));
          continue;
        }
        await world.post(`/v1/confirmations/${asked.confirmation?.id}/approve`, undefined, KEYS.ana);
        assert.equal((await world.call({ ...CHARGE, session }, KEYS.billing)).check.decision, 'allow');
      }
    }));

  test('a taint, `not_after` and `at_most`, by sessions that were opened before', () =>
    inWorld(async (world) => {
      const sessions = ['before-0', 'before-1', 'before-2'];
      for (const session of sessions) await world.call({ ...READ, session }, KEYS.billing);
      const asked = [];
      for (const session of sessions) {
        const answer = await world.check({ ...CHARGE, session }, KEYS.billing);
        await world.post(`/v1/confirmations/${answer.confirmation?.id}/approve`, undefined, KEYS.ana);
        asked.push(answer);
      }
      const calls = sessions.map((session) => world.call({ ...CHARGE, session }, KEYS.billing));
      const decisions = (await Promise.all(calls)).map(({ check }) => check.decision);
      assert.deepEqual(decisions.sort(), ['allow', 'allow', 'refuse'], 'two at once never both take the last place');
      const clean = await world.check({ ...taintedNote, session: 'before-0' }, KEYS.billing);
      assert.deepEqual(clean.reasons, ['argument_origin: text']);
      await world.check({ tool: 'read_inbox', arguments: {}, session: 'before-1' }, KEYS.billing);
      const tainted = await world.check({ ...taintedNote, session: 'before-0' }, KEYS.billing);
      assert.deepEqual(tainted.reasons, ['argument_origin: text', 'tainted_call']);
      const host = await world.check({ ...taintedNote, agent: 'billing', session: 'hosts-own' });
      assert.deepEqual(host.reasons, ['argument_origin: text'], "a host's sessions are those of different people");
    }));
});

/** The same call again in the history that an answer started. */
async function followUp(world: World, first: Answer): Promise<Answer> {
  const anew = new CarriedHistory();
  anew.take(first);
  const members = first.history === undefined ? { session: first.session } : { history: anew.value };
  return world.check({ tool: 'note', arguments: { text: 'A1' }, ...members }, KEYS.billing);
}
