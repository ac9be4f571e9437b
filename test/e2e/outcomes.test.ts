import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { nodeCrypto } from '../../receipts/crypto-node.ts';
import { parseHistory } from '../../receipts/history-parse.ts';
import { type VerifiedHistory, verifyHistory } from '../../receipts/history-verify.ts';
import { parseJson } from '../../receipts/json.ts';
import { type Answer, type Called, CarriedHistory, KEYS, startWorld, TYPED, type World } from './world.ts';

type Json = Record<string, unknown>;

let world: World;
before(async () => {
  world = await startWorld();
});
after(() => world.close());

const BILLING = { agent: 'billing' } as const;
const READ = { tool: 'get_order', arguments: { order_id: '4411' }, ...BILLING };
const CHARGE = { tool: 'charge_card', arguments: { order_id: '4411', amount: 40 }, ...TYPED, ...BILLING };
const REFUND = { tool: 'refund_card', arguments: { order_id: '4411', amount: 40 }, ...BILLING };
const CREATE = {
  tool: 'create_order',
  arguments: { sku: 'A1', quantity: 1 },
  origins: { sku: 'typed', quantity: 'computed' },
  turns: TYPED.turns,
  ...BILLING,
};

async function approved(body: Json, how: 'check' | 'call' = 'call'): Promise<Called> {
  const asked = await world.check(body);
  assert.equal(asked.decision, 'confirm', JSON.stringify(asked));
  const again = { ...body, confirmation: asked.confirmation?.token };
  const made = how === 'call' ? await world.call(again) : { check: await world.check(again) };
  assert.equal(made.check.reason, 'confirmed', JSON.stringify(made));
  return made;
}

/** The history that the gateway hands out, verified with the public key alone. */
async function exported(session: string, key?: string): Promise<VerifiedHistory> {
  const answer = await world.get(`/v1/sessions/${session}`, key);
  assert.equal(answer.status, 200, answer.text);
  const parsed = parseHistory(parseJson(answer.text));
  assert.equal(parsed.kind, 'whole');
  if (parsed.kind !== 'whole') throw new Error('not whole');
  const { ownKeys, issuer, audience } = world.gateway.gateway.loaded;
  return verifyHistory(parsed.history, {
    crypto: nodeCrypto,
    now: Date.now(),
    audience,
    session,
    issuers: new Map([[issuer, { keys: ownKeys, limits: 'none' }]]),
  });
}

async function told(session: string, step: number, outcome: string, more: Json = {}, key?: string): Promise<number> {
  return (await world.post('/v1/outcomes', { session, step, outcome, ...more }, key)).status;
}

describe('a report of a host on a call that it ran itself', () => {
  test('counts: `after`, values of its result, `at_most`', async () => {
    const session = 'host-runs';
    const read = await world.check({ ...READ, session });
    assert.equal((await world.check({ ...CHARGE, session })).reason, 'order_rule');
    assert.equal(await told(session, read.step, 'ran', { result: { order_id: '4411', status: 'open' } }), 200);
    const note = {
      tool: 'note',
      arguments: { text: '4411' },
      origins: { text: `result:${read.step}.order_id` },
      session,
      ...BILLING,
    };
    assert.equal((await world.check(note)).decision, 'allow');
    assert.equal((await world.check({ ...note, arguments: { text: '4412' } })).decision, 'confirm');
    for (let round = 0; round < 3; round += 1) {
      const charge = await approved({ ...CHARGE, session }, 'check');
      assert.equal(await told(session, charge.check.step, 'failed'), 200);
    }
    const { reports } = await exported(session);
    assert.equal(reports.get(0)?.outcome, 'ran');
  });

  test('is refused where it cannot follow, names no step, or comes from someone else', async () => {
    const session = 'host-reports';
    const read = await world.check({ ...READ, session });
    const refused = await world.check({ ...READ, arguments: {}, session });
    assert.equal(await told(session, refused.step, 'ran'), 409);
    assert.equal(await told(session, 7, 'ran'), 404);
    assert.equal(await told('no-such-session', 0, 'ran'), 404);
    assert.equal(await told(session, read.step, 'ran', {}, KEYS.otherApp), 404);
    assert.equal(await told(session, read.step, 'ran', {}, KEYS.ana), 403);
    assert.equal(await told(session, read.step, 'ran', {}, 'nobody'), 401);
    assert.equal(await told(session, read.step, 'done'), 400);
    assert.equal(await told(session, -1, 'ran'), 400);
    assert.equal(await told(session, read.step, 'ran', { more: 1 }), 400);
    assert.equal(await told(session, read.step, 'outcome_unknown'), 200);
    assert.equal(await told(session, read.step, 'ran'), 200);
    assert.equal(await told(session, read.step, 'failed'), 409);
    assert.equal(await told(session, read.step, 'compensated'), 200);
    assert.equal(await told(session, read.step, 'ran'), 409);
    await exported(session);
  });
});

