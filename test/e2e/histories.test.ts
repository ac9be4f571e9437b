import assert from 'node:assert/strict';
import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { startShop } from '../../deploy/examples/shop/backend.ts';
import { startTestGateway } from '../harness/gateway.ts';
import { type Answer, CarriedHistory, KEYS, shopWorld, startWorld, TYPED, type World, worldOf } from './world.ts';

type Json = Record<string, unknown>;

let world: World;
before(async () => {
  world = await startWorld();
});
after(() => world.close());

const READ = { tool: 'get_order', arguments: { order_id: '4411' }, agent: 'desk', origins: { order_id: 'model' } };

let runs = 0;

/** A genuine history of four steps with an allowed write, reports and a label in it. */
async function genuine(key: string = KEYS.app): Promise<CarriedHistory> {
  const carried = new CarriedHistory();
  const step = async (body: Json): Promise<Answer> =>
    carried.take(await world.check({ ...body, history: carried.value }, key));
  await step({ ...READ, run: `r-${++runs}`, labels: { call: ['untrusted:mail'] } });
  Object.assign(carried.entries[0] ?? {}, { outcome: 'ran' });
  const asked = await step({
    tool: 'charge_card',
    arguments: { order_id: '4411', amount: 40 },
    agent: 'billing',
    ...TYPED,
  });
  assert.equal(asked.decision, 'confirm', JSON.stringify(asked));
  const { token } = asked.confirmation ?? {};
  assert.ok(token);
  const allowed = await step({
    tool: 'charge_card',
    arguments: { order_id: '4411', amount: 40 },
    agent: 'billing',
    ...TYPED,
    confirmation: token,
  });
  assert.equal(allowed.reason, 'confirmed');
  Object.assign(carried.entries[2] ?? {}, { outcome: 'ran' });
  await step({ ...READ });
  return carried;
}

async function sent(history: unknown, key?: string, more: Json = {}): Promise<Answer> {
  return world.check({ ...READ, ...more, history }, key);
}

/** What every answer to a history that is no good must be. */
function assertStartedAnew(answer: Answer, of: Json, where: string): void {
  assert.equal(answer.decision, 'refuse', where);
  assert.equal(answer.reason, 'history_invalid', where);
  assert.equal(answer.step, 0, where);
  assert.notEqual(answer.session, of['session'], where);
  assert.equal(answer.history?.['session'], answer.session, `${where}: the header of the new history comes along`);
  assert.equal(answer.entry?.['step'], 0, where);
  assert.equal(answer.entry?.['decision'], 'refuse', where);
}

/** One byte of a text changed, so that it stays a text of the same alphabet. */
function flip(text: string, at: number): string {
  const letter = text[at] === 'A' ? 'B' : 'A';
  return text.slice(0, at) + letter + text.slice(at + 1);
}

/** Every leaf of the history with how it can be changed by one character. */
function* edits(value: unknown, path: readonly (string | number)[]): Generator<readonly (string | number)[]> {
  if (typeof value === 'object' && value !== null) {
    for (const [name, member] of Object.entries(value))
      yield* edits(member, [...path, Array.isArray(value) ? Number(name) : name]);
    return;
  }
  yield path;
}

function edited(history: Json, path: readonly (string | number)[], at: 'first' | 'middle' | 'last'): Json {
  const copy = structuredClone(history);
  let holder: unknown = copy;
  for (const name of path.slice(0, -1)) holder = (holder as Json)[name];
  const name = path.at(-1) ?? '';
  const held = holder as Json;
  const value = held[name];
  if (typeof value === 'number') held[name] = value + 1;
  else if (typeof value === 'string') {
    const index = { first: 0, middle: value.length >> 1, last: value.length - 1 }[at];
    held[name] = flip(value, index);
  }
  return copy;
}

