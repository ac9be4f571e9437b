import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import type { Client } from '@modelcontextprotocol/client';
import { newCredential } from '../../gateway/config/credential.ts';
import { startTestGateway, type TestGateway } from '../harness/gateway.ts';
import { checkOf, connectClient, textOf } from './clients.ts';
import { closeServer, listen } from './fixture-http.ts';
import { progressTokenOf, type RawOptions, type RawServer, said, startRawServer, tool } from './raw-server.ts';

/** A second of the cases here, in milliseconds: a tenth of one, unless `MCP_TIME` says otherwise. */
const SECOND = 1_000 * Number(process.env['MCP_TIME'] ?? '0.1');

const closing: (() => Promise<void>)[] = [];

after(async () => {
  for (const close of closing.reverse()) await close();
});

async function raw(options: RawOptions): Promise<RawServer> {
  const server = await startRawServer(options);
  closing.push(() => server.close());
  return server;
}

async function start(config: object): Promise<TestGateway> {
  const gateway = await startTestGateway(config);
  closing.push(() => gateway.close());
  return gateway;
}

async function connect(url: string, options: Parameters<typeof connectClient>[1] = {}): Promise<Client> {
  const client = await connectClient(url, options);
  closing.push(() => client.close());
  return client;
}

const STRICT = { inputSchema: { type: 'object', properties: { text: { type: 'string' } } } };

for (const era of ['legacy', 'modern'] as const) {
  test(`progress of forty seconds arrives live, past a timeout of thirty (${era} era)`, async () => {
    const server = await raw({
      pages: () => [{ tools: [tool('long')] }],
      handle: async ({ message, stream }) => {
        const events = stream();
        for (let progress = 1; progress <= 40; progress += 1) {
          await pause(SECOND);
          events.send({
            jsonrpc: '2.0',
            method: 'notifications/progress',
            params: { progressToken: progressTokenOf(message), progress, total: 40 },
          });
        }
        events.send({ jsonrpc: '2.0', id: message.id, result: said('done') });
        events.end();
      },
    });
    const gateway = await start({
      agents: { desk: {} },
      routes: [
        {
          name: 'raw',
          mcp: server.url,
          agents: ['desk'],
          timeout: `${30 * SECOND}ms`,
          tools: [{ name: '*', writes: false }],
        },
      ],
    });
    const client = await connect(`${gateway.url}/mcp/raw`, { era });
    const times: number[] = [];
    const result = await client.callTool(
      { name: 'long', arguments: {} },
      { onprogress: () => times.push(performance.now()), timeout: 120 * SECOND + 5_000 },
    );
    assert.equal(textOf(result), 'done');
    assert.equal(times.length, 40);
    assert.ok((times[39] ?? 0) - (times[0] ?? 0) > 30 * SECOND, 'the events came at once');
  });
}

test('a client that takes a call back reaches that call alone; a write that was sent is unknown', async () => {
  const cancelled: unknown[] = [];
  const ids = new Map<unknown, unknown>();
  const release = Promise.withResolvers<void>();
  const server = await raw({
    pages: () => [{ tools: [tool('change', STRICT)] }],
    first: ({ message }) => {
      if (message.method === 'notifications/cancelled') cancelled.push(message.params?.['requestId']);
      return false;
    },
    handle: async ({ message, result }) => {
      const args = message.params?.['arguments'] as { text: string };
      ids.set(args.text, message.id);
      await release.promise;
      result(said(args.text));
    },
  });
  const gateway = await start({
    agents: { desk: {} },
    routes: [
      {
        name: 'raw',
        mcp: server.url,
        agents: ['desk'],
        tools: [{ name: 'change', confirm: 'reasons', arguments: { text: 'prose' } }],
      },
    ],
    confirmations: {},
  });
  const client = await connect(`${gateway.url}/mcp/raw`);
  const call = (text: string, signal?: AbortSignal) =>
    client.callTool(
      { name: 'change', arguments: { text }, _meta: { 'toolgate/call': { origins: { text: 'context' } } } },
      signal === undefined ? {} : { signal },
    );
  const gone = new AbortController();
  const kept = call('kept');
  const dropped = call('dropped', gone.signal);
  while (ids.size < 2) await pause(20);
  gone.abort('enough');
  await assert.rejects(dropped);
  while (cancelled.length === 0) await pause(20);
  assert.deepEqual(cancelled, [ids.get('dropped')]);
  release.resolve();
  assert.equal(textOf(await kept), 'kept');
  for (;;) {
    const open = await gateway.gateway.store.countOpen(Date.now());
    if (open.some(({ what, state }) => what === 'claim' && state === 'outcome_unknown')) break;
    await pause(20);
  }
});

