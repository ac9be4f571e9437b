import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { startTestGateway, type TestAnswer, type TestGateway } from '../harness/gateway.ts';
import { call, configOf, Shop } from './scripted-shop.ts';

describe('filters', () => {
  const shop = new Shop();
  let gateway: TestGateway;
  before(async () => {
    await shop.start();
    gateway = await startTestGateway(
      configOf(
        shop.backend.origin,
        {
          jobs: { filter: { each: 'jobs[]', keep: [{ field: 'pay', at_least: 5 }] } },
          orders: { filter: { each: 'orders[].items[]', keep: [{ field: 'pay', at_least: 5 }] } },
          lenient: { filter: { each: 'jobs[]', keep: [{ field: 'pay', at_least: 5, unknown: 'pass' }] } },
          all: {},
        },
        { store: { url: './toolgate.db', max_answer: '64KiB' } },
      ),
    );
  });
  after(async () => {
    await gateway.close();
    await shop.backend.close();
  });

  const get = (headers: Record<string, string> = {}, path = '/shop/jobs'): Promise<TestAnswer> =>
    gateway.request('GET', path, { headers: { 'toolgate-agent': 'desk', ...headers } });

  test('a record that fails never reaches the client, on the route and over the API', async () => {
    shop.answer = () => ({
      body: '{"jobs":[{"id":1234567890123456789,"pay":9},{"pay":1,"x":"HIDDEN"},{"x":"HIDDEN"}],"next":"p2"}',
    });
    const answer = await get();
    assert.equal(answer.status, 200);
    assert.equal(answer.text, '{"jobs":[{"id":1234567890123456789,"pay":9}],"next":"p2"}');
    assert.equal(answer.headers.get('toolgate-held-back'), '2');
    assert.equal(answer.headers.get('etag'), null);
    assert.equal(answer.headers.get('content-length'), String(answer.text.length));
    const called = await call(gateway, 'jobs', {});
    assert.equal(called.held_back, 2);
    assert.doesNotMatch(JSON.stringify(called), /HIDDEN/);
    const log = readFileSync(join(gateway.folder, 'audit.jsonl'), 'utf8');
    assert.match(log, /"held_back":2/);
    assert.doesNotMatch(log, /HIDDEN/);
  });

  test('each page of a paged answer is filtered, and an answer without a loss says so', async () => {
    shop.answer = () => ({ body: '{"jobs":[{"pay":9}],"page":2}' });
    const answer = await get();
    assert.equal(answer.text, '{"jobs":[{"pay":9}],"page":2}');
    assert.equal(answer.headers.get('toolgate-held-back'), '0');
  });

  test('records in lists of lists are judged, and one without the value passes where the filter says so', async () => {
    const good = '{"id":1,"pay":9}';
    const bad = '{"id":2,"pay":1,"x":"HIDDEN"}';
    shop.answer = () => ({ body: `{"orders":[{"id":7,"items":[${good},${bad}]},{"id":8,"x":"HIDDEN"}]}` });
    const nested = await get({}, '/shop/orders');
    assert.equal(nested.text, `{"orders":[{"id":7,"items":[${good}]}]}`);
    assert.equal(nested.headers.get('toolgate-held-back'), '2');
    shop.answer = () => ({ body: `{"jobs":[${bad},{"id":3},{"id":4,"pay":null},${good},{"pay":"HIDDEN"}]}` });
    const lenient = await get({}, '/shop/lenient');
    assert.equal(lenient.text, `{"jobs":[{"id":3},{"id":4,"pay":null},${good}]}`);
    assert.equal(lenient.headers.get('toolgate-held-back'), '2');
  });

  test('an answer that cannot be read is refused, not passed on', async () => {
    const hidden = '"x":"HIDDEN"';
    const unreadable: readonly ReturnType<Shop['answer']>[] = [
      { body: `{"jobs":[{"pay":1,${hidden},"pad":"${'x'.repeat(100_000)}"}]}` },
      { body: `{"items":[{"pay":1,${hidden}}]}` },
      { body: `{"jobs":{"pay":1,${hidden}}}` },
      { body: `{"jobs":[{"pay":1,${hidden}}]` },
      { body: `{"jobs":[],"jobs":[{"pay":1,${hidden}}]}` },
      { encoding: 'gzip', body: gzipSync(`{"jobs":[{"pay":1,${hidden}}]}`) },
      { encoding: 'br', body: `{"jobs":[{"pay":1,${hidden}}]}` },
      { status: 206, type: 'multipart/byteranges; boundary=x', body: `--x\r\n\r\n{"jobs":[{"pay":1,${hidden}}]}` },
      { type: 'image/svg+xml', body: `<svg><text>HIDDEN</text></svg>` },
      { type: 'text/plain', body: `HIDDEN` },
      { type: 'text/event-stream', body: `data: HIDDEN\n\n` },
    ];
    for (const one of unreadable) {
      shop.answer = () => one;
      const answer = await get();
      assert.equal(answer.status, 502, String(one.body.slice(0, 60)));
      assert.match(answer.text, /answer_not_filtered/);
      assert.doesNotMatch(answer.text, /HIDDEN/);
    }
  });

  test('what a repeat with the same key gets is filtered too', async () => {
    shop.answer = () => ({ body: '{"jobs":[{"pay":9},{"pay":1,"x":"HIDDEN"}]}' });
    const headers = { 'idempotency-key': '"k-1"' };
    const first = await get(headers);
    const again = await get(headers);
    assert.equal(first.text, '{"jobs":[{"pay":9}]}');
    assert.equal(again.headers.get('idempotency-replayed'), 'true');
    assert.equal(again.text, first.text);
  });

  test('an error of the backend is passed on, and a tool without a filter is not touched', async () => {
    shop.answer = () => ({ status: 404, body: '{"error":"no such page"}' });
    assert.equal((await get()).text, '{"error":"no such page"}');
    shop.answer = () => ({ body: '{"jobs":[{"pay":1}]}' });
    const answer = await gateway.request('GET', '/shop/all', { headers: { 'toolgate-agent': 'desk' } });
    assert.equal(answer.text, '{"jobs":[{"pay":1}]}');
    assert.equal(answer.headers.get('toolgate-held-back'), null);
  });
});
