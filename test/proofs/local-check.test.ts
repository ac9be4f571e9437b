import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { NoSuchStep } from '../../gateway/client/errors.ts';
import { History } from '../../gateway/client/history.ts';
import { ConfigFault, LocalChecker } from '../../gateway/local-check/local-checker.ts';
import { renderSigningKeyPem } from '../../receipts/keys.ts';
import { receiptIn, sendOnRoute } from './support.ts';
import { startWorld, type World } from './world.ts';

const ORDER = { order_id: 'A1' };
const PAID = { order_id: 'A1', amount: 40 };
const OWN = { origins: { order_id: 'context', amount: 'context' } };
/** The seed of `RUNTIME_KEY`. */
const SIGNING_KEY = renderSigningKeyPem(new Uint8Array(32).fill(11));

describe("the check in an agent's own process", () => {
  let world: World;
  let checker: LocalChecker;
  before(async () => {
    world = await startWorld({
      toolWords: {
        get_order: {
          result: { type: 'object', properties: { order_id: { type: 'string' }, total: { type: 'number' } } },
        },
        idem: { confirm: 'reasons', undo: 'none', idempotent: true, at_most: { count: 1, per: 'hour' } },
        keyed: { confirm: 'reasons', undo: 'idem', after: ['get_order'], idempotency: { header: 'Idempotency-Key' } },
      },
    });
    checker = await LocalChecker.load({
      configFile: world.gateway.configFile,
      issuer: 'desk-runtime',
      signingKey: SIGNING_KEY,
    });
  });
  after(() => world.close());

  test('what it allows, the gateway admits once, with no call to the gateway before', async () => {
    const session = checker.session('desk');
    const read = session.check('shop/get_order', ORDER);
    assert.equal(read.decision, 'allow');
    const answered = await sendOnRoute(world.gateway, session.receipt(read).toJSON(), {
      tool: 'shop/get_order',
      args: ORDER,
    });
    assert.equal(answered.status, 200, answered.text);
    session.ran(read, 'ran', { order_id: 'A1', total: 40 });
    const args = { order_id: 'A1', amount: 40 };
    const write = session.check('shop/send', args, {
      origins: { order_id: 'result:0.order_id', amount: 'result:0.total' },
    });
    assert.deepEqual([write.decision, write.step], ['allow', 1], JSON.stringify(write));
    const receipt = session.receipt();
    assert.ok(receipt.isCut);
    assert.equal((await sendOnRoute(world.gateway, receipt.toJSON(), { tool: 'shop/send', args })).status, 200);
    assert.equal(
      receiptIn(await sendOnRoute(world.gateway, receipt.toJSON(), { tool: 'shop/send', args })).reason,
      'receipt_spent',
    );
    session.history().verify({ publicKey: checker.publicKey, audience: 'shop-gateway' });
  });

  test('it refuses and asks as the gateway does, and a person here may say yes', async () => {
    const session = checker.session('desk');
    assert.equal(session.check('shop/secret', ORDER).reason, 'unknown_tool');
    const undeclared = session.check('shop/send', { ...ORDER, extra: 1 });
    assert.deepEqual([undeclared.reason, undeclared.pointer], ['argument_schema', '/extra']);
    assert.equal(session.check('shop/keyed', ORDER, OWN).reason, 'order_rule');
    const asked = session.check('shop/send', ORDER);
    assert.deepEqual([asked.decision, asked.reason], ['confirm', 'argument_origin: order_id']);
    assert.throws(() => session.approve(undeclared), NoSuchStep);
    const approval = session.approve(asked);
    const other = session.check('shop/send', { order_id: 'A2' }, { approval });
    assert.equal(other.decision, 'confirm');
    const asksAnew = session.check('shop/send', ORDER);
    const yes = session.approve(asksAnew);
    const allowed = session.check('shop/send', ORDER, { approval: yes });
    assert.deepEqual([allowed.decision, allowed.reason], ['allow', 'confirmed']);
    assert.equal(session.check('shop/send', ORDER, { approval: yes }).decision, 'confirm');
    const refused = session.receipt(asked).toJSON();
    assert.equal(
      receiptIn(await sendOnRoute(world.gateway, refused, { tool: 'shop/send', args: ORDER })).reason,
      'receipt_not_allowed',
    );
    assert.equal(
      (await sendOnRoute(world.gateway, session.receipt(allowed).toJSON(), { tool: 'shop/send', args: ORDER })).status,
      200,
    );
  });

  test('limits count in this process, and once more at the gateway', async () => {
    const session = checker.session('desk');
    const first = session.check('shop/idem', ORDER, OWN);
    assert.equal(first.decision, 'allow');
    assert.equal(session.check('shop/idem', ORDER, OWN).reason, 'limit_reached');
    session.ran(first, 'failed');
    const again = session.check('shop/idem', ORDER, OWN);
    assert.equal(again.decision, 'allow');
    assert.equal(
      (await sendOnRoute(world.gateway, session.receipt(again).toJSON(), { tool: 'shop/idem', args: ORDER })).status,
      200,
    );
    const elsewhere = await LocalChecker.load({
      configFile: world.gateway.configFile,
      issuer: 'desk-runtime',
      signingKey: SIGNING_KEY,
    });
    const other = elsewhere.session('desk');
    const unaware = other.check('shop/idem', ORDER, OWN);
    assert.equal(unaware.decision, 'allow');
    const held = receiptIn(
      await sendOnRoute(world.gateway, other.receipt(unaware).toJSON(), { tool: 'shop/idem', args: ORDER }),
    );
    assert.equal(held.reason, 'limit_reached');
  });

  test('an undo is bound to its step, and late reports stand in the next entry', () => {
    const session = checker.session('desk');
    const read = session.check('shop/get_order', ORDER);
    session.ran(read, 'ran', { order_id: 'A1' });
    const write = session.check('shop/keyed', PAID, { ...OWN, run: 'r-1' });
    assert.equal(write.decision, 'allow', JSON.stringify(write));
    session.check('shop/get_order', ORDER);
    session.ran(write, 'ran', { ok: true });
    const mismatch = session.check('shop/idem', ORDER, { undoes: 1 });
    assert.equal(mismatch.reason, 'compensation_mismatch');
    const undo = session.check('shop/idem', PAID, { undoes: 1 });
    assert.deepEqual([undo.decision, undo.reason], ['allow', 'compensation'], JSON.stringify(undo));
    session.ran(undo, 'ran');
    assert.equal(session.check('shop/idem', PAID, { undoes: 1 }).reason, 'compensation_spent');
    const history = session.history();
    assert.deepEqual(
      history.entries[3]?.reports?.map(({ step, outcome }) => [step, outcome]),
      [[1, 'ran']],
    );
    assert.deepEqual(history.entries[5]?.reports, [{ step: 1, outcome: 'compensated' }]);
    history.verify({ publicKey: checker.publicKey });
    assert.throws(() => session.ran(undo, 'failed'), NoSuchStep);
    assert.ok(History.from(JSON.stringify(history)).entries.length === 6);
  });

  test('a configuration or key with faults makes no checker', async () => {
    const options = { configFile: '/nowhere/gateway.yaml', issuer: 'desk-runtime', signingKey: SIGNING_KEY };
    await assert.rejects(LocalChecker.load(options), ConfigFault);
    await assert.rejects(LocalChecker.load({ ...options, signingKey: 'none' }), { code: 'file' });
  });
});