describe('a carried history that is not what the gateway signed', () => {
  test('an edit of any member of it is refused and starts a new history', async () => {
    const carried = await genuine();
    let count = 0;
    for (const path of edits(carried.value, [])) {
      const name = path.join('.');
      for (const at of ['first', 'middle', 'last'] as const) {
        const answer = await sent(edited(carried.value, path, at));
        assertStartedAnew(answer, carried.header, `${name}, ${at}`);
        count += 1;
      }
    }
    assert.ok(count > 140, `${count} edits`);
    const still = await sent(carried.value);
    assert.equal(still.reason, 'allow', 'the genuine history goes on all the same');
    assert.equal(still.step, 4);
  });

  test('bytes of a token, each class of position and each spelling of its last character, are refused', async () => {
    const carried = await genuine();
    const token = String(carried.entries[1]?.['token']);
    for (let at = 0; at < token.length; at += 5) {
      const copy = carried.copy();
      Object.assign(copy.entries[1] ?? {}, { token: flip(token, at) });
      assertStartedAnew(await sent(copy.value), carried.header, `token byte ${at}`);
    }
    for (const last of 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_+/=') {
      if (last === token.at(-1)) continue;
      const copy = carried.copy();
      Object.assign(copy.entries[1] ?? {}, { token: token.slice(0, -1) + last });
      assertStartedAnew(await sent(copy.value), carried.header, `last character ${last}`);
    }
  });

  test('removals, reorderings, doublings and transplants are refused', async () => {
    const carried = await genuine();
    const other = await genuine();
    const [a, b, c, d] = carried.entries;
    const [x, y, z, w] = other.entries;
    const lists: Record<string, readonly (Json | undefined)[]> = {
      'the first removed': [b, c, d],
      'the second removed': [a, c, d],
      'the third removed': [a, b, d],
      'two in another order': [b, a, c, d],
      'the last two in another order': [a, b, d, c],
      'one twice': [a, b, b, c, d],
      'the last one twice': [a, b, c, d, d],
      'an entry of another history': [a, y, c, d],
      'the last of another history': [a, b, c, w],
      'the first of another history': [x, b, c, d],
      'all of another history under this header': [x, y, z, w],
    };
    for (const [name, entries] of Object.entries(lists)) {
      assertStartedAnew(await sent({ ...carried.header, entries }), carried.header, name);
      const renumbered = entries.map((entry, step) => ({ ...entry, step }));
      assertStartedAnew(await sent({ ...carried.header, entries: renumbered }), carried.header, `${name}, renumbered`);
    }
    for (const name of ['session', 'issuer', 'audience', 'nonce']) {
      const header: Json = { ...carried.header };
      delete header[name];
      assertStartedAnew(await sent({ ...header, entries: carried.entries }), carried.header, `no ${name}`);
      const swapped = { ...carried.header, [name]: name === 'nonce' ? other.header[name] : 'other' };
      assertStartedAnew(
        await sent({ ...swapped, entries: carried.entries }),
        { session: swapped['session'] },
        `other ${name}`,
      );
    }
    for (const extra of [{ more: 1 }, { prev: { link: a?.['arguments'] } }]) {
      assertStartedAnew(await sent({ ...carried.value, ...extra }), carried.header, JSON.stringify(extra));
    }
    for (const wrong of [
      null,
      [],
      'x',
      7,
      {},
      { format: 'qls-history/2', entries: [] },
      { ...carried.header, entries: {} },
    ]) {
      const answer = await sent(wrong);
      assert.equal(answer.reason, 'history_invalid', JSON.stringify(wrong));
      assert.equal(answer.step, 0);
    }
    assert.equal((await sent(carried.value)).step, 4, 'the genuine history goes on all the same');
  });

  test('a report that was frozen, dropped or made up is refused', async () => {
    const carried = await genuine();
    const made: Record<string, Json> = {
      'another outcome': { outcome: 'failed' },
      'a result': { outcome: 'ran', result: carried.entries[0]?.['arguments'] },
      'no outcome': { outcome: undefined },
    };
    for (const [name, change] of Object.entries(made)) {
      const copy = carried.copy();
      Object.assign(copy.entries[0] ?? {}, change);
      assertStartedAnew(await sent(copy.value), carried.header, name);
    }
    const refused = carried.copy();
    Object.assign(refused.entries[1] ?? {}, { outcome: 'ran' });
    assertStartedAnew(await sent(refused.value), carried.header, 'an outcome of a step that was not allowed');
  });

  test('an older head is dropped, and the newest one still goes on', async () => {
    const carried = await genuine();
    for (let length = 0; length < carried.entries.length; length += 1) {
      const answer = await sent({ ...carried.header, entries: carried.entries.slice(0, length) });
      assertStartedAnew(answer, carried.header, `cut to ${length}`);
      assert.equal(answer.detail['fault'], 'dropped', `cut to ${length}`);
    }
    const opened = await sent({ format: 'qls-history/1', session: carried.header['session'], entries: [] });
    assert.equal(opened.reason, 'history_invalid');
    assert.notEqual(opened.session, carried.header['session']);
    const held = await world.check({ ...READ, session: String(carried.header['session']) });
    assert.equal(held.reason, 'history_invalid', 'a carried session is not taken for a held one');
    assert.notEqual(held.session, carried.header['session']);
    assert.equal((await sent(carried.value)).step, 4);
  });

  test('a history that starts anew keeps what the old one knew, for a host as well', async () => {
    const carried = new CarriedHistory();
    carried.take(
      await world.check({ tool: 'read_inbox', arguments: {}, agent: 'billing', history: carried.value }, KEYS.otherApp),
    );
    const broken = carried.copy();
    Object.assign(broken.entries[0] ?? {}, { at: 1 });
    const anew = new CarriedHistory();
    anew.take(await sent(broken.value, KEYS.otherApp, { agent: 'billing' }));
    anew.take(await sent(anew.value, KEYS.otherApp, { agent: 'billing' }));
    Object.assign(anew.entries[1] ?? {}, { outcome: 'ran' });
    const charge = { tool: 'charge_card', arguments: { order_id: '4411', amount: 40 }, agent: 'billing', ...TYPED };
    const answer = await world.check({ ...charge, history: anew.value }, KEYS.otherApp);
    assert.equal(answer.reason, 'order_rule', JSON.stringify(answer));
    assert.equal(answer.detail['rule'], 'not_after read_inbox');
  });
});