describe('a report on a call that the gateway forwarded', () => {
  test('is 409, a read as well as a write', async () => {
    const session = 'forwarded';
    const read = await world.call({ ...READ, session });
    const charge = await approved({ ...CHARGE, session });
    for (const key of [KEYS.app]) {
      for (const outcome of ['ran', 'failed', 'outcome_unknown', 'compensated']) {
        assert.equal(await told(session, read.check.step, outcome, {}, key), 409, outcome);
        assert.equal(await told(session, charge.check.step, outcome, {}, key), 409, outcome);
      }
    }
    const route = await world.get('/shop/orders/4411', KEYS.app, {
      'toolgate-agent': 'desk',
      'toolgate-session': session,
    });
    assert.equal(await told(session, Number(route.headers.get('toolgate-step')), 'failed'), 409);
  });

  test('in a carried history is history_invalid, fault `outcome`', async () => {
    for (const body of [READ, CREATE]) {
      const carried = new CarriedHistory();
      const called = await world.call({ ...body, history: carried.value });
      carried.take(called.check);
      assert.equal(called.outcome, 'ran');
      for (const outcome of ['failed', 'outcome_unknown', 'compensated']) {
        const copy = carried.copy();
        Object.assign(copy.entries[0] ?? {}, { outcome });
        const answer = await world.check({ ...READ, history: copy.value });
        if (outcome === 'outcome_unknown') {
          // It may lag behind; what the gateway saw is in the next entry all the same.
          assert.equal(answer.reason, 'allow', outcome);
          carried.take(answer);
          assert.deepEqual(((answer.entry?.['reports'] ?? []) as Json[])[0]?.['outcome'], 'ran');
          break;
        }
        assert.equal(answer.reason, 'history_invalid', `${outcome} of ${body.tool}`);
        assert.equal(answer.detail['fault'], 'outcome');
      }
    }
  });
});

