import assert from 'node:assert/strict';
import { registerHooks } from 'node:module';
import { after, before, describe, test } from 'node:test';
import { connectClient } from '../mcp/clients.ts';
import {
  type Collector,
  callerTrace,
  find,
  hasServer,
  one,
  sentBy,
  startCollector,
  withEnv,
} from './otlp-collector.ts';
import type { ReceivedSpan } from './otlp-decode.ts';
import { CANARY, KEY, startTracingWorld, type TracingWorld } from './tracing-world.ts';

/** What a case expects of one span beside its ids. */
type Facts = Readonly<Record<string, unknown>>;

/** Names of SDK modules that this process loaded while a test listened. */
const loaded: string[] = [];
const hooks = registerHooks({
  resolve: (specifier, context, next) => {
    const found = next(specifier, context);
    if (found.url.includes('/@opentelemetry/') && !found.url.includes('/@opentelemetry/api/')) loaded.push(found.url);
    return found;
  },
});

describe('without an exporter', () => {
  test('no SDK is loaded, the traceparent of a caller goes on as it came, and a malformed one not at all', async () => {
    const world = await startTracingWorld();
    try {
      const { traceparent } = callerTrace();
      for (const given of [traceparent, traceparent.toUpperCase()]) {
        const headers = { traceparent: given, tracestate: 'a=1' };
        assert.equal((await world.gateway.request('GET', '/shop/orders/7', { headers, key: KEY })).status, 200);
      }
      assert.deepEqual(
        world.seen.map((seen) => [seen.traceparent, seen.tracestate]),
        [
          [traceparent, undefined],
          [undefined, undefined],
        ],
      );
      assert.deepEqual(loaded, []);
      assert.equal(world.gateway.gateway.tracing, undefined);
      const metrics = (await world.gateway.request('GET', '/metrics', { key: KEY })).text;
      assert.match(metrics, /^toolgate_trace_spans_total\{result="exported"\} 0$/m);
    } finally {
      await world.close();
    }
  });
});

