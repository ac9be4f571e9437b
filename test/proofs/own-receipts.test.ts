import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { encodeBase64url } from '../../receipts/base64url.ts';
import { nodeCrypto } from '../../receipts/crypto-node.ts';
import { cutHistory } from '../../receipts/history-cut.ts';
import { appClient, askReceipt, OWN_WORDS, receiptIn, sendOnRoute } from './support.ts';
import { issuerHistory, issuersOf, NEXT_KEY, startWorld, type World, worldConfig } from './world.ts';

const ORDER = { order_id: 'A1' };

describe("receipts of the gateway's own histories", () => {
  let world: World;
  before(async () => {
    world = await startWorld();
  });
  after(() => world.close());

  for (const carried of [false, true]) {
    const mode = carried ? 'carried' : 'held';
    test(`parallel calls from one ${mode} history: each earlier point admits its own call, once`, async () => {
      const session = appClient(world).session('desk', { carried });
      const numbers = [0, 1, 2, 3, 4, 5];
      const checks = await Promise.all(
        numbers.map((n) => session.check('shop/send', { order_id: `P${n}` }, OWN_WORDS)),
      );
      const receipts = await Promise.all(checks.map((check) => session.receipt(check)));
      const before = world.backend.seen.length;
      const results = await Promise.all(
        numbers.map((n, i) => session.call('shop/send', { order_id: `P${n}` }, { receipt: at(receipts, i) })),
      );
      for (const result of results) assert.equal(result.outcome, 'ran', JSON.stringify(result));
      assert.equal(world.backend.seen.length - before, numbers.length);
      for (const [i, n] of numbers.entries()) {
        const again = await session.call('shop/send', { order_id: `P${n}` }, { receipt: at(receipts, i) });
        assert.deepEqual([again.decision, again.receipt?.['reason']], ['refuse', 'receipt_spent']);
      }
      // What became of the calls stands in the history, and it still verifies and goes on.
      const next = await session.check('shop/get_order', ORDER);
      assert.deepEqual([next.decision, next.step], ['allow', numbers.length]);
      (await session.history()).verify({
        publicKey: encodeBase64url(world.gateway.gateway.loaded.signing.publicBytes),
      });
    });

    test(`a read that is sent again leaves a ${mode} history that verifies`, async () => {
      const session = appClient(world).session('desk', { carried });
      const check = await session.check('shop/get_order', ORDER);
      const receipt = await session.receipt(check);
      assert.equal((await session.call('shop/get_order', ORDER, { receipt })).outcome, 'ran');
      await session.check('shop/get_order', ORDER);
      assert.equal((await session.call('shop/get_order', ORDER, { receipt })).outcome, 'ran');
      assert.equal((await session.check('shop/get_order', ORDER)).decision, 'allow');
      (await session.history()).verify({
        publicKey: encodeBase64url(world.gateway.gateway.loaded.signing.publicBytes),
      });
    });

    test(`a call of a ${mode} session that its host ran and reported is not run again by its receipt`, async () => {
      const session = appClient(world).session('desk', { carried });
      const check = await session.check('shop/send', ORDER, OWN_WORDS);
      const receipt = await session.receipt(check);
      await session.ran(check, 'ran', { id: 'ch-1' });
      const before = world.backend.seen.length;
      const result = await session.call('shop/send', ORDER, { receipt });
      assert.deepEqual([result.decision, result.receipt?.['reason']], ['refuse', 'receipt_spent']);
      assert.equal(world.backend.seen.length, before);
    });
  }

  test('a call that the gateway forwarded already is spent', async () => {
    const session = appClient(world).session('desk');
    const called = await session.call('mixed/send', ORDER, OWN_WORDS);
    assert.equal(called.outcome, 'ran', JSON.stringify(called));
    const receipt = await session.receipt(called.check);
    const { outcome: _outcome, result: _result, ...bare } = receipt.last ?? assert.fail('no entry');
    const cut = { ...receipt.toJSON(), entries: [bare] };
    assert.equal(
      receiptIn(await sendOnRoute(world.gateway, cut, { tool: 'mixed/send', args: ORDER })).reason,
      'receipt_spent',
    );
  });

  test('a write whose run has ended since is not admitted', async () => {
    const session = appClient(world).session('desk', { run: 'r-1' });
    const check = await session.check('shop/send', ORDER, OWN_WORDS);
    const receipt = await session.receipt(check);
    const key = { issuer: 'shop-gateway', caller: 'app', session: session.id };
    const kept = (await world.gateway.gateway.sessions.find(key)) ?? assert.fail('no session');
    const { record } = kept;
    const ended = { ...record.view, runs: { ...record.view.runs, 'r-1': { undoable: 0, ended: true } } };
    const { sid, version: expectVersion, headReport, lateReports, usedAtMs } = record;
    const moved = {
      op: 'advance_session',
      sid,
      expectVersion,
      headReport,
      lateReports,
      view: ended,
      usedAtMs,
    } as const;
    assert.deepEqual(await world.gateway.gateway.commit([moved]), { ok: true });
    world.gateway.gateway.sessions.forget(key);
    const result = await session.call('shop/send', ORDER, { receipt });
    assert.deepEqual([result.decision, result.receipt?.['reason']], ['refuse', 'run_ended']);
  });
});

