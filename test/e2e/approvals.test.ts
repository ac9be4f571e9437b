import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { type Answer, CarriedHistory, KEYS, shopWorld, startWorld, TYPED, type World } from './world.ts';

type Json = Record<string, unknown>;

let world: World;
before(async () => {
  world = await startWorld();
});
after(() => world.close());

let sessions = 0;

/** A session of the host's in which `charge_card` may be called. */
async function begun(key: string = KEYS.app, agent = 'billing'): Promise<string> {
  const session = `s-${++sessions}`;
  const read = await world.call({ tool: 'get_order', arguments: { order_id: '4411' }, agent, session }, key);
  assert.equal(read.outcome, 'ran', JSON.stringify(read));
  return session;
}

const CHARGE = { tool: 'shop/charge_card', arguments: { order_id: '4411', amount: 40 }, agent: 'billing' } as const;

async function asked(body: Json, key?: string): Promise<{ answer: Answer; token: string }> {
  const answer = await world.check(body, key);
  assert.equal(answer.decision, 'confirm', JSON.stringify(answer));
  return { answer, token: String(answer.confirmation?.token) };
}

/** Changes of an approved call, each of which makes it another call. */
const CHANGES: Readonly<Record<string, (call: Json) => Json>> = {
  'another amount': (call) => ({ ...call, arguments: { order_id: '4411', amount: 40.01 } }),
  'an amount of another type': (call) => ({ ...call, arguments: { order_id: '4411', amount: '40' } }),
  'another order': (call) => ({ ...call, arguments: { order_id: '4412', amount: 40 } }),
  'one argument more': (call) => ({ ...call, arguments: { order_id: '4411', amount: 40, note: 'x' } }),
  'one argument less': (call) => ({ ...call, arguments: { order_id: '4411' } }),
  'another tool with the same arguments': (call) => ({ ...call, tool: 'shop/refund_card' }),
  'another agent': (call) => ({ ...call, agent: 'desk' }),
  'a run': (call) => ({ ...call, run: 'r-approvals' }),
  'other origins': (call) => ({ ...call, origins: { order_id: 'typed', amount: 'computed' } }),
  'no origins': (call) => ({ ...call, origins: {} }),
  'origins and no turns': (call) => ({ ...call, turns: [] }),
  'a label': (call) => ({ ...call, labels: { call: ['untrusted:mail'] } }),
  'a label of an argument': (call) => ({ ...call, labels: { amount: ['untrusted:mail'] } }),
  'an undone step': (call) => ({ ...call, undoes: 0 }),
};