describe('with an exporter', () => {
  let collector: Collector;
  let world: TracingWorld;

  before(async () => {
    collector = await startCollector();
    const env = {
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.origin,
      OTEL_EXPORTER_OTLP_HEADERS: 'x-tenant=shop%20one',
      OTEL_SERVICE_NAME: 'gate',
      OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=test',
      OTEL_BSP_SCHEDULE_DELAY: '20',
    };
    world = await withEnv(env, startTracingWorld);
    hooks.deregister();
    // Else the test before this would have heard of nothing, whatever was loaded.
    assert.ok(loaded.some((url) => url.includes('/sdk-trace/')));
  });
  after(async () => {
    await world.close();
    await collector.close();
  });

  /** Makes a request of a trace of its own and resolves with its spans: the server's ends last, and so it comes last. */
  async function trace(
    method: string,
    path: string,
    options: { readonly body?: unknown; readonly headers?: Readonly<Record<string, string>> } = {},
  ): Promise<{
    status: number;
    json: unknown;
    spans: readonly ReceivedSpan[];
    caller: ReturnType<typeof callerTrace>;
  }> {
    const caller = callerTrace();
    const headers = { traceparent: caller.traceparent, ...options.headers };
    const { status, json } = await world.gateway.request(method, path, { ...options, headers, key: KEY });
    const spans = await collector.trace(caller.traceId, hasServer);
    return { status, json, spans, caller };
  }

  function assertFacts(span: ReceivedSpan, facts: Facts): void {
    assert.deepEqual(span.attributes, facts);
    assert.ok(span.endNs >= span.startNs);
    assert.deepEqual([span.events, span.statusMessage], [0, '']);
  }

  const last = (): TracingWorld['seen'][number] | undefined => world.seen.at(-1);

  test('an allowed call: a server span below the caller, its check and its upstream request below that', async () => {
    const { spans, caller, status } = await trace('GET', '/shop/orders/7', { headers: { tracestate: 'vendor=1' } });
    assert.equal(status, 200);
    const server = one(spans, 'server');
    const client = one(spans, 'client');
    assert.deepEqual(
      [server.name, server.parentId, server.traceState],
      ['GET /shop/orders/{order}', caller.spanId, 'vendor=1'],
    );
    assert.deepEqual([client.name, client.parentId], ['GET /orders/{order}', server.spanId]);
    assertFacts(server, {
      'http.request.method': 'GET',
      'http.route': '/shop/orders/{order}',
      'http.response.status_code': 200,
      'toolgate.tool': 'shop/get_order',
      'toolgate.decision': 'allow',
      'toolgate.reason': 'allow',
      'toolgate.outcome': 'ran',
    });
    const { 'server.port': port, ...facts } = client.attributes;
    assert.ok(Number(port) > 0);
    assertFacts(
      { ...client, attributes: facts },
      {
        'http.request.method': 'GET',
        'url.template': '/orders/{order}',
        'server.address': '127.0.0.1',
        'http.response.status_code': 200,
        'toolgate.tool': 'shop/get_order',
      },
    );
    assert.deepEqual(last(), { line: 'GET /orders/7', traceparent: sentBy(client), tracestate: undefined });
    const inner = find(spans, 'internal');
    assert.deepEqual([...new Set(inner.map(({ name }) => name))].sort(), ['check', 'store']);
    for (const part of [...inner, client]) {
      assert.equal(part.parentId, server.spanId);
      assert.ok(part.startNs >= server.startNs - 2_000_000n && part.endNs <= server.endNs + 2_000_000n, part.name);
    }
    assert.ok([server, client].every(({ isError }) => !isError));
    const { resource } = server;
    assert.deepEqual(
      [resource['service.name'], resource['service.instance.id'], resource['deployment.environment.name']],
      ['gate', world.gateway.gateway.audit.replica, 'test'],
    );
    const [request] = collector.requests;
    assert.deepEqual(
      [request?.path, request?.headers['content-type'], request?.headers['x-tenant']],
      ['/v1/traces', 'application/x-protobuf', 'shop one'],
    );
  });

  test('a refused call has no request to an upstream, and no error: the gateway did what it is for', async () => {
    const body = { order: '7', [`${CANARY}-member`]: `${CANARY}-value` };
    const { spans, status } = await trace('POST', '/shop/book', { body });
    assert.equal(status, 403);
    const server = one(spans, 'server');
    assert.equal(server.isError, false);
    assertFacts(server, {
      'http.request.method': 'POST',
      'http.route': '/shop/book',
      'http.response.status_code': 403,
      'toolgate.tool': 'shop/book',
      'toolgate.decision': 'refuse',
      'toolgate.reason': 'argument_schema',
    });
    assert.deepEqual(find(spans, 'client'), []);
  });

  test('a call that needs a person, the same call confirmed, and its undo in a trace of the gateway’s own', async () => {
    const body = { order: `${CANARY}-order` };
    const headers = { 'toolgate-session': `${CANARY}-session`, 'toolgate-run': `${CANARY}-run` };
    const asked = await trace('POST', '/shop/book', { body, headers });
    assert.equal(asked.status, 428);
    const { attributes } = one(asked.spans, 'server');
    assert.deepEqual([attributes['toolgate.decision'], attributes['toolgate.outcome']], ['confirm', undefined]);
    assert.deepEqual(find(asked.spans, 'client'), []);
    const { check } = asked.json as { check: { confirmation: { token: string } } };
    const confirmed = { ...headers, 'toolgate-confirmation': check.confirmation.token };
    const done = await trace('POST', '/shop/book', { body, headers: confirmed });
    assert.equal(done.status, 200);
    const server = one(done.spans, 'server');
    assert.deepEqual(
      [server.attributes['toolgate.reason'], server.attributes['toolgate.outcome']],
      ['confirmed', 'ran'],
    );
    // The commits that the call waited for: of its claim, of its sending, of its outcome.
    assert.equal(find(done.spans, 'internal').filter(({ name }) => name === 'store').length, 3);
    assert.equal(last()?.traceparent, sentBy(one(done.spans, 'client')));

    const undone = await world.gateway.request('POST', `/v1/runs/${CANARY}-run/undo`, { body: {}, key: KEY });
    assert.ok(undone.status < 300, undone.text);
    const isUndo = ({ kind, name }: ReceivedSpan): boolean => kind === 'client' && name === 'POST /unbook';
    const client = await collector.span(isUndo);
    const spans = await collector.trace(client.traceId, (found) => found.some(({ name }) => name === 'undo'));
    const root = spans.find(({ name }) => name === 'undo');
    assert.deepEqual([root?.parentId, root?.spanId, root?.kind], ['', client.parentId, 'internal']);
    assert.deepEqual([root?.attributes['toolgate.tool'], root?.attributes['toolgate.outcome']], ['shop/unbook', 'ran']);
    assert.deepEqual([last()?.line, last()?.traceparent], ['POST /unbook', sentBy(client)]);
  });

  test('the read that follows an outcome is the root of a trace', async () => {
    const body = { tool: 'shop/ship', arguments: { order: '9' }, origins: { order: 'typed' }, turns: ['ship 9'] };
    const first = await trace('POST', '/v1/call', { body });
    const { check } = first.json as { check: { session: string; confirmation: { token: string } } };
    const { session } = check;
    await trace('POST', '/v1/call', { body: { ...body, session, confirmation: check.confirmation.token } });
    const client = await collector.span(({ name, kind }) => kind === 'client' && name === 'GET /shipments/{order}');
    assert.equal(client.parentId, '');
    assert.deepEqual(
      world.seen.filter(({ line }) => line === 'GET /shipments/9').map(({ traceparent }) => traceparent)[0],
      sentBy(client),
    );
  });

  test('every attempt has a span of its own, and the status of the last is that of the call', async () => {
    const { spans, status } = await trace('GET', '/shop/orders/flaky');
    assert.equal(status, 200);
    const clients = find(spans, 'client').toSorted((a, b) => (a.startNs < b.startNs ? -1 : 1));
    const facts = clients.map(({ isError, attributes: at }) => [
      at['http.response.status_code'],
      at['error.type'],
      at['http.request.resend_count'],
      isError,
    ]);
    assert.deepEqual(facts, [
      [503, '503', undefined, true],
      [200, undefined, 1, false],
    ]);
    assert.deepEqual(
      world.seen.slice(-2).map(({ traceparent }) => traceparent),
      clients.map(sentBy),
    );
    assert.equal(one(spans, 'server').isError, false);
  });

  test('what a backend refuses is an error of the client span, not of the server’s', async () => {
    const { spans, status } = await trace('GET', '/shop/orders/missing');
    assert.equal(status, 404);
    const server = one(spans, 'server');
    assert.deepEqual([server.attributes['toolgate.outcome'], server.isError], ['failed', false]);
    assert.equal(one(spans, 'client').isError, true);
  });

  test('the API: a check, a call, and a request that is none', async () => {
    const call = { tool: 'shop/get_order', arguments: { order: '7' } };
    const checked = await trace('POST', '/v1/check', { body: call });
    const { name, attributes } = one(checked.spans, 'server');
    assert.deepEqual(
      [name, attributes['toolgate.decision'], attributes['toolgate.outcome']],
      ['POST /v1/check', 'allow', undefined],
    );
    assert.deepEqual(find(checked.spans, 'client'), []);
    const called = await trace('POST', '/v1/call', { body: call });
    assert.equal(last()?.traceparent, sentBy(one(called.spans, 'client')));
    const broken = await trace('POST', '/v1/call', { body: { [`${CANARY}-member`]: 1 } });
    assertFacts(one(broken.spans, 'server'), {
      'http.request.method': 'POST',
      'http.route': '/v1/call',
      'http.response.status_code': 400,
    });
    const { url } = world.gateway;
    const stranger = callerTrace();
    const headers = { authorization: `Bearer ${CANARY}-stranger`, traceparent: stranger.traceparent };
    assert.equal((await fetch(`${url}/shop/orders/7`, { headers })).status, 401);
    const [refused] = await collector.trace(stranger.traceId, hasServer);
    assert.deepEqual([refused?.name, refused?.attributes['http.response.status_code']], ['GET /shop', 401]);
  });

  test('a tool that there is none of is a name of its caller’s, and stays out', async () => {
    const byApi = await trace('POST', '/v1/call', { body: { tool: `shop/${CANARY}-tool`, arguments: {} } });
    const { attributes } = one(byApi.spans, 'server');
    assert.deepEqual([attributes['toolgate.reason'], attributes['toolgate.tool']], ['unknown_tool', undefined]);
    const byPath = await trace('GET', `/shop/${CANARY}-path`);
    assert.equal(one(byPath.spans, 'server').name, 'GET /shop');
  });

  test('a passed path is one span, and its backend stands below it', async () => {
    const { spans } = await trace('GET', '/shop/health');
    assert.equal(spans[0]?.name, 'GET /shop/health');
    assert.deepEqual([last()?.line, last()?.traceparent], ['GET /health', sentBy(one(spans, 'server'))]);
  });

  test('a malformed traceparent begins a new trace and is no error', async () => {
    for (const given of ['00-nothing', callerTrace().traceparent.toUpperCase(), `${callerTrace().traceparent}-x`]) {
      const headers = { traceparent: given, tracestate: 'a=1' };
      assert.equal((await world.gateway.request('GET', '/shop/orders/8', { headers, key: KEY })).status, 200);
      const [, traceId = ''] = last()?.traceparent?.split('-') ?? [];
      const spans = await collector.trace(traceId, hasServer);
      const { parentId, traceState } = one(spans, 'server');
      assert.deepEqual([parentId, traceState], ['', '']);
    }
  });

  test('a trace that its caller does not sample is not exported, and goes on to the backend as such', async () => {
    const { traceId, spanId, traceparent } = callerTrace('00');
    const headers = { traceparent };
    assert.equal((await world.gateway.request('GET', '/shop/orders/8', { headers, key: KEY })).status, 200);
    const [version, trace, sent, flags] = last()?.traceparent?.split('-') ?? [];
    assert.deepEqual([version, trace, flags], ['00', traceId, '00']);
    assert.notEqual(sent, spanId);
    const after = await exportedBefore();
    assert.ok(collector.spans.some(({ traceId: exported }) => exported === after));
    assert.ok(!collector.spans.some(({ traceId: exported }) => exported === traceId));
  });

  /** A sampled call whose spans have been exported, and so have all before it. */
  async function exportedBefore(): Promise<string> {
    const { caller } = await trace('GET', '/shop/orders/7');
    return caller.traceId;
  }

  for (const era of ['legacy', 'modern'] as const) {
    test(`a tool of an MCP server, called by a client of the ${era} era: spans both ways, and the server told`, async () => {
      const client = await connectClient(`${world.gateway.url}/mcp`, { era, key: KEY });
      try {
        const { traceId, spanId, traceparent } = callerTrace();
        const _meta = { traceparent, tracestate: 'v=2' };
        const result = await client.callTool({ name: 'talk__greet', arguments: {}, _meta });
        assert.notEqual(result.isError, true);
        const spans = await collector.trace(traceId, hasServer);
        const server = one(spans, 'server');
        const sent = one(spans, 'client');
        assert.deepEqual([server.name, server.parentId, server.traceState], ['tools/call greet', spanId, 'v=2']);
        assertFacts(server, {
          'mcp.method.name': 'tools/call',
          'gen_ai.operation.name': 'execute_tool',
          'gen_ai.tool.name': 'greet',
          'toolgate.tool': 'talk/greet',
          'toolgate.decision': 'allow',
          'toolgate.reason': 'allow',
          'toolgate.outcome': 'ran',
        });
        assert.deepEqual([sent.name, sent.parentId], ['tools/call greet', server.spanId]);
        const calls = world.mcp.received.filter(
          ({ body }) => (body as { method?: string } | undefined)?.method === 'tools/call',
        );
        const got = calls.at(-1);
        const { params } = (got?.body ?? {}) as { params?: { _meta: Record<string, unknown> } };
        const told = [got?.headers.get('traceparent'), params?._meta['traceparent']];
        assert.deepEqual(told, [sentBy(sent), sentBy(sent)]);
        const failed = callerTrace();
        const header = { headers: { traceparent: failed.traceparent } };
        const plain = await connectClient(`${world.gateway.url}/mcp`, { era, key: KEY, ...header });
        await plain.callTool({ name: 'talk__fail', arguments: {} });
        await plain.close();
        const below = await collector.trace(failed.traceId, hasServer);
        const { attributes, isError } = one(below, 'server');
        assert.deepEqual(
          [attributes['toolgate.outcome'], attributes['error.type'], isError],
          ['failed', 'failed', true],
        );
        const refused = callerTrace();
        const unknown = { name: `talk__${CANARY}`, arguments: {}, _meta: { traceparent: refused.traceparent } };
        await client.callTool(unknown).catch(() => undefined);
        const [first] = await collector.trace(refused.traceId, hasServer);
        assert.ok(first !== undefined);
      } finally {
        await client.close();
      }
    });
  }

  test('nothing that a caller, a person or a backend said has left in any span', async () => {
    await exportedBefore();
    const all = Buffer.concat(collector.bodies);
    assert.ok(all.includes('toolgate.decision') && all.includes('shop/book'));
    assert.equal(all.includes(CANARY), false);
    const names = new Set(collector.spans.flatMap(({ attributes }) => Object.keys(attributes)));
    assert.ok(names.size > 10);
    const metrics = (await world.gateway.request('GET', '/metrics', { key: KEY })).text;
    const counted = Number(/^toolgate_trace_spans_total\{result="exported"\} (\d+)$/m.exec(metrics)?.[1]);
    assert.ok(counted >= collector.spans.length - 10 && counted > 50, `${counted} of ${collector.spans.length}`);
  });
});
