import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { nodeCrypto } from '../../receipts/crypto-node.ts';
import { cutHistory } from '../../receipts/history-cut.ts';
import { startTestGateway } from '../harness/gateway.ts';
import { unusedPort } from '../http/backends.ts';
import { appClient, askReceipt, OWN_WORDS, receiptIn, sendOnRoute } from './support.ts';
import { APP, inHeader, issuerHistory, OTHER, startWorld, type World, worldConfig } from './world.ts';

const ORDER = { order_id: 'A1' };

describe('receipts that admit a call', () => {
  let world: World;
  before(async () => {
    world = await startWorld();
  });
  after(() => world.close());

  /** Runs `work` and tells how many requests reached the backend meanwhile. */
  async function reaching(work: () => Promise<void>): Promise<number> {
    const before = world.backend.seen.length;
    await work();
    return world.backend.seen.length - before;
  }

  for (const [name, make] of [
    ['whole', issuerHistory],
    ['cut', (of: Parameters<typeof issuerHistory>[0]) => cutHistory(nodeCrypto, issuerHistory(of))],
    ['cut far behind its beginning', (of: object) => cutHistory(nodeCrypto, issuerHistory({ ...of, before: 40 }))],
  ] as const) {
    test(`a ${name} history is asked about without being spent, then admits its call once`, async () => {
      const receipt = make({});
      const sent = await reaching(async () => {
        for (let i = 0; i < 2; i++) {
          const asked = await askReceipt(world.gateway, receipt);
          assert.deepEqual([asked.decision, asked.reason, asked.resend], ['allow', 'receipt', false]);
        }
        const first = await sendOnRoute(world.gateway, receipt);
        assert.equal(first.status, 200, first.text);
        assert.equal(first.headers.get('toolgate-decision'), 'allow');
        assert.ok(first.headers.get('toolgate-session'));
        assert.equal(receiptIn(await sendOnRoute(world.gateway, receipt)).reason, 'receipt_spent');
      });
      assert.equal(sent, 1);
    });
  }

  test('`either` takes a receipt where one is given, and checks the call where none is', async () => {
    const session = appClient(world).session('desk');
    const check = await session.check('mixed/send', ORDER, OWN_WORDS);
    assert.equal(check.decision, 'allow');
    const admitted = await sendOnRoute(world.gateway, (await session.receipt(check)).toJSON(), {
      tool: 'mixed/send',
      args: ORDER,
    });
    assert.equal(admitted.status, 200, admitted.text);
    const headers = { 'toolgate-agent': 'desk' };
    const asked = await world.gateway.request('POST', '/mixed/send', { key: APP.key, headers, body: ORDER });
    assert.equal(asked.status, 428, asked.text);
  });

  test('a read is sent again each time', async () => {
    const receipt = issuerHistory({ tool: 'shop/get_order', args: ORDER });
    const sent = await reaching(async () => {
      for (let i = 0; i < 3; i++) {
        const answer = await sendOnRoute(world.gateway, receipt, { tool: 'shop/get_order', args: ORDER });
        assert.equal(answer.status, 200, answer.text);
      }
      const answer = await callWith(receipt, 'shop/get_order', ORDER);
      assert.equal(answer.receipt.resend, true);
    });
    assert.equal(sent, 4);
  });

  for (const tool of ['shop/keyed', 'shop/idem']) {
    test(`${tool}: what is settled is answered from the store`, async () => {
      const receipt = issuerHistory({ tool });
      const sent = await reaching(async () => {
        const first = await sendOnRoute(world.gateway, receipt, { tool });
        assert.equal(first.status, 200);
        assert.equal(first.headers.get('idempotency-replayed'), null);
        const again = await sendOnRoute(world.gateway, receipt, { tool });
        assert.equal(again.status, 200);
        assert.equal(again.headers.get('idempotency-replayed'), 'true');
        assert.equal(again.headers.get('toolgate-session'), receipt.session);
        assert.equal(again.text, first.text);
        const called = await callWith(receipt, tool);
        assert.deepEqual([called.receipt.resend, called.replayed, called.outcome], [true, true, 'ran']);
      });
      assert.equal(sent, 1);
    });

    test(`${tool}: what is unknown is sent again with the same key`, async () => {
      const receipt = issuerHistory({ tool });
      world.backend.next.push(...Array.from({ length: 4 }, () => 500));
      const sentBefore = world.backend.keys.length;
      const first = await sendOnRoute(world.gateway, receipt, { tool });
      assert.ok(first.status >= 500, first.text);
      world.backend.next.length = 0;
      const again = await callWith(receipt, tool);
      assert.deepEqual([again.receipt.resend, again.outcome], [true, 'ran'], JSON.stringify(again));
      const keys = new Set(world.backend.keys.slice(sentBefore));
      assert.equal(keys.size, tool === 'shop/keyed' ? 1 : 0);
    });
  }

  test('a plain write whose outcome is unknown is never sent again', async () => {
    const receipt = issuerHistory();
    world.backend.next.push(0);
    const sent = await reaching(async () => {
      const first = await sendOnRoute(world.gateway, receipt);
      assert.equal(first.status, 504, first.text);
      assert.equal(receiptIn(await sendOnRoute(world.gateway, receipt)).reason, 'receipt_spent');
    });
    assert.equal(sent, 1);
  });

  test('while the first send is under way a keyed write is told to wait, and a plain one is spent', async () => {
    const keyed = issuerHistory({ tool: 'shop/keyed' });
    const plain = issuerHistory();
    world.backend.delayMs = 400;
    const first = [sendOnRoute(world.gateway, keyed, { tool: 'shop/keyed' }), sendOnRoute(world.gateway, plain)];
    const before = world.backend.seen.length;
    while (world.backend.seen.length < before + 2) await new Promise((resolve) => setTimeout(resolve, 5));
    const waiting = await sendOnRoute(world.gateway, keyed, { tool: 'shop/keyed' });
    assert.equal(waiting.status, 409, waiting.text);
    assert.ok(waiting.headers.get('retry-after'));
    assert.equal(receiptIn(await sendOnRoute(world.gateway, plain)).reason, 'receipt_spent');
    for (const answer of await Promise.all(first)) assert.equal(answer.status, 200);
    world.backend.delayMs = 0;
  });

  test('a call that was certainly not sent may be sent again', async () => {
    const port = await unusedPort();
    const gateway = await startTestGateway(worldConfig(`http://127.0.0.1:${port}`));
    try {
      const receipt = issuerHistory();
      const first = await sendOnRoute(gateway, receipt);
      assert.equal(first.status, 502, first.text);
      const asked = await askReceipt(gateway, receipt);
      assert.deepEqual([asked.decision, asked.resend], ['allow', true]);
    } finally {
      await gateway.close();
    }
  });

  test("another caller with the same issuer's receipt comes too late, and sees no answer", async () => {
    for (const tool of ['shop/charge', 'shop/keyed']) {
      const receipt = issuerHistory({ tool });
      assert.equal((await sendOnRoute(world.gateway, receipt, { tool })).status, 200);
      const late = receiptIn(await sendOnRoute(world.gateway, receipt, { tool, key: OTHER.key }));
      assert.equal(late.reason, 'receipt_spent');
    }
  });

  test('a receipt that its caller spends is not forwarded afterwards', async () => {
    const receipt = issuerHistory();
    const sent = await reaching(async () => {
      assert.equal((await askReceipt(world.gateway, receipt, { spend: true })).reason, 'receipt');
      assert.equal((await askReceipt(world.gateway, receipt, { spend: true })).reason, 'receipt_spent');
      assert.equal(receiptIn(await sendOnRoute(world.gateway, receipt)).reason, 'receipt_spent');
    });
    assert.equal(sent, 0);
  });

  test('64 sends of one receipt at once run the call once', async () => {
    const receipt = issuerHistory();
    const sent = await reaching(async () => {
      const answers = await Promise.all(Array.from({ length: 64 }, () => sendOnRoute(world.gateway, receipt)));
      assert.equal(answers.filter(({ status }) => status === 200).length, 1);
      for (const answer of answers) if (answer.status !== 200) assert.equal(receiptIn(answer).reason, 'receipt_spent');
    });
    assert.equal(sent, 1);
  });

  interface Called {
    readonly receipt: { readonly resend: boolean };
    readonly outcome?: string;
    readonly replayed?: boolean;
  }

  async function callWith(
    receipt: unknown,
    tool: string,
    args: object = { amount: 40, order_id: 'A1' },
  ): Promise<Called> {
    const options = { key: APP.key, headers: { 'toolgate-receipt': inHeader(receipt) } };
    const answer = await world.gateway.request('POST', '/v1/call', {
      ...options,
      body: { tool, arguments: args, agent: 'desk' },
    });
    assert.equal(answer.status, 200, answer.text);
    return answer.json as Called;
  }
});
