import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { type Shop, startShop } from '../../deploy/examples/shop/backend.ts';
import { startTestGateway, type TestGateway } from '../harness/gateway.ts';

let shop: Shop;
before(async () => {
  shop = await startShop();
});
after(() => shop.close());

function start(unavailable: string): Promise<TestGateway> {
  return startTestGateway({
    store: { url: './toolgate.db', unavailable },
    agents: { desk: {} },
    routes: [
      {
        name: 'shop',
        path: '/shop',
        upstream: shop.url,
        agents: ['desk'],
        http: [
          { name: 'get_order', method: 'GET', path: '/orders/{order_id}' },
          { name: 'read_inbox', method: 'GET', path: '/inbox' },
          { name: 'check_stock', method: 'GET', path: '/stock/{sku}' },
          { name: 'cancel_order', method: 'DELETE', path: '/orders/{order_id}', writes: true },
        ],
        tools: [
          { name: 'read_inbox', reads_outside: true },
          { name: 'check_stock', at_most: 5 },
          { name: 'cancel_order', irreversible: true, confirm: 'reasons' },
        ],
      },
    ],
  });
}

async function statuses(gateway: TestGateway): Promise<Record<string, number>> {
  const paths = ['/shop/orders/4411', '/shop/inbox', '/shop/stock/A1'];
  const answers = await Promise.all(paths.map((path) => gateway.request('GET', path)));
  const headers = { 'toolgate-origins': 'order_id=context' };
  const write = await gateway.request('DELETE', '/shop/orders/4411', { headers });
  const [order, inbox, stock] = answers.map(({ status }) => status);
  return { order: order ?? 0, inbox: inbox ?? 0, stock: stock ?? 0, write: write.status };
}

describe('while the store is away', () => {
  test('nothing is forwarded by default', async () => {
    const gateway = await start('refuse');
    try {
      await gateway.gateway.store.close();
      const seen = shop.seen.length;
      assert.deepEqual(await statuses(gateway), { order: 503, inbox: 503, stock: 503, write: 503 });
      assert.equal(shop.seen.length, seen);
    } finally {
      await gateway.close();
    }
  });

  test('`allow_reads` lets through reads that nothing hangs on, logged, and nothing else', async () => {
    const gateway = await start('allow_reads');
    try {
      await gateway.gateway.store.close();
      const seen = shop.seen.length;
      assert.deepEqual(await statuses(gateway), { order: 200, inbox: 503, stock: 503, write: 503 });
      assert.deepEqual(
        shop.seen.slice(seen).map(({ target }) => target),
        ['/orders/4411'],
      );
      const refused = await gateway.request('GET', '/shop/orders/evil.example.com');
      assert.equal(refused.status, 503, 'a refusal cannot be recorded either');
      const lines = readFileSync(join(gateway.folder, 'audit.jsonl'), 'utf8').trim().split('\n');
      const events = lines.map((line) => JSON.parse(line) as Record<string, unknown>);
      const ofOrder = events.filter(({ tool }) => tool === 'shop/get_order').map(({ event }) => event);
      assert.deepEqual(ofOrder, ['decision', 'outcome']);
    } finally {
      await gateway.close();
    }
  });
});