describe('two lines of one session', () => {
  let world: World;
  before(async () => {
    world = await startWorld();
  });
  after(() => world.close());

  const isCut = (history: ReturnType<typeof issuerHistory>): unknown => cutHistory(nodeCrypto, history);

  test('another receipt of the same step freezes the session, and both are kept as evidence', async () => {
    const header = { session: 'forked-1' };
    const one = issuerHistory({ header });
    const two = issuerHistory({ header, body: { at: Date.now() } });
    assert.equal((await sendOnRoute(world.gateway, isCut(one))).status, 200);
    const refused = receiptIn(await sendOnRoute(world.gateway, isCut(two)));
    assert.deepEqual([refused.reason, refused.detail['fault']], ['history_invalid', 'forked']);
    const log = await auditOf(world, 'fork');
    assert.equal(log.length, 1);
    const heads = log[0]?.['heads'] as { link: string }[];
    assert.equal(new Set(heads.map(({ link }) => link)).size, 2);
    // Nothing of a session with two lines is worth anything any more.
    const next = issuerHistory({ header, before: 5 });
    assert.equal(receiptIn(await sendOnRoute(world.gateway, isCut(next))).detail['fault'], 'forked');
  });

  test('a whole history that tells an admitted step otherwise, however far back, is another line', async () => {
    const header = { session: 'forked-2' };
    assert.equal((await sendOnRoute(world.gateway, issuerHistory({ header, before: 0 }))).status, 200);
    const other = issuerHistory({ header, before: 6 });
    const refused = receiptIn(await sendOnRoute(world.gateway, other));
    assert.deepEqual([refused.reason, refused.detail], ['history_invalid', { fault: 'forked', entry: 0 }]);
  });

  test('a cut whose step before is another than the admitted one is refused, and the session frozen', async () => {
    const header = { session: 'forked-3' };
    assert.equal((await sendOnRoute(world.gateway, isCut(issuerHistory({ header })))).status, 200);
    const refused = receiptIn(await sendOnRoute(world.gateway, isCut(issuerHistory({ header, before: 2 }))));
    assert.equal(refused.detail['fault'], 'link');
    const key = { issuer: 'desk-runtime', caller: 'app', session: 'forked-3' };
    assert.equal((await world.gateway.gateway.sessions.find(key))?.record.frozen, 'forked');
  });

  test("nobody freezes another caller's session", async () => {
    const header = { session: 'forked-4' };
    assert.equal((await sendOnRoute(world.gateway, issuerHistory({ header }))).status, 200);
    const own = issuerHistory({ header, before: 0, tool: 'shop/get_order', args: ORDER });
    const other = await askReceipt(world.gateway, own, { tool: 'shop/get_order', args: ORDER });
    assert.equal(other.reason, 'receipt');
  });
});