test('what a server brings from outside marks the session: a later write is asked for it', async () => {
  const server = await raw({
    pages: () => [{ tools: [tool('inbox', STRICT), tool('note', STRICT)] }],
    handle: ({ result }) => result(said('mail')),
  });
  const gateway = await start({
    agents: { desk: {} },
    routes: [
      {
        name: 'mail',
        mcp: server.url,
        agents: ['desk'],
        tools: [
          { name: 'inbox', writes: false },
          { name: 'note', confirm: 'reasons', arguments: { text: 'prose' } },
        ],
      },
    ],
  });
  const client = await connect(`${gateway.url}/mcp/mail`);
  const note = () =>
    client.callTool({
      name: 'note',
      arguments: { text: 'hello' },
      _meta: { 'toolgate/call': { origins: { text: 'model' } } },
    });
  const before = checkOf(await note());
  await client.callTool({ name: 'inbox', arguments: {} });
  const marked = await note();
  assert.equal(marked.isError, true);
  const { reasons } = checkOf(marked) as { reasons: string[] };
  assert.ok(reasons.includes('tainted_call'), reasons.join());
  assert.notEqual(before.reason, 'tainted_call');
});

test('a resource, a prompt and a completion are recorded as reads, and can be forbidden like them', async () => {
  const { makeFixture } = await import('./fixture-tools.ts');
  const { startHttpFixture } = await import('./fixture-http.ts');
  const fixture = await startHttpFixture(makeFixture);
  closing.push(() => fixture.close());
  const gateway = await start({
    agents: { desk: {}, other: {} },
    routes: [{ name: 'fix', mcp: fixture.url, agents: ['desk'], tools: [{ name: 'prompts.get', at_most: 1 }] }],
  });
  const client = await connect(`${gateway.url}/mcp/fix`);
  const meta = { 'toolgate/call': { session: 'reads', agent: 'desk' } };
  await client.readResource({ uri: 'test://static-text', _meta: meta });
  await client.getPrompt({ name: 'test_simple_prompt', _meta: meta });
  await assert.rejects(client.getPrompt({ name: 'test_simple_prompt', _meta: meta }), /prompts\.get/);
  const session = (await gateway.request('GET', '/v1/sessions/reads')).json as {
    entries: { tool: string; decision: string; outcome?: string }[];
  };
  assert.deepEqual(
    session.entries.map(({ tool: name, decision }) => [name, decision]),
    [
      ['fix/resources.read', 'allow'],
      ['fix/prompts.get', 'allow'],
      ['fix/prompts.get', 'refuse'],
    ],
  );
});

test('tools of an HTTP route are offered on the same endpoint, their answers as structured content and text', async () => {
  const backend = createServer((request, response) => {
    const isKnown = request.url === '/orders/7';
    response
      .writeHead(isKnown ? 200 : 404, { 'content-type': 'application/json' })
      .end(isKnown ? '{"id":7,"big":1915883588174806058}' : '{"error":"no such order"}');
  });
  await listen(backend);
  closing.push(() => closeServer(backend));
  const gateway = await start({
    agents: { desk: {} },
    routes: [
      {
        name: 'shop',
        upstream: `http://127.0.0.1:${(backend.address() as AddressInfo).port}`,
        agents: ['desk'],
        http: [{ name: 'get_order', method: 'GET', path: '/orders/{order_id}', description: 'one order' }],
      },
    ],
  });
  const client = await connect(`${gateway.url}/mcp`);
  const [listed] = (await client.listTools()).tools;
  assert.equal(listed?.name, 'shop__get_order');
  assert.deepEqual(listed?.inputSchema.required, ['order_id']);
  const found = await client.callTool({ name: 'shop__get_order', arguments: { order_id: '7' } });
  assert.equal(textOf(found), '{"id":7,"big":1915883588174806058}');
  assert.deepEqual(Object.keys(found.structuredContent as object), ['id', 'big']);
  const missing = await client.callTool({ name: 'shop__get_order', arguments: { order_id: '8' } });
  assert.equal(missing.isError, true);
  assert.match(textOf(missing), /no such order/);
  const wrong = await client.callTool({ name: 'shop__get_order', arguments: { order: '8' } });
  assert.equal(checkOf(wrong).reason, 'argument_schema');
});