describe('a genuine history of another caller', () => {
  test('is refused and changes nothing anywhere', async () => {
    const carried = await genuine();
    const store = world.gateway.gateway.store;
    const since = 0;
    for (const key of [KEYS.otherApp, KEYS.billing]) {
      const caller = key === KEYS.billing ? 'billing-bot' : 'other-app';
      const before = await store.viewsOfCaller('shop-gateway', caller, since);
      const answer = await sent(carried.value, key, { agent: 'billing' });
      assert.equal(answer.reason, 'history_invalid');
      assert.equal(answer.detail['fault'], 'session');
      assert.equal(answer.entry, undefined);
      assert.equal(answer.history, undefined);
      assert.deepEqual(await store.viewsOfCaller('shop-gateway', caller, since), before);
      const session = await world.get(`/v1/sessions/${String(carried.header['session'])}`, key);
      assert.equal(session.status, 404);
      const told = await world.post(
        '/v1/outcomes',
        { session: carried.header['session'], step: 3, outcome: 'failed' },
        key,
      );
      assert.equal(told.status, 404);
    }
    assert.equal((await sent(carried.value)).step, 4);
  });

  test('and a session id of another caller names a session of one’s own', async () => {
    const mine = await world.check({ ...READ, session: 'chat-1' });
    const theirs = await world.check({ ...READ, agent: 'billing', session: 'chat-1' }, KEYS.otherApp);
    assert.deepEqual([mine.step, theirs.step], [0, 0]);
    assert.equal((await world.check({ ...READ, session: 'chat-1' })).step, 1);
  });
});

describe('two lines from one head', () => {
  test('freeze the session, and both heads are in the audit log', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'toolgate-fork-'));
    const copyFolder = `${folder}-copy`;
    const shop = await startShop();
    const config = shopWorld(shop.url);
    try {
      // A store that was copied, or restored from a copy, is how one key comes to sign two lines.
      const first = worldOf(shop, await startTestGateway(config, { folder }));
      const carried = new CarriedHistory();
      carried.take(await first.check({ ...READ, history: carried.value }));
      await first.gateway.close();
      await cp(folder, copyFolder, { recursive: true });
      const again = worldOf(shop, await startTestGateway(config, { folder }));
      const copied = worldOf(shop, await startTestGateway(config, { folder: copyFolder }));
      try {
        const [one, two] = [carried.copy(), carried.copy()];
        one.take(await again.check({ ...READ, history: one.value }));
        two.take(await copied.check({ ...READ, arguments: { order_id: '4412' }, history: two.value }));
        assert.notEqual(one.entries[1]?.['token'], two.entries[1]?.['token']);
        const answer = await again.check({ ...READ, history: two.value });
        assert.equal(answer.detail['fault'], 'forked', JSON.stringify(answer));
        assertStartedAnew(answer, carried.header, 'the other line');
        for (let attempt = 0; attempt < 2; attempt += 1) {
          const frozen = await again.check({ ...READ, history: one.value });
          assert.equal(frozen.detail['fault'], 'forked', 'the true line is frozen too');
          assertStartedAnew(frozen, carried.header, 'the frozen line');
        }
        const forks = again.audit().filter(({ event }) => event === 'fork');
        assert.equal(forks.length, 1);
        const heads = forks[0]?.['heads'] as { step: number; link: string }[];
        assert.deepEqual(
          heads.map(({ step }) => step),
          [1, 1],
        );
        assert.notEqual(heads[0]?.link, heads[1]?.link);
        const other = await again.check({ ...READ, session: 'untouched' });
        assert.equal(other.reason, 'allow', 'other sessions of the caller go on');
      } finally {
        await again.gateway.close();
        await copied.gateway.close();
      }
    } finally {
      await shop.close();
      await rm(folder, { recursive: true, force: true });
      await rm(copyFolder, { recursive: true, force: true });
    }
  });
});
