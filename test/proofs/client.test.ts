import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Checked } from '../../gateway/client/check.ts';
import { Client, type ClientOptions } from '../../gateway/client/client.ts';
import {
  BadAnswer,
  GatewayProblem,
  GatewayUnreachable,
  NoSuchStep,
  NoTruthValue,
  UntrustedAnswer,
} from '../../gateway/client/errors.ts';
import { History } from '../../gateway/client/history.ts';
import { encodeBase64url } from '../../receipts/base64url.ts';
import { HistoryFault } from '../../receipts/history.ts';
import { unusedPort } from '../http/backends.ts';
import { OWN_WORDS } from './support.ts';
import { AGENT, ANA, APP, RUNTIME_KEY, startWorld, type World } from './world.ts';

const ORDER = { order_id: 'A1' };

describe('the client library', () => {
  let world: World;
  let publicKey: string;
  before(async () => {
    world = await startWorld();
    publicKey = encodeBase64url(world.gateway.gateway.loaded.signing.publicBytes);
  });
  after(() => world.close());

  function client(options: Partial<ClientOptions> = {}): Client {
    return new Client({ url: world.gateway.url, key: APP.key, publicKey, ...options });
  }

  for (const carried of [false, true]) {
    const mode = carried ? 'carried' : 'held';
    test(`a ${mode} session: check, run and report, ask and approve, call, receipt`, async () => {
      const session = client().session('desk', { carried });
      const read = await session.check('shop/get_order', ORDER);
      assert.deepEqual([read.decision, read.step, read.agent], ['allow', 0, 'desk']);
      await session.ran(read, 'ran', { order_id: 'A1', total: 9007199254740993n });
      const asked = await session.check('shop/send', ORDER);
      assert.equal(asked.decision, 'confirm');
      const token = asked.confirmation?.token ?? assert.fail('no token');
      const allowed = await session.check('shop/send', ORDER, { confirmation: token });
      assert.deepEqual([allowed.decision, allowed.reason], ['allow', 'confirmed']);
      assert.ok(allowed.idempotencyKey === undefined || allowed.idempotencyKey.length > 20);
      const sent = await session.call('shop/send', ORDER, { receipt: await session.receipt(allowed) });
      assert.deepEqual([sent.decision, sent.outcome, sent.status, sent.replayed], ['allow', 'ran', 200, false]);
      const again = await session.call('shop/send', ORDER, { receipt: await session.history() });
      assert.equal(again.receipt?.['reason'], 'receipt_spent');
      const called = await session.call('mixed/get_order', ORDER);
      assert.deepEqual([called.decision, called.check?.step, called.outcome], ['allow', 3, 'ran']);
      const history = await session.history();
      history.verify({ publicKey, audience: 'shop-gateway' });
      assert.deepEqual(
        history.entries.map(({ decision, outcome }) => [decision, outcome]),
        [
          ['allow', 'ran'],
          ['confirm', undefined],
          ['allow', 'ran'],
          ['allow', 'ran'],
        ],
      );
    });
  }

  test('large integers keep every digit on their way', async () => {
    const session = client().session('desk', { carried: true });
    const args = { order_id: 'A1', amount: 9007199254740993n };
    const check = await session.check('shop/send', args, OWN_WORDS);
    assert.equal(check.decision, 'allow');
    const sent = await session.call('shop/send', args, { receipt: await session.receipt(check) });
    assert.ok(JSON.stringify(sent.result).includes('9007199254740993'), JSON.stringify(sent.result));
  });

  test('a carried history goes to disk and back, and on', async () => {
    const first = client().session('desk', { carried: true, id: 'saved-1' });
    await first.check('shop/get_order', ORDER);
    const saved = JSON.stringify(await first.history());
    const second = client().session('desk', { history: History.from(saved) });
    assert.equal((await second.check('shop/get_order', ORDER)).step, 1);
    assert.equal(second.id, 'saved-1');
    assert.equal(History.from(JSON.parse(saved) as object).entries.length, 1);
  });

  test('a history at fault begins a new one, under another name', async () => {
    const first = client().session('desk', { carried: true });
    await first.check('shop/get_order', ORDER);
    const old = await first.history();
    await first.check('shop/get_order', ORDER);
    const late = client().session('desk', { history: old });
    const refused = await late.check('shop/get_order', ORDER);
    assert.deepEqual([refused.decision, refused.detail['fault']], ['refuse', 'dropped']);
    assert.notEqual(late.id, old.session);
    const on = await late.check('shop/get_order', ORDER);
    assert.deepEqual([on.decision, on.step, on.session], ['allow', 1, late.id]);
  });

  test("an agent's confirmations are decided by an approver, and found again by their id", async () => {
    const agent = new Client({ url: world.gateway.url, key: AGENT.key, publicKey });
    const session = agent.session();
    const asked = await session.check('shop/send', ORDER);
    assert.deepEqual([asked.decision, asked.confirmation?.token], ['confirm', undefined]);
    const id = asked.confirmation?.id ?? assert.fail('no id');
    await assert.rejects(agent.approve(id), GatewayProblem);
    await new Client({ url: world.gateway.url, key: ANA.key }).approve(id, 'seen');
    const allowed = await session.check('shop/send', ORDER, { confirmation: id });
    assert.deepEqual([allowed.decision, allowed.reason], ['allow', 'confirmed']);
    const denied = await session.check('shop/send', { order_id: 'A2' });
    await new Client({ url: world.gateway.url, key: ANA.key }).deny(denied.confirmation?.id ?? '');
  });

  test('answers that the key does not vouch for are not believed', async () => {
    const wrong = client({ publicKey: encodeBase64url(RUNTIME_KEY.publicBytes) });
    await assert.rejects(wrong.session('desk', { carried: true }).check('shop/get_order', ORDER), UntrustedAnswer);
    const held = wrong.session('desk');
    await held.check('shop/get_order', ORDER);
    await assert.rejects(held.history(), UntrustedAnswer);
    const lies: readonly (readonly [string, string])[] = [
      ['"decision":"refuse"', '"decision":"allow"'],
      ['"step":0', '"step":1'],
      ['"tool":"shop/secret"', '"tool":"shop/send"'],
      ['"origins":"', '"origins":"A'],
    ];
    for (const [is, said] of lies) {
      const lying = client({
        fetch: async (url, init) => {
          const answer = await fetch(url, init);
          return new Response((await answer.text()).replaceAll(is, said), answer);
        },
      });
      const call = lying.session('desk', { carried: true }).check('shop/secret', ORDER);
      await assert.rejects(
        call,
        (error: unknown) => error instanceof UntrustedAnswer || error instanceof HistoryFault,
        is,
      );
    }
    // An answer to another call, genuine in itself.
    const swapping = client({
      fetch: (url, init) => fetch(url, { ...init, body: String(init.body).replaceAll('A1', 'A2') }),
    });
    await assert.rejects(swapping.session('desk', { carried: true }).check('shop/get_order', ORDER), UntrustedAnswer);
  });

  test('a check has no truth value: what the types let through throws', async () => {
    const check: Checked = await client().session('desk').check('shop/get_order', ORDER);
    const loose: unknown = check;
    for (const coerce of [
      () => `${String(loose)}`,
      () => Number(loose),
      () => `a${loose as string}`,
      () => (loose as number) > 0,
      // biome-ignore lint/suspicious/noDoubleEquals: it is the coercion that is tried.
      () => loose == true,
      // biome-ignore lint/suspicious/noDoubleEquals: as above.
      () => (loose as string) == 'allow',
    ]) {
      assert.throws(coerce, NoTruthValue);
    }
    // @ts-expect-error TS2774: a check is not a condition
    if (check) assert.ok(true);
    // @ts-expect-error TS2774
    const chosen = check ? 1 : 2;
    // @ts-expect-error TS2774
    check && assert.ok(chosen);
    // @ts-expect-error TS2367: a check is never equal to a boolean
    // biome-ignore lint/suspicious/noDoubleEquals: as above.
    assert.throws(() => check == true, NoTruthValue);
    assert.equal(check.decision, 'allow');
    assert.equal(JSON.parse(JSON.stringify(check))['format'], 'qls-tool-check/1');
  });

  test('what goes wrong has a class and a code', async () => {
    const { url } = world.gateway;
    await assert.rejects(new Client({ url, key: 'nobody' }).session('desk').check('shop/get_order', ORDER), {
      name: 'GatewayProblem',
      status: 401,
      code: 'no_credential',
    });
    await assert.rejects(client().session('desk', { id: '' }).check('shop/get_order', ORDER), GatewayProblem);
    const dead = new Client({ url: `http://127.0.0.1:${await unusedPort()}`, key: APP.key });
    await assert.rejects(dead.session('desk').check('shop/get_order', ORDER), GatewayUnreachable);
    const other = client({ fetch: () => Promise.resolve(new Response('<html>', { status: 200 })) });
    await assert.rejects(other.session('desk').check('shop/get_order', ORDER), BadAnswer);
    const session = client().session('desk', { carried: true });
    await assert.rejects(session.receipt(), NoSuchStep);
    const refused = await session.check('shop/nothing', {});
    await assert.rejects(session.ran(refused, 'ran'), NoSuchStep);
    const forwarded = await session.call('mixed/get_order', ORDER);
    await assert.rejects(session.ran(forwarded.check ?? assert.fail('no check'), 'ran'), { status: 409 });
    assert.throws(() => History.from('{"format":"qls-history/1","entries":[]}'), HistoryFault);
    assert.throws(() => client({ publicKey: 'AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA' }), { code: 'small_order' });
  });

  test('the tools that a caller reaches, and what a receipt is worth', async () => {
    const list = JSON.stringify(await client().tools());
    assert.ok(list.includes('shop/get_order') && !list.includes('shop/secret'), list);
    const session = client().session('desk');
    const check = await session.check('shop/send', ORDER, OWN_WORDS);
    const worth = await client().checkReceipt('shop/send', ORDER, await session.receipt(check));
    assert.equal((worth as { reason: string }).reason, 'receipt');
  });
});
