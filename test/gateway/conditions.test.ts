import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { startTestGateway, type TestAnswer, type TestGateway } from '../harness/gateway.ts';
import { type Backend, httpBackend } from '../http/backends.ts';

const LISBON = { timezone: 'Europe/Lisbon' };

/** A shop whose answers a test sets, and the calls that reached it. */
class Shop {
  readonly calls: { readonly path: string; readonly body: string }[] = [];
  answer: (path: string, body: string) => { status?: number; type?: string; body: string } = () => ({ body: '{}' });
  /** What an answer waits for. */
  hold: Promise<void> | undefined;
  backend!: Backend;

  async start(): Promise<void> {
    this.backend = await httpBackend((request, response) => {
      let body = '';
      request.setEncoding('utf8').on('data', (chunk: string) => {
        body += chunk;
      });
      request.on('end', async () => {
        const path = request.url ?? '';
        this.calls.push({ path, body });
        await this.hold;
        const { status = 200, type = 'application/json', body: text } = this.answer(path, body);
        response.writeHead(status, { 'content-type': type, etag: '"e"' }).end(text);
      });
    });
  }
}

const AMOUNT = {
  type: 'object',
  properties: { amount: { type: 'number' }, sku: { type: 'string' }, quantity: { type: 'integer' } },
};

interface Words {
  readonly [word: string]: unknown;
}

function configOf(upstream: string, tools: Record<string, Words>, more: Words = {}): object {
  return {
    tenant: 'shop',
    audience: 'shop-gateway',
    agents: { desk: { privilege: 'high' } },
    ...more,
    routes: [
      {
        name: 'shop',
        path: '/shop',
        upstream,
        agents: ['desk'],
        http: Object.entries(tools).map(([name, { writes }]) => ({
          name,
          method: writes === true ? 'POST' : 'GET',
          path: `/${name}`,
          ...(writes === true ? { writes } : {}),
          input: AMOUNT,
        })),
        tools: Object.entries(tools).map(([name, { writes, ...words }]) => ({
          name,
          ...(writes === true ? { confirm: 'reasons' } : {}),
          ...words,
        })),
      },
    ],
  };
}

interface Called {
  readonly check?: {
    readonly decision: string;
    readonly reason: string;
    readonly detail: Record<string, unknown>;
    readonly sentence: string;
    readonly step: number;
  };
  readonly outcome?: string;
  readonly result?: unknown;
  readonly held_back?: number;
  readonly type?: string;
}

async function call(gateway: TestGateway, tool: string, args: object, more: object = {}): Promise<Called> {
  const origins = Object.fromEntries(Object.keys(args).map((name) => [name, 'context']));
  const body = { tool: `shop/${tool}`, arguments: args, agent: 'desk', origins, ...more };
  return (await gateway.request('POST', '/v1/call', { body })).json as Called;
}

function reasonOf(called: Called): string {
  return called.check === undefined ? `problem ${called.type}` : called.check.reason;
}

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

