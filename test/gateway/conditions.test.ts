import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { startTestGateway, type TestGateway } from '../harness/gateway.ts';
import { call, configOf, reasonOf, Shop } from './scripted-shop.ts';

describe('conditions over what tools returned', () => {
  const shop = new Shop();
  let gateway: TestGateway;
  before(async () => {
    await shop.start();
    const result = { type: 'object', properties: { in_stock: { type: 'integer' }, sku: { type: 'string' } } };
    gateway = await startTestGateway(
      configOf(shop.backend.origin, {
        check_stock: { result },
        order: {
          writes: true,
          checks: [
            { field: 'quantity', at_most: { from: 'check_stock.in_stock', same: 'sku' }, because: 'Not that many.' },
          ],
        },
        reorder: {
          writes: true,
          defaults: { quantity: 2 },
          checks: [{ field: 'quantity', at_most: 2, because: 'Two at a time.' }],
        },
      }),
    );
  });
  after(async () => {
    await gateway.close();
    await shop.backend.close();
  });

  test('the newest answer about the same thing decides, and its reason reaches the caller', async () => {
    shop.answer = (path) => ({ body: path.includes('A1') ? '{"in_stock":3}' : '{"in_stock":9}' });
    const session = { session: 'stock-1' };
    assert.equal(reasonOf(await call(gateway, 'order', { sku: 'A1', quantity: 1 }, session)), 'condition_unknown');
    await call(gateway, 'check_stock', { sku: 'A1' }, session);
    await call(gateway, 'check_stock', { sku: 'B2' }, session);
    const refused = await call(gateway, 'order', { sku: 'A1', quantity: 4 }, session);
    assert.equal(reasonOf(refused), 'condition_failed');
    assert.match(refused.check?.sentence ?? '', /Not that many\./);
    assert.deepEqual(refused.check?.detail, {
      condition: 'quantity at_most {from: check_stock.in_stock, same: sku}',
      types: ['number', 'number'],
      because: 'Not that many.',
    });
    assert.equal((await call(gateway, 'order', { sku: 'B2', quantity: 4 }, session)).outcome, 'ran');
    assert.equal((await call(gateway, 'order', { sku: 'A1', quantity: 3 }, session)).outcome, 'ran');
    assert.equal(
      reasonOf(await call(gateway, 'order', { sku: 'A1', quantity: 1 }, { session: 'stock-2' })),
      'condition_unknown',
    );
  });

  test('an answer that failed, or that cannot be read, says nothing that a condition could go by', async () => {
    const session = { session: 'stock-3' };
    shop.answer = () => ({ status: 404, body: '{"in_stock":3}' });
    await call(gateway, 'check_stock', { sku: 'A1' }, session);
    assert.equal(reasonOf(await call(gateway, 'order', { sku: 'A1', quantity: 1 }, session)), 'condition_unknown');
    shop.answer = () => ({ body: '{"in_stock":3}' });
    await call(gateway, 'check_stock', { sku: 'A1' }, session);
    assert.equal(reasonOf(await call(gateway, 'order', { sku: 'A1', quantity: 1 }, session)), 'allow');
    shop.answer = () => ({ type: 'text/plain', body: 'three' });
    await call(gateway, 'check_stock', { sku: 'A1' }, session);
    assert.equal(reasonOf(await call(gateway, 'order', { sku: 'A1', quantity: 1 }, session)), 'condition_unknown');
  });

  test('a default is filled in before the check, is shown as context, and overrides nothing', async () => {
    shop.answer = () => ({ body: '{}' });
    shop.calls.length = 0;
    assert.equal((await call(gateway, 'reorder', { sku: 'A1' }, { session: 'defaults' })).outcome, 'ran');
    assert.equal((await call(gateway, 'reorder', { sku: 'A1', quantity: 1 }, { session: 'defaults' })).outcome, 'ran');
    assert.deepEqual(
      shop.calls.map(({ body }) => JSON.parse(body)),
      [
        { sku: 'A1', quantity: 2 },
        { sku: 'A1', quantity: 1 },
      ],
    );
    // Its value is the operator's: nobody is asked about it, and a person is shown where it came from.
    const asked = await call(gateway, 'reorder', { sku: 'A1' }, { session: 'defaults', origins: {} });
    assert.equal(reasonOf(asked), 'argument_origin: sku');
    assert.deepEqual(asked.check?.detail['arguments'], [
      { name: 'sku', value: 'A1', origin: 'model' },
      { name: 'quantity', value: 2, origin: 'context' },
    ]);
    // On the route too a given value is the one that is judged, and the sentence of its condition is told.
    const refused = await gateway.request('POST', '/shop/reorder', {
      body: { sku: 'A1', quantity: 3 },
      headers: { 'toolgate-agent': 'desk', 'toolgate-origins': 'sku=context, quantity=context' },
    });
    assert.equal(refused.status, 403);
    assert.match(refused.text, /condition_failed.*Two at a time\./s);
    assert.equal(shop.calls.length, 2);
  });

  test('no value of an argument or of an answer reaches the audit log', async () => {
    shop.answer = () => ({ body: '{"in_stock":77712345}' });
    const session = { session: 'stock-4' };
    await call(gateway, 'check_stock', { sku: 'SKU-OF-ANA' }, session);
    await call(gateway, 'order', { sku: 'SKU-OF-ANA', quantity: 77712346 }, session);
    const log = readFileSync(join(gateway.folder, 'audit.jsonl'), 'utf8');
    assert.match(log, /condition_failed/);
    assert.doesNotMatch(log, /SKU-OF-ANA|7771234/);
  });
});