describe('a token of a host, for one call', () => {
  for (const [name, change] of Object.entries(CHANGES)) {
    test(`allows nothing with ${name}`, async () => {
      const session = await begun();
      const call = { ...CHARGE, ...TYPED, session };
      const { token } = await asked(call);
      const before = world.seen.length;
      const other = await world.call({ ...change(call), confirmation: token });
      assert.notEqual(other.check.decision, 'allow', JSON.stringify(other.check));
      assert.equal(world.seen.length, before, 'the shop saw nothing');
      // Steps that were not allowed do not move the point of a held session.
      const same = await world.call({ ...call, confirmation: token });
      assert.equal(same.check.reason, 'confirmed', JSON.stringify(same.check));
      assert.equal(same.outcome, 'ran');
    });
  }

  test('allows nothing in another session, of another caller, as an agent, or as a receipt', async () => {
    const session = await begun();
    const call = { ...CHARGE, ...TYPED, session };
    const { token } = await asked(call);
    const before = world.seen.length;
    const elsewhere = await begun();
    assert.equal((await world.call({ ...call, session: elsewhere, confirmation: token })).check.decision, 'confirm');
    for (const key of [KEYS.otherApp, KEYS.billing]) {
      const theirs = await begun(key);
      for (const named of [session, theirs]) {
        const answer = await world.call({ ...call, session: named, confirmation: token }, key);
        assert.notEqual(answer.check.decision, 'allow', JSON.stringify(answer.check));
      }
    }
    assert.equal(world.seen.filter(({ method }) => method === 'POST').length, charges(before));
    assert.equal((await world.call({ ...call, confirmation: token })).check.reason, 'confirmed');
  });

  test('allows nothing twice, whichever ways it is sent', async () => {
    const session = await begun();
    const call = { ...CHARGE, ...TYPED, session };
    const { token } = await asked(call);
    const answers = await Promise.all([
      world.call({ ...call, confirmation: token }),
      world.call({ ...call, confirmation: token }),
      world.check({ ...call, confirmation: token }).then((check) => ({ check, outcome: undefined })),
      route('charge', session, token),
    ]);
    const allowed = answers.filter((answer) =>
      'check' in answer ? answer.check.decision === 'allow' : answer.status === 201,
    );
    assert.equal(allowed.length, 1, JSON.stringify(answers));
    const again = await world.call({ ...call, confirmation: token });
    assert.equal(again.check.decision, 'confirm');
    assert.equal(again.check.detail['confirmation'], 'spent');
  });

  test('allows nothing after an allowed write, at another point of a carried history, or when it expired', async () => {
    const session = await begun();
    const call = { ...CHARGE, ...TYPED, session };
    const { token } = await asked(call);
    const note = {
      tool: 'note',
      arguments: { text: 'one A1' },
      origins: { text: 'typed' },
      turns: TYPED.turns,
      agent: 'billing',
      session,
    };
    assert.equal((await world.call(note)).check.decision, 'allow');
    const moved = await world.call({ ...call, confirmation: token });
    assert.equal(moved.check.decision, 'confirm');
    assert.equal(moved.check.detail['confirmation'], 'other_point');

    const carried = new CarriedHistory();
    const step = async (body: Json): Promise<Answer> =>
      carried.take(await world.check({ ...body, history: carried.value }));
    await step({ tool: 'get_order', arguments: { order_id: '4411' }, agent: 'billing' });
    Object.assign(carried.entries[0] ?? {}, { outcome: 'ran' });
    const first = await step({ ...CHARGE, ...TYPED });
    assert.equal(first.decision, 'confirm');
    await step({ tool: 'get_order', arguments: { order_id: '4411' }, agent: 'billing' });
    const later = await step({ ...CHARGE, ...TYPED, confirmation: first.confirmation?.token });
    assert.equal(later.decision, 'confirm');
    assert.equal(later.detail['confirmation'], 'other_point');
  });

  test('allows nothing with one character changed', async () => {
    const session = await begun();
    const call = { ...CHARGE, ...TYPED, session };
    const { token } = await asked(call);
    for (let at = 0; at < token.length; at += 7) {
      const letter = token[at] === 'A' ? 'B' : 'A';
      const broken = token.slice(0, at) + letter + token.slice(at + 1);
      const answer = await world.check({ ...call, confirmation: broken });
      assert.equal(answer.decision, 'confirm', `character ${at}`);
    }
    const { id } = JSON.parse(Buffer.from(token.split('.')[0] ?? '', 'base64url').toString()) as { id: string };
    assert.equal((await world.check({ ...call, confirmation: id })).decision, 'confirm', 'its id alone is nothing');
  });

  test('allows nothing under a configuration that was loaded since', async () => {
    const reloaded = await startWorld();
    try {
      const session = 's-reload';
      await reloaded.call({ tool: 'get_order', arguments: { order_id: '4411' }, agent: 'billing', session });
      const call = { ...CHARGE, ...TYPED, session };
      const answer = await reloaded.check(call);
      const confirmation = answer.confirmation?.token;
      const config = shopWorld(reloaded.shop.url);
      const problems = await reloaded.gateway.reconfigure({ ...config, language: 'pt-BR' });
      assert.deepEqual(
        problems.filter(({ severity }) => severity === 'error'),
        [],
      );
      const other = await reloaded.call({ ...call, confirmation });
      assert.equal(other.check.decision, 'confirm');
      assert.equal(other.check.detail['confirmation'], 'other_call');
      await reloaded.gateway.reconfigure(config);
      assert.equal((await reloaded.call({ ...call, confirmation })).check.reason, 'confirmed', 'the old one is back');
    } finally {
      await reloaded.close();
    }
  });

  test('expires', async () => {
    const short = await startWorld({ confirmations: { mode: 'returned', ttl: '1s' } });
    try {
      const session = 's-short';
      await short.call({ tool: 'get_order', arguments: { order_id: '4411' }, agent: 'billing', session });
      const call = { ...CHARGE, ...TYPED, session };
      const first = await short.check(call);
      const deskCall = { tool: 'note', arguments: { text: 'x' }, session: 'held' };
      const held = await short.check(deskCall, KEYS.desk);
      await pause(1_100);
      const late = await short.check({ ...call, confirmation: first.confirmation?.token });
      assert.equal(late.decision, 'confirm');
      assert.equal(late.detail['confirmation'], 'expired');
      assert.notEqual(late.confirmation?.id, first.confirmation?.id);
      const approve = await short.post(`/v1/confirmations/${held.confirmation?.id}/approve`, undefined, KEYS.ana);
      assert.equal(approve.status, 409, approve.text);
      const listed = await short.get('/v1/confirmations', KEYS.ana);
      assert.deepEqual((listed.json as { confirmations: unknown[] }).confirmations, []);
      const polled = await short.check(deskCall, KEYS.desk);
      assert.equal(polled.decision, 'confirm');
      assert.notEqual(polled.confirmation?.id, held.confirmation?.id, 'a new one is asked for');
    } finally {
      await short.close();
    }
  });
});