describe('limits and spend', () => {
  const shop = new Shop();
  let gateway: TestGateway;
  before(async () => {
    await shop.start();
    gateway = await startTestGateway(
      configOf(shop.backend.origin, {
        ten: { writes: true, at_most: { count: 10, per: 'day' } },
        search: { at_most: [{ count: 3, per: 'hour' }] },
        pay: {
          writes: true,
          undo: { tool: 'refund', with: { amount: 'arguments.amount' } },
          currency: 'EUR',
          spend: [{ field: 'amount', at_most: '100.00', per: 'month', pool: 'trading' }],
        },
        tip: {
          writes: true,
          currency: 'EUR',
          spend: [{ field: 'amount', at_most: 100, per: 'month', pool: 'trading' }],
        },
        refund: { writes: true, undo: 'none', restores: true },
        gift: {
          writes: true,
          undo: { tool: 'take_back', with: { amount: 'arguments.amount' } },
          currency: 'EUR',
          spend: [{ field: 'amount', at_most: 10, per: 'month' }],
        },
        take_back: { writes: true, undo: 'none' },
      }),
    );
    shop.answer = () => ({ body: '{}' });
  });
  after(async () => {
    await gateway.close();
    await shop.backend.close();
  });

  test('100 calls at once of a limit of 10: exactly 10 run', async () => {
    shop.calls.length = 0;
    const called = await Promise.all(
      Array.from({ length: 100 }, (_, index) => call(gateway, 'ten', {}, { session: `ten-${index % 25}` })),
    );
    const reasons = Map.groupBy(called, reasonOf);
    assert.equal(shop.calls.length, 10);
    assert.equal(reasons.get('allow')?.length, 10);
    assert.equal(reasons.get('limit_reached')?.length, 90, JSON.stringify([...reasons.keys()]));
  });

  test('a read is limited like a write', async () => {
    const called = await Promise.all(
      Array.from({ length: 8 }, (_, index) => call(gateway, 'search', {}, { session: `search-${index}` })),
    );
    assert.equal(called.filter((one) => one.outcome === 'ran').length, 3);
    const refused = called.find((one) => one.check?.decision === 'refuse');
    assert.deepEqual(refused?.check?.detail, { limit: { count: 3, per: 'hour' } });
  });

  test('a pool of 100.00 takes two calls of 40.00, whichever tools make them, and what failed is given back', async () => {
    shop.answer = () => ({ status: 422, body: '{}' });
    assert.equal((await call(gateway, 'pay', { amount: 90 })).outcome, 'failed');
    shop.answer = () => ({ body: '{}' });
    const tools = ['pay', 'tip', 'pay', 'tip', 'pay'];
    const called = await Promise.all(tools.map((tool) => call(gateway, tool, { amount: 40 })));
    assert.equal(called.filter((one) => one.outcome === 'ran').length, 2);
    assert.equal(called.filter((one) => reasonOf(one) === 'spend_exceeded').length, 3);
    assert.equal(reasonOf(await call(gateway, 'pay', { amount: 20.01 })), 'spend_exceeded');
    // An unknown outcome stays counted.
    shop.answer = () => ({ status: 503, body: '{}' });
    assert.equal((await call(gateway, 'tip', { amount: 15 })).outcome, 'outcome_unknown');
    shop.answer = () => ({ body: '{}' });
    assert.equal(reasonOf(await call(gateway, 'tip', { amount: 5.01 })), 'spend_exceeded');
    assert.equal((await call(gateway, 'tip', { amount: 5 })).outcome, 'ran');
    for (const amount of [-1, undefined]) {
      const args = amount === undefined ? {} : { amount };
      assert.equal(reasonOf(await call(gateway, 'pay', args)), 'spend_unknown');
    }
  });

  test('what is used of each limit is told, held apart from settled', async () => {
    const answer = await gateway.request('GET', '/v1/usage');
    assert.equal(answer.status, 200, answer.text);
    const { at, usage } = answer.json as { at: number; usage: Record<string, unknown>[] };
    const of = (tool: string): Record<string, unknown> | undefined =>
      usage.find(({ tools }) => (tools as string[]).includes(`shop/${tool}`));
    assert.equal(of('ten')?.['settled'], '10');
    assert.equal(of('search')?.['settled'], '3');
    assert.equal(of('search')?.['since'], at - 3_600_000 + 1);
    const { until, ...pool } = of('tip') ?? {};
    assert.deepEqual(pool, {
      kind: 'spend',
      tools: ['shop/tip'],
      pool: 'trading',
      currency: 'EUR',
      per: 'month',
      at_most: '100',
      settled: of('pay')?.['settled'],
      held: of('pay')?.['held'],
    });
    assert.ok(Number(until) > at);
    assert.equal(Number(pool['settled']) + Number(pool['held']), 100);
    assert.ok(Number(pool['held']) >= 15);
  });

  test('an undo gives back what its step spent only where it says so', async () => {
    const undone = async (tool: string, undo: string, session: string, amount: number): Promise<void> => {
      const ran = await call(gateway, tool, { amount }, { session });
      assert.equal(ran.outcome, 'ran', JSON.stringify(ran));
      const back = await call(gateway, undo, { amount }, { session, undoes: ran.check?.step });
      assert.equal(back.outcome, 'ran', JSON.stringify(back));
    };
    await undone('gift', 'take_back', 'gift-1', 6);
    assert.equal(reasonOf(await call(gateway, 'gift', { amount: 6 })), 'spend_exceeded');
    assert.equal((await call(gateway, 'gift', { amount: 4 })).outcome, 'ran');
  });

  test('a host that checks and runs a call itself reserves at the check, and its report gives back', async () => {
    const check = async (): Promise<NonNullable<Called['check']> & { session: string }> => {
      const body = { tool: 'shop/gift_host', arguments: { amount: 6 }, agent: 'desk', origins: { amount: 'context' } };
      return (await gateway.request('POST', '/v1/check', { body })).json as never;
    };
    await gateway.reconfigure(
      configOf(shop.backend.origin, {
        gift_host: { writes: true, currency: 'EUR', spend: [{ field: 'amount', at_most: 10, per: 'month' }] },
        pay: {
          writes: true,
          undo: { tool: 'refund', with: { amount: 'arguments.amount' } },
          currency: 'EUR',
          spend: [{ field: 'amount', at_most: 10, per: 'month' }],
        },
        refund: { writes: true, undo: 'none', restores: true },
      }),
    );
    const first = await check();
    assert.equal(first.decision, 'allow');
    assert.equal((await check()).reason, 'spend_exceeded');
    const body = { session: first.session, step: first.step, outcome: 'failed' };
    assert.equal((await gateway.request('POST', '/v1/outcomes', { body })).status, 200);
    assert.equal((await check()).decision, 'allow');
    // And an undo that restores, in a limit of its own.
    const paid = await call(gateway, 'pay', { amount: 6 }, { session: 'pay-1' });
    assert.equal(paid.outcome, 'ran');
    assert.equal(reasonOf(await call(gateway, 'pay', { amount: 6 })), 'spend_exceeded');
    const back = await call(gateway, 'refund', { amount: 6 }, { session: 'pay-1', undoes: paid.check?.step });
    assert.equal(back.outcome, 'ran', JSON.stringify(back));
    assert.equal((await call(gateway, 'pay', { amount: 6 })).outcome, 'ran');
  });

  test('what is counted survives a reload', async () => {
    const config = configOf(shop.backend.origin, { ten: { writes: true, at_most: { count: 10, per: 'day' } } });
    await gateway.reconfigure(config);
    assert.equal(reasonOf(await call(gateway, 'ten', {})), 'limit_reached');
  });

  test('a hold made before midnight and settled after it counts in the day in which it was made', async () => {
    const before = Date.parse('2026-03-28T23:59:59Z');
    const midnight = Date.parse('2026-03-29T00:00:00Z');
    const { now } = gateway.gateway;
    const at = (nowMs: number): void => void Object.assign(gateway.gateway, { now: () => nowMs });
    const { promise, resolve } = Promise.withResolvers<void>();
    await gateway.reconfigure(
      configOf(shop.backend.origin, { one: { writes: true, at_most: { count: 1, per: 'day' } } }, LISBON),
    );
    try {
      at(before);
      shop.hold = promise;
      const first = call(gateway, 'one', {}, { session: 'day-1' });
      while (!shop.calls.some(({ path }) => path === '/one')) await pause(10);
      at(midnight);
      shop.hold = undefined;
      const second = await call(gateway, 'one', {}, { session: 'day-2' });
      assert.equal(second.outcome, 'ran');
      resolve();
      assert.equal((await first).outcome, 'ran');
      assert.equal(reasonOf(await call(gateway, 'one', {}, { session: 'day-3' })), 'limit_reached');
      at(before);
      assert.equal(reasonOf(await call(gateway, 'one', {}, { session: 'day-4' })), 'limit_reached');
      // The day on which clocks go forward ends after 23 hours.
      at(midnight + 23 * 3_600_000 - 1);
      assert.equal(reasonOf(await call(gateway, 'one', {}, { session: 'day-5' })), 'limit_reached');
      at(midnight + 23 * 3_600_000);
      assert.equal((await call(gateway, 'one', {}, { session: 'day-6' })).outcome, 'ran');
    } finally {
      resolve();
      Object.assign(gateway.gateway, { now });
    }
  });
});

