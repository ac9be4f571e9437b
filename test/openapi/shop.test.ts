import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';
import { type Shop, startShop } from '../../deploy/examples/shop/backend.ts';
import { loadApiFiles } from '../../gateway/openapi/load.ts';
import { validateApiDocument } from '../../gateway/openapi/validate.ts';
import type { Api } from '../../policy/openapi/api.ts';
import { readApi } from '../../policy/openapi/read-api.ts';
import type { JsonValue } from '../../receipts/json-value.ts';
import { startTestGateway, type TestGateway } from '../harness/gateway.ts';

const FOLDER = fileURLToPath(new URL('../../deploy/examples/shop/', import.meta.url));

let shop: Shop;
let gateway: TestGateway;
let api: Api;

before(async () => {
  shop = await startShop();
  const text = await readFile(`${FOLDER}openapi.yaml`, 'utf8');
  const { routes, ...config }: { routes: object[] } = parse(await readFile(`${FOLDER}openapi-gateway.yaml`, 'utf8'));
  const own = {
    listen: '127.0.0.1:0',
    keys: { signing: './gateway.pem' },
    store: './toolgate.db',
    audit: { file: './audit.jsonl' },
  };
  gateway = await startTestGateway(
    { ...config, ...own, routes: routes.map((route) => ({ ...route, upstream: shop.url })) },
    { files: { 'openapi.yaml': text } },
  );
  api = readApi(await loadApiFiles(`${FOLDER}openapi.yaml`));
});

after(async () => {
  await gateway.close();
  await shop.close();
});

interface Called {
  readonly check: { readonly confirmation?: { readonly token: string } };
  readonly outcome?: string;
  readonly result?: JsonValue;
}

async function called(body: object): Promise<Called> {
  return (await gateway.request('POST', '/v1/call', { body })).json as Called;
}

const CALLS: readonly (readonly [string, Readonly<Record<string, JsonValue>>])[] = [
  ['get_order', { order_id: '4411' }],
  ['check_stock', { sku: 'A1' }],
  ['charge_card', { order_id: '4411', amount: 40 }],
  ['refund_card', { order_id: '4411', amount: 40 }],
  ['send_receipt', { order_id: '4411' }],
  ['create_order', { sku: 'A1', quantity: 2 }],
  ['cancel_order', { order_id: '4413' }],
  ['read_inbox', {}],
];

test('the document is valid, and every call of it is answered as it says', async () => {
  assert.deepEqual(await validateApiDocument(await loadApiFiles(`${FOLDER}openapi.yaml`)), []);
  assert.deepEqual(api.refused, []);
  assert.deepEqual(api.operations.map(({ name }) => name).sort(), CALLS.map(([name]) => name).sort());
  for (const [tool, args] of CALLS) {
    const body = { tool: `shop/${tool}`, arguments: args, agent: 'billing', session: 'shop' };
    let answer = await called(body);
    const token = answer.check.confirmation?.token;
    if (token !== undefined) answer = await called({ ...body, confirmation: token });
    assert.equal(answer.outcome, 'ran', JSON.stringify(answer));
    const operation = api.operations.find(({ name }) => name === tool);
    assert.ok(operation?.result !== undefined, tool);
    assert.deepEqual(operation.partial, [], tool);
    assert.deepEqual(operation.result.validate(answer.result ?? null), [], JSON.stringify(answer));
  }
});

test('the key of a write goes in its header, which is no argument', async () => {
  const charge = shop.seen.find(({ target }) => target === '/charges');
  const keys = charge?.headers.filter((_, at, all) => at % 2 === 1 && all[at - 1]?.toLowerCase() === 'idempotency-key');
  assert.equal(keys?.length, 1);
  assert.match(keys[0] ?? '', /^"[A-Za-z0-9_-]{43}"$/);
  const body = {
    tool: 'shop/charge_card',
    arguments: { order_id: '4411', amount: 1, 'Idempotency-Key': 'mine' },
    agent: 'desk',
  };
  const answer = await gateway.request('POST', '/v1/call', { body });
  assert.equal((answer.json as { check: { pointer: string } }).check.pointer, '/Idempotency-Key', answer.text);
});