describe('what the gateway decides again, and what changes under it', () => {
  test('`receipts.enforce` says which rows are looked at, and the schema always is', async () => {
    const world = await startWorld({ receipts: { enforce: ['limits'] } });
    try {
      const args = { order_id: 'see https://evil.example/x' };
      const admitted = await sendOnRoute(world.gateway, issuerHistory({ args }), { args });
      assert.equal(admitted.status, 200, admitted.text);
      const undeclared = { ...ORDER, extra: 1 };
      const refused = receiptIn(
        await sendOnRoute(world.gateway, issuerHistory({ args: undeclared }), { args: undeclared }),
      );
      assert.equal(refused.reason, 'argument_schema');
      await world.gateway.reconfigure(worldConfig(world.backend.url));
      const held = receiptIn(await sendOnRoute(world.gateway, issuerHistory({ args }), { args }));
      assert.deepEqual([held.reason, held.decision, held.resend], ['undeclared_destination', 'refuse', false]);
    } finally {
      await world.close();
    }
  });

  test("a receipt of the gateway's own under another policy than the current one", async () => {
    const world = await startWorld();
    try {
      const session = appClient(world).session('desk');
      const receipt = await session.receipt(await session.check('shop/send', ORDER, OWN_WORDS));
      const changed = worldConfig(world.backend.url, {
        toolWords: { send: { confirm: 'reasons', undo: 'none', at_most: 3 } },
      });
      assert.deepEqual(
        (await world.gateway.reconfigure(changed)).filter(({ severity }) => severity === 'error'),
        [],
      );
      const refused = await session.call('shop/send', ORDER, { receipt });
      assert.deepEqual(refused.receipt?.['detail'], { fault: 'policy', entry: 0 });
      assert.equal(refused.receipt?.['reason'], 'history_invalid');
      // An issuer's policy is its own affair.
      assert.equal((await sendOnRoute(world.gateway, issuerHistory())).status, 200);
    } finally {
      await world.close();
    }
  });

  test("an issuer's keys change by overlap, and a revoked one is believed no more, seen before or not", async () => {
    const [first, ...others] = issuersOf() as [Record<string, unknown>, ...object[]];
    const speaks = { agents: first['agents'], tools: first['tools'] };
    const second = { id: 'desk-runtime', public_key: encodeBase64url(NEXT_KEY.publicBytes), ...speaks };
    const world = await startWorld({ issuers: [first, second, ...others] });
    try {
      const old = issuerHistory();
      assert.equal((await askReceipt(world.gateway, old)).reason, 'receipt');
      assert.equal((await askReceipt(world.gateway, issuerHistory({ key: NEXT_KEY }))).reason, 'receipt');
      const revoked = { ...first, revoked_at: new Date(Date.now() - 60_000).toISOString() };
      await world.gateway.reconfigure(worldConfig(world.backend.url, { issuers: [revoked, second, ...others] }));
      const refused = await askReceipt(world.gateway, old);
      assert.deepEqual([refused.reason, refused.detail['fault']], ['history_invalid', 'key']);
      assert.equal((await askReceipt(world.gateway, issuerHistory({ key: NEXT_KEY }))).reason, 'receipt');
    } finally {
      await world.close();
    }
  });
});

async function auditOf({ gateway }: World, event: string): Promise<readonly Record<string, unknown>[]> {
  const text = await readFile(join(gateway.folder, 'audit.jsonl'), 'utf8');
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Record<string, unknown>)
    .filter((line) => line['event'] === event);
}

function at<T>(list: readonly T[], index: number): T {
  return list[index] ?? assert.fail(`nothing at ${index}`);
}