describe('an undo', () => {
  test('of a forwarded write marks it compensated, once, with exactly its arguments', async () => {
    const session = 'undo-forwarded';
    await world.call({ ...READ, session });
    const { check } = await approved({ ...CHARGE, session });
    const undoes = check.step;
    for (const [differs, change] of Object.entries({
      arguments: { arguments: { order_id: '4411', amount: 39 } },
      step: { undoes: 99 },
      tool: { undoes: 0 },
    })) {
      const other = await world.call({ ...REFUND, session, undoes, ...change });
      assert.equal(other.check.reason, 'compensation_mismatch', JSON.stringify(other));
      assert.equal(other.check.detail['differs'], differs);
    }
    const undone = await world.call({ ...REFUND, session, undoes });
    assert.equal(undone.check.reason, 'compensation', JSON.stringify(undone));
    assert.equal(undone.outcome, 'ran');
    const again = await world.call({ ...REFUND, session, undoes });
    assert.equal(again.check.reason, 'compensation_spent');
    const ofUndo = await world.call({ ...CHARGE, session, undoes: undone.check.step });
    assert.notEqual(ofUndo.check.decision, 'allow');
    const { reports, history } = await exported(session);
    assert.equal(reports.get(undoes)?.outcome, 'compensated');
    assert.equal(history.entries.find(({ step }) => step === undone.check.step)?.undoes, undoes);
  });

  test('bound to a result takes what the backend answered', async () => {
    const session = 'undo-created';
    const made = await world.call({ ...CREATE, session });
    const { order_id } = made.result as { order_id: string };
    const undo = { tool: 'cancel_order', ...BILLING, session, undoes: made.check.step };
    assert.equal(
      (await world.call({ ...undo, arguments: { order_id: '4411' } })).check.reason,
      'compensation_mismatch',
    );
    const undone = await world.call({ ...undo, arguments: { order_id } });
    assert.equal(undone.check.reason, 'compensation');
    assert.equal(world.seen.at(-1)?.target, `/orders/${order_id}`);
  });

  test('of an agent asks for every reason', async () => {
    const session = 'undo-agent';
    await world.call({ ...READ, session }, KEYS.billing);
    const asked = await world.check({ ...CHARGE, session }, KEYS.billing);
    await world.post(`/v1/confirmations/${asked.confirmation?.id}/approve`, undefined, KEYS.ana);
    const charged = await world.call({ ...CHARGE, session }, KEYS.billing);
    const undo = await world.check({ ...REFUND, session, undoes: charged.check.step }, KEYS.billing);
    assert.equal(undo.reason, 'argument_origin: order_id, amount');
  });

  test('that a host ran itself marks the step; one that it reports failed may be made again', async () => {
    const session = 'undo-host';
    const read = await world.check({ ...READ, session });
    await told(session, read.step, 'ran');
    const { check } = await approved({ ...CHARGE, session }, 'check');
    const undo = { ...REFUND, session, undoes: check.step };
    assert.equal((await world.check(undo)).reason, 'compensation_mismatch', 'nothing is known of the step');
    await told(session, check.step, 'ran');
    const first = await world.check(undo);
    assert.equal(first.reason, 'compensation');
    assert.equal((await world.check(undo)).reason, 'compensation_spent');
    assert.equal(await told(session, first.step, 'failed'), 200);
    const second = await world.check(undo);
    assert.equal(second.reason, 'compensation', JSON.stringify(second));
    assert.equal(await told(session, second.step, 'ran'), 200);
    assert.equal((await world.check(undo)).reason, 'compensation_spent');
    const { reports } = await exported(session);
    assert.equal(reports.get(check.step)?.outcome, 'compensated');
  });

  test('in a carried history: failed may be made again, ran marks the step', async () => {
    const carried = new CarriedHistory();
    const step = async (body: Json, outcome?: string): Promise<Answer> => {
      const answer = carried.take(await world.check({ ...body, history: carried.value }));
      if (outcome !== undefined) Object.assign(carried.entries.at(-1) ?? {}, { outcome });
      return answer;
    };
    await step(READ, 'ran');
    const asked = await step(CHARGE);
    const charged = await step({ ...CHARGE, confirmation: asked.confirmation?.token }, 'ran');
    assert.equal(charged.reason, 'confirmed');
    const undo = { ...REFUND, undoes: charged.step };
    assert.equal((await step(undo, 'failed')).reason, 'compensation');
    assert.equal((await step(undo, 'ran')).reason, 'compensation', 'the first undo is known to have failed');
    assert.equal((await step(undo)).reason, 'compensation_spent');
    const { reports } = carried.entries.at(-1) ?? {};
    assert.deepEqual(reports, [{ step: charged.step, outcome: 'compensated' }]);
  });
});

describe('the history of a held session', () => {
  test('verifies with the public key alone, is the same bytes each time, and goes on as a carried one', async () => {
    const session = 'export';
    await world.call({ ...READ, session, labels: { call: ['untrusted:mail'] }, run: 'r-export' });
    await world.check({ tool: 'nothing', arguments: {}, session, ...BILLING });
    await approved({ ...CHARGE, session });
    await world.call({ tool: 'read_inbox', arguments: {}, session, ...BILLING });
    const { history, reports } = await exported(session);
    assert.deepEqual(
      history.entries.map(({ decision }) => decision),
      ['allow', 'refuse', 'confirm', 'allow', 'allow'],
    );
    assert.deepEqual(
      [...reports.values()].map(({ outcome }) => outcome),
      ['ran', 'ran', 'ran'],
    );
    const first = await world.get(`/v1/sessions/${session}`);
    const second = await world.get(`/v1/sessions/${session}`);
    assert.equal(first.text, second.text);
    assert.equal((await world.get(`/v1/sessions/${session}`, KEYS.otherApp)).status, 404);
    assert.equal((await world.get(`/v1/sessions/${session}`, 'nobody')).status, 401);
    const next = await world.check({ ...READ, history: first.json });
    assert.equal(next.step, 5, JSON.stringify(next));
    const held = await world.check({ ...READ, session });
    assert.equal(held.step, 6);
    await exported(session);
  });
});
