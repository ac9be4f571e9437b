import assert from 'node:assert/strict';
import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { type Shop, startShop } from '../../deploy/examples/shop/backend.ts';
import { canonicalize } from '../../receipts/canonical.ts';
import { startTestGateway, type TestGateway } from '../harness/gateway.ts';

const FORMAT = 'toolgate-licence/1';
const { privateKey, publicKey } = generateKeyPairSync('ed25519');
const other = generateKeyPairSync('ed25519').privateKey;
const PEM = publicKey.export({ type: 'spki', format: 'pem' }).toString();
const DAY_MS = 86_400_000;

function licence(change: Record<string, unknown> = {}, key: KeyObject = privateKey): string {
  const signed = { format: FORMAT, licensee: 'the shop', tenant: 'shop', not_after: Date.now() + DAY_MS, ...change };
  const message = Buffer.from(`${FORMAT}\0${canonicalize(signed)}`);
  return JSON.stringify({ ...signed, signature: sign(null, message, key).toString('base64url') });
}

let shop: Shop;
before(async () => {
  shop = await startShop();
});
after(() => shop.close());

function start(text: string, words: Record<string, unknown> = {}): Promise<TestGateway> {
  return startTestGateway(
    {
      tenant: 'shop',
      licence: { file: './licence.json', public_key: './licence.pub', ...words },
      agents: { desk: {} },
      routes: [
        {
          name: 'shop',
          path: '/shop',
          upstream: shop.url,
          agents: ['desk'],
          http: [
            { name: 'get_order', method: 'GET', path: '/orders/{order_id}' },
            { name: 'cancel_order', method: 'DELETE', path: '/orders/{order_id}', writes: true },
          ],
          tools: [{ name: 'cancel_order', irreversible: true, confirm: 'reasons' }],
        },
      ],
    },
    { files: { 'licence.json': text, 'licence.pub': PEM } },
  );
}

async function statuses(gateway: TestGateway): Promise<readonly [number, number]> {
  const read = await gateway.request('GET', '/shop/orders/4411');
  const headers = { 'toolgate-origins': 'order_id=context' };
  const write = await gateway.request('DELETE', '/shop/orders/4411', { headers });
  return [read.status, write.status];
}

describe('a licence', () => {
  test('that holds refuses nothing', async () => {
    const gateway = await start(licence());
    try {
      assert.deepEqual(await statuses(gateway), [200, 200]);
    } finally {
      await gateway.close();
    }
  });

  test('that lapsed refuses writes, and says so', async () => {
    const gateway = await start(licence({ not_after: Date.now() - 1 }));
    const seen = shop.seen.length;
    try {
      assert.deepEqual(await statuses(gateway), [200, 403]);
      assert.equal(shop.seen.length, seen + 1, 'the write was forwarded');
      const { json } = await gateway.request('POST', '/v1/check', {
        body: { tool: 'cancel_order', arguments: { order_id: '1' } },
      });
      assert.equal((json as { reason: string }).reason, 'licence_lapsed');
    } finally {
      await gateway.close();
    }
  });

  test('that lapsed refuses every call where the operator says so', async () => {
    const gateway = await start(licence({ not_after: Date.now() - 1 }), { lapsed: 'refuse' });
    try {
      assert.deepEqual(await statuses(gateway), [403, 403]);
    } finally {
      await gateway.close();
    }
  });

  test('that lapses while the gateway runs refuses from then on', async (t) => {
    const inAnHour = Date.now() + 3_600_000;
    // The clock that the gateway takes when it starts.
    const clock = t.mock.method(Date, 'now');
    const gateway = await start(licence({ not_after: inAnHour }));
    try {
      assert.deepEqual(await statuses(gateway), [200, 200]);
      clock.mock.mockImplementation(() => inAnHour + 1);
      assert.deepEqual(await statuses(gateway), [200, 403]);
    } finally {
      await gateway.close();
    }
  });

  const faulty: readonly (readonly [string, string, RegExp])[] = [
    ['signed by another key', licence({}, other), /not signed by its `public_key`/],
    ['edited', licence().replace('the shop', 'a shop'), /not signed/],
    ['of another tenant', licence({ tenant: 'bank' }), /another tenant/],
    ['without an end', licence({ not_after: 'never' }), /no `not_after`/],
    ['of another format', licence({ format: 'x' }), /another `format`/],
    ['that is no JSON', 'no', /not JSON/],
  ];
  for (const [what, text, message] of faulty) {
    test(`${what} keeps the gateway from starting`, () => assert.rejects(start(text), message));
  }
});