test('an agent sees and reaches its own tools alone, under descriptions and schemas as the operator has them', async () => {
  const server = await raw({
    pages: () => [
      {
        tools: [
          tool('mine', {
            inputSchema: {
              type: 'object',
              properties: { a: { type: 'string' }, region: { type: 'string' } },
              required: ['a', 'region'],
            },
          }),
          tool('yours'),
        ],
      },
    ],
    handle: ({ message, result }) => result(said(JSON.stringify(message.params?.['arguments']))),
  });
  const [one, two] = [newCredential(), newCredential()];
  const gateway = await start({
    agents: { one: { credentials: [one.digest] }, two: { credentials: [two.digest] } },
    routes: [
      {
        name: 'raw',
        mcp: server.url,
        agents: ['one', 'two'],
        tools: [
          {
            name: 'mine',
            writes: false,
            agents: ['one'],
            description: 'what the operator says',
            defaults: { region: 'eu' },
          },
          { name: 'yours', writes: false, agents: ['two'] },
        ],
      },
      { name: 'closed', mcp: server.url, agents: ['two'] },
    ],
  });
  const client = await connect(`${gateway.url}/mcp`, { key: one.key });
  const { tools } = await client.listTools();
  assert.deepEqual(
    tools.map(({ name, description }) => [name, description]),
    [['raw__mine', 'what the operator says']],
  );
  assert.deepEqual(tools[0]?.inputSchema, { type: 'object', properties: { a: { type: 'string' } }, required: ['a'] });
  assert.equal(textOf(await client.callTool({ name: 'raw__mine', arguments: { a: 'x' } })), '{"a":"x","region":"eu"}');
  assert.equal(checkOf(await client.callTool({ name: 'raw__yours', arguments: {} })).reason, 'unknown_tool');
  await assert.rejects(connectClient(`${gateway.url}/mcp/closed`, { key: one.key }));
  await assert.rejects(connectClient(`${gateway.url}/mcp/raw`, { key: 'no-such-key' }));
  await assert.rejects(
    client.request(
      { method: 'no/such', params: {} },
      { '~standard': { version: 1, vendor: 't', validate: (value) => ({ value }) } },
    ),
    { code: -32601 },
  );
});

test('members of the API come in `_meta`: a carried history gets its entries, a key its first answer again', async () => {
  let calls = 0;
  const server = await raw({
    pages: () => [{ tools: [tool('look', STRICT)] }],
    handle: ({ result }) => {
      calls += 1;
      result({ content: [], structuredContent: { n: calls } });
    },
  });
  const gateway = await start({
    agents: { desk: {} },
    routes: [{ name: 'raw', mcp: server.url, agents: ['desk'], tools: [{ name: 'look', writes: false }] }],
  });
  const client = await connect(`${gateway.url}/mcp/raw`);
  const call = (members: object) =>
    client.callTool({ name: 'look', arguments: {}, _meta: { 'toolgate/call': members } });
  const carried = await call({ history: { format: 'qls-history/1', entries: [] } });
  const check = checkOf(carried) as { entry?: { token?: string }; history?: { session?: string }; step?: number };
  assert.equal(check.step, 0);
  assert.match(check.entry?.token ?? '', /^[\w-]{86}$/);
  assert.notEqual(check.history?.session, undefined);
  const first = await call({ session: 's', idempotency_key: 'k1' });
  const again = await call({ session: 's', idempotency_key: 'k1' });
  assert.deepEqual(again.structuredContent, first.structuredContent);
  assert.equal(again._meta?.['toolgate/replayed'], true);
  assert.equal(calls, 2);
  await assert.rejects(call({ sesion: 's' }), { code: -32602 });
  const api = await gateway.request('POST', '/v1/call', { body: { tool: 'raw/look', arguments: {} } });
  assert.deepEqual((api.json as { result: unknown }).result, { content: [], structuredContent: { n: 3 } });
});

test('what an undo binds is read from structured content, and so are origins that name a field', async () => {
  const server = await raw({
    pages: () => [
      {
        tools: [
          tool('charge', {
            inputSchema: { type: 'object', properties: {} },
            outputSchema: { type: 'object', properties: { id: { type: 'string' } }, required: ['id'] },
          }),
          tool('refund', { inputSchema: { type: 'object', properties: { id: { type: 'string' } }, required: ['id'] } }),
        ],
      },
    ],
    handle: ({ message, result }) =>
      result(
        message.params?.['name'] === 'charge' ? { content: [], structuredContent: { id: 'ch_1' } } : said('refunded'),
      ),
  });
  const gateway = await start({
    agents: { desk: {} },
    routes: [
      {
        name: 'pay',
        mcp: server.url,
        agents: ['desk'],
        annotations: 'trusted',
        tools: [
          { name: 'charge', confirm: 'reasons', undo: { tool: 'refund', with: { id: 'result.id' } } },
          { name: 'refund', confirm: 'reasons', after: [{ tool: 'charge', bind: { id: 'id' } }] },
        ],
      },
    ],
  });
  const client = await connect(`${gateway.url}/mcp/pay`);
  const call = (name: string, args: object, members: object) =>
    client.callTool({ name, arguments: { ...args }, _meta: { 'toolgate/call': members } });
  assert.equal(checkOf(await call('charge', {}, {})).decision, 'allow');
  const wrong = await call('refund', { id: 'ch_2' }, { origins: { id: 'result:0.id' } });
  assert.equal(checkOf(wrong).reason, 'order_rule');
  const bound = await call('refund', { id: 'ch_1' }, { origins: { id: 'result:0.id' } });
  assert.equal(textOf(bound), 'refunded');
});