function charges(upTo: number): number {
  return world.seen.slice(0, upTo).filter(({ method }) => method === 'POST').length;
}

function route(what: string, session: string, token: string): ReturnType<World['post']> {
  assert.equal(what, 'charge');
  return world.post('/shop/charges', CHARGE.arguments, KEYS.app, {
    'toolgate-call': Buffer.from(JSON.stringify({ ...TYPED, agent: 'billing', session, confirmation: token })).toString(
      'base64url',
    ),
  });
}

/** The decisions in the audit log, in which other lines come as time goes by. */
function decisions(): number {
  return world.audit().filter(({ event }) => event === 'decision').length;
}

describe('a held confirmation', () => {
  const call = { ...CHARGE, origins: { order_id: 'typed' } };

  test('is decided by an approver alone; polling appends nothing; approved, it allows once', async () => {
    const session = await begun(KEYS.billing);
    const first = await world.call({ ...call, session }, KEYS.billing);
    assert.equal(first.check.decision, 'confirm');
    const { id, token } = first.check.confirmation ?? {};
    assert.ok(id);
    assert.equal(token, undefined, 'an agent gets no token');
    assert.doesNotMatch(JSON.stringify(first), /"token":"[^"]*\./, 'nor anything that is one');
    const before = decisions();
    for (let poll = 0; poll < 5; poll += 1) {
      const again = await world.call(
        { ...call, session, ...(poll % 2 === 0 ? {} : { confirmation: id }) },
        KEYS.billing,
      );
      assert.equal(again.check.confirmation?.id, id);
      assert.equal(again.check.step, first.check.step);
    }
    assert.equal(decisions(), before, 'a poll is no new step');
    for (const key of [KEYS.billing, KEYS.app, KEYS.otherApp, KEYS.desk, 'nobody']) {
      for (const act of ['approve', 'deny']) {
        const refused = await world.post(`/v1/confirmations/${id}/${act}`, undefined, key);
        assert.ok(refused.status === 401 || refused.status === 403, `${act} with ${key}: ${refused.status}`);
      }
      const listed = await world.get('/v1/confirmations', key);
      assert.ok(listed.status === 401 || listed.status === 403);
    }
    const approverCalls = await world.post('/v1/call', { ...call, session }, KEYS.ana);
    assert.equal(approverCalls.status, 403, 'an approver makes no calls');
    const listed = await world.get('/v1/confirmations', KEYS.ana);
    const [waiting] = (listed.json as { confirmations: { id: string; shown: Json }[] }).confirmations.filter(
      (c) => c.id === id,
    );
    assert.deepEqual(
      ((waiting?.shown['arguments'] ?? []) as Json[]).map(({ name, value, origin }) => [name, value, origin]),
      [
        ['order_id', '4411', 'model'],
        ['amount', 40, 'model'],
      ],
    );
    const approved = await world.post(`/v1/confirmations/${id}/approve`, { note: 'fine' }, KEYS.ana);
    assert.equal(approved.status, 200, approved.text);
    assert.equal((await world.post(`/v1/confirmations/${id}/deny`, undefined, KEYS.ana)).status, 409);
    for (const change of [{ arguments: { order_id: '4411', amount: 41 } }, { origins: {} }, { run: 'r-held' }]) {
      const other = await world.check({ ...call, session, ...change, confirmation: id }, KEYS.billing);
      assert.equal(other.decision, 'confirm', JSON.stringify(other));
    }
    for (const key of [KEYS.app, KEYS.otherApp]) {
      const stolen = await world.check({ ...call, session, confirmation: id }, key);
      assert.notEqual(stolen.decision, 'allow');
    }
    const seen = world.seen.length;
    const ran = await world.call({ ...call, session }, KEYS.billing);
    assert.equal(ran.check.reason, 'confirmed', JSON.stringify(ran.check));
    assert.equal(ran.outcome, 'ran');
    const twice = await world.call({ ...call, session, confirmation: id }, KEYS.billing);
    assert.equal(twice.check.decision, 'confirm');
    assert.equal(world.seen.length, seen + 1);
    const approvals = world.audit().filter((line) => line['confirmation'] === id && line['event'] === 'approval');
    assert.deepEqual(
      approvals.map(({ act, approver }) => [act, approver]),
      [['approve', 'ana']],
    );
  });

  test('that is denied allows nothing, and asking again asks anew', async () => {
    const session = await begun(KEYS.billing);
    const first = await world.check({ ...call, session }, KEYS.billing);
    const id = first.confirmation?.id;
    assert.equal((await world.post(`/v1/confirmations/${id}/deny`, undefined, KEYS.ana)).status, 200);
    assert.equal((await world.post(`/v1/confirmations/${id}/approve`, undefined, KEYS.ana)).status, 409);
    const again = await world.check({ ...call, session, confirmation: id }, KEYS.billing);
    assert.equal(again.decision, 'confirm');
    assert.notEqual(again.confirmation?.id, id);
  });

  test('is for one of two calls that race for it', async () => {
    const session = await begun(KEYS.billing);
    const refund = { tool: 'refund_card', arguments: { order_id: '4412', amount: 1 }, agent: 'billing', session };
    const first = await world.check(refund, KEYS.billing);
    await world.post(`/v1/confirmations/${first.confirmation?.id}/approve`, undefined, KEYS.ana);
    const seen = world.seen.length;
    const answers = await Promise.all(Array.from({ length: 6 }, () => world.call(refund, KEYS.billing)));
    assert.equal(answers.filter(({ check }) => check.decision === 'allow').length, 1);
    assert.equal(world.seen.length, seen + 1);
  });

  test('of an unknown id, a token’s or another caller’s is none', async () => {
    const session = await begun(KEYS.billing);
    for (const confirmation of ['AAAAAAAAAAAAAAAAAAAAAA', 'x', '..', 'a.b', '%00']) {
      const answer = await world.check({ ...call, session, confirmation }, KEYS.billing);
      assert.equal(answer.decision, 'confirm', confirmation);
    }
    assert.equal(
      (await world.post('/v1/confirmations/AAAAAAAAAAAAAAAAAAAAAA/approve', undefined, KEYS.ana)).status,
      404,
    );
    const { answer } = await asked({ ...CHARGE, ...TYPED, session: await begun() });
    const returned = await world.post(`/v1/confirmations/${answer.confirmation?.id}/approve`, undefined, KEYS.ana);
    assert.equal(returned.status, 404, 'what a host was handed is not for approvers');
  });
});