describe('limits per session and per run', () => {
  const shop = new Shop();
  let gateway: TestGateway;
  before(async () => {
    await shop.start();
    const sha = (key: string): string => `sha256:${createHash('sha256').update(key).digest('hex')}`;
    const credentials = [sha('agent-key'), { key: sha('host-key'), host: true, name: 'app' }];
    gateway = await startTestGateway(
      configOf(
        shop.backend.origin,
        {
          look: { at_most: [{ count: 2, per: 'session' }] },
          buy_data: { currency: 'EUR', spend: [{ field: 'amount', at_most: 10, per: 'session' }] },
          in_run: { at_most: [{ count: 1, per: 'run' }] },
        },
        { agents: { desk: { credentials } } },
      ),
    );
  });
  after(async () => {
    await gateway.close();
    await shop.backend.close();
  });

  const ask = async (key: string, tool: string, args: object, more: object): Promise<string> => {
    const body = { tool: `shop/${tool}`, arguments: args, agent: 'desk', ...more };
    return reasonOf((await gateway.request('POST', '/v1/call', { body, key })).json as Called);
  };

  test('a new session is no way out for an agent, and a fresh start for a host', async () => {
    for (const [key, next] of [
      ['host-key', 'allow'],
      ['agent-key', 'refused'],
    ] as const) {
      assert.equal(await ask(key, 'look', {}, { session: 'a' }), 'allow');
      assert.equal(await ask(key, 'look', {}, { session: 'a' }), 'allow');
      assert.equal(await ask(key, 'look', {}, { session: 'a' }), 'limit_reached');
      assert.equal(await ask(key, 'look', {}, { session: 'b' }), next === 'allow' ? 'allow' : 'limit_reached');
      assert.equal(await ask(key, 'buy_data', { amount: 6 }, { session: 'c' }), 'allow');
      assert.equal(await ask(key, 'buy_data', { amount: 6 }, { session: 'c' }), 'spend_exceeded');
      assert.equal(
        await ask(key, 'buy_data', { amount: 6 }, { session: 'd' }),
        next === 'allow' ? 'allow' : 'spend_exceeded',
      );
    }
  });

  test('a run counts for its caller alone, and a call without one cannot be counted', async () => {
    assert.equal(await ask('host-key', 'in_run', {}, { session: 'r' }), 'usage_unknown');
    assert.equal(await ask('host-key', 'in_run', {}, { session: 'r', run: 'r-1' }), 'allow');
    assert.equal(await ask('host-key', 'in_run', {}, { session: 'r', run: 'r-1' }), 'limit_reached');
    assert.equal(await ask('host-key', 'in_run', {}, { session: 'r', run: 'r-2' }), 'allow');
    assert.equal(await ask('agent-key', 'in_run', {}, { session: 'r', run: 'r-1' }), 'allow');
  });
});

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

  const get = (headers: Record<string, string> = {}): Promise<TestAnswer> =>
    gateway.request('GET', '/shop/jobs', { headers: { 'toolgate-agent': 'desk', ...headers } });

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

  test('an answer that cannot be read is refused, not passed on', async () => {
    const hidden = '"x":"HIDDEN"';
    const unreadable: readonly { type?: string; body: string }[] = [
      { body: `{"jobs":[{"pay":1,${hidden},"pad":"${'x'.repeat(100_000)}"}]}` },
      { body: `{"items":[{"pay":1,${hidden}}]}` },
      { body: `{"jobs":{"pay":1,${hidden}}}` },
      { body: `{"jobs":[{"pay":1,${hidden}}]` },
      { body: `{"jobs":[],"jobs":[{"pay":1,${hidden}}]}` },
      { type: 'text/plain', body: `HIDDEN` },
      { type: 'text/event-stream', body: `data: HIDDEN\n\n` },
    ];
    for (const one of unreadable) {
      shop.answer = () => one;
      const answer = await get();
      assert.equal(answer.status, 502, one.body.slice(0, 60));
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
