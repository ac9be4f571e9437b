import assert from 'node:assert/strict';
import { request as httpRequest } from 'node:http';
import { after, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import type { Client } from '@modelcontextprotocol/client';
import { startTestGateway, type TestGateway } from '../harness/gateway.ts';
import { connectClient, textOf } from './clients.ts';
import { progressTokenOf, type RawOptions, type RawServer, said, startRawServer, tool } from './raw-server.ts';

/** The table of test/vectors/mcp-proxy-cases.md. Times are scaled: a second there is a tenth of one here, unless `MCP_TIME` says otherwise. */
const SECOND = 1_000 * Number(process.env['MCP_TIME'] ?? '0.1');

const closing: (() => Promise<void>)[] = [];

after(async () => {
  for (const close of closing.reverse()) await close();
});

interface Stage {
  readonly server: RawServer;
  readonly gateway: TestGateway;
  readonly url: string;
}

/** One raw server behind one gateway, as a host without credentials sees it: reads need no person. */
async function stage(options: RawOptions, route: object = {}, mcpKeepAliveMs = 15_000): Promise<Stage> {
  const server = await startRawServer(options);
  closing.push(() => server.close());
  const gateway = await startTestGateway(
    {
      agents: { desk: {} },
      routes: [
        {
          name: 'raw',
          mcp: server.url,
          agents: ['desk'],
          tools: [{ name: '*', writes: false, sends_out: true }],
          ...route,
        },
      ],
    },
    { mcpKeepAliveMs },
  );
  closing.push(() => gateway.close());
  return { server, gateway, url: `${gateway.url}/mcp/raw` };
}

async function connect(url: string, options: Parameters<typeof connectClient>[1] = {}): Promise<Client> {
  const client = await connectClient(url, options);
  closing.push(() => client.close());
  return client;
}

/** A schema that can be judged whole, so that nothing but the write itself asks for a person. */
const NO_ARGUMENTS = { inputSchema: { type: 'object', properties: {} } };

const one = (name: string, more = {}) => ({ pages: () => [{ tools: [tool(name, more)] }] });

test('1 and 2: progress and a question arrive live and in order, the answer reaches the server, and the call ends', async () => {
  let answered: ((value: unknown) => void) | undefined;
  const { url, server } = await stage(
    {
      ...one('slow'),
      first: ({ message, response }) => {
        if (message.method !== undefined || message.result === undefined) return false;
        response.writeHead(202).end();
        answered?.(message.result);
        return true;
      },
      handle: async ({ message, stream }) => {
        const events = stream();
        const progressToken = progressTokenOf(message);
        for (let progress = 1; progress <= 3; progress += 1) {
          events.send({ jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken, progress } });
          await pause(SECOND);
        }
        const params = {
          message: 'sure?',
          requestedSchema: { type: 'object', properties: { yes: { type: 'boolean' } } },
        };
        const answer = new Promise((resolve) => {
          answered = resolve;
        });
        events.send({ jsonrpc: '2.0', id: 'q1', method: 'elicitation/create', params });
        events.send({ jsonrpc: '2.0', id: message.id, result: said(`got ${JSON.stringify(await answer)}`) });
        events.end();
      },
    },
    { annotations: 'trusted' },
  );
  const seen: (string | number)[] = [];
  const times: number[] = [];
  const client = await connect(url, {
    capabilities: { elicitation: { form: {} } },
    prepare: (made) =>
      made.setRequestHandler('elicitation/create', () => {
        seen.push('asked');
        return { action: 'accept', content: { yes: true } };
      }),
  });
  const onprogress = ({ progress }: { progress: number }): void => {
    seen.push(progress);
    times.push(performance.now());
  };
  const result = await client.callTool({ name: 'slow', arguments: {} }, { onprogress });
  assert.deepEqual(seen, [1, 2, 3, 'asked']);
  assert.match(textOf(result), /"action":"accept"/);
  // Each came when it was sent, not with the answer.
  assert.ok(
    (times[2] ?? 0) - (times[0] ?? 0) > 1.5 * SECOND,
    `the events came within ${(times[2] ?? 0) - (times[0] ?? 0)} ms`,
  );
  assert.equal(server.received.filter(({ method }) => method === 'tools/call').length, 1);
});

test('3: a session is served by another process of the same store', async () => {
  const server = await startRawServer({ ...one('look'), handle: ({ result }) => result(said('seen')) });
  closing.push(() => server.close());
  const { mkdtemp, rm } = await import('node:fs/promises');
  const { tmpdir } = await import('node:os');
  const folder = await mkdtemp(`${tmpdir()}/toolgate-mcp-`);
  closing.push(() => rm(folder, { recursive: true, force: true }));
  const config = {
    agents: { desk: {} },
    routes: [{ name: 'raw', mcp: server.url, agents: ['desk'], tools: [{ name: '*', writes: false }] }],
  };
  const first = await startTestGateway(config, { folder });
  const id = await initialize(first.url, '/mcp/raw');
  await first.close();
  const second = await startTestGateway(config, { folder });
  closing.push(() => second.close());
  const answer = await post(
    second.url,
    '/mcp/raw',
    { jsonrpc: '2.0', id: 2, method: 'tools/list' },
    { 'mcp-session-id': id },
  );
  assert.equal(answer.status, 200);
  assert.match(answer.text, /"name":"look"/);
  const called = await post(
    second.url,
    '/mcp/raw',
    { jsonrpc: '2.0', id: 3, method: 'tools/call', params: { name: 'look', arguments: {} } },
    { 'mcp-session-id': id },
  );
  assert.match(called.text, /seen/);
});

test('4: a server that forgot its session is initialised again while the outer session lives', async () => {
  let forgotten = false;
  const { url, server } = await stage({
    ...one('look'),
    first: ({ message, request, json }) => {
      if (
        message.method !== 'tools/call' ||
        !forgotten ||
        request.headers['mcp-session-id'] === `session-${server.sessions}`
      ) {
        if (message.method === 'tools/call' && forgotten) forgotten = false;
        return false;
      }
      json('{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}', 404);
      return true;
    },
    handle: ({ result }) => result(said('seen')),
  });
  const client = await connect(url);
  assert.equal(textOf(await client.callTool({ name: 'look', arguments: {} })), 'seen');
  const before = server.sessions;
  const other = await connect(url);
  assert.equal(textOf(await other.callTool({ name: 'look', arguments: {} })), 'seen');
  forgotten = true;
  assert.equal(textOf(await client.callTool({ name: 'look', arguments: {} })), 'seen');
  assert.ok(server.sessions > before + 1, 'the server was not initialised again');
});

test('5: a write that is answered 200 with an empty body is an error and its outcome unknown', async () => {
  const { url, gateway } = await stage(
    {
      ...one('change', NO_ARGUMENTS),
      handle: ({ response }) => void response.writeHead(200, { 'content-type': 'application/json' }).end(),
    },
    { tools: [{ name: 'change', confirm: 'reasons' }] },
  );
  const client = await connect(url);
  const result = await client.callTool({ name: 'change', arguments: {} });
  assert.equal(result.isError, true);
  assert.equal(result._meta?.['toolgate/outcome'], 'outcome_unknown');
  const open = await gateway.gateway.store.countOpen(Date.now());
  assert.ok(open.length > 0, 'nothing waits to be settled');
});

test('6: every page of a list is read; one that does not advance ends the list with a word about it', async () => {
  const pages = [
    { tools: [tool('a')], nextCursor: 'p2' },
    { tools: [tool('b')], nextCursor: 'p3' },
    { tools: [tool('c')] },
  ];
  const whole = await stage({ pages: () => pages });
  const client = await connect(whole.url);
  assert.deepEqual(
    (await client.listTools()).tools.map(({ name }) => name),
    ['a', 'b', 'c'],
  );
  const stuck = await stage({
    pages: () => [
      { tools: [tool('a')], nextCursor: 'p2' },
      { tools: [tool('b')], nextCursor: 'p2' },
    ],
  });
  const told = stuck.gateway.whole().warnings.map(({ message }) => message);
  assert.ok(
    told.some((message) => message.includes('does not end')),
    told.join('\n'),
  );
});

test('7: a batch is refused and reaches no server', async () => {
  const { gateway, server } = await stage({ ...one('look'), handle: ({ result }) => result(said('seen')) });
  const id = await initialize(gateway.url, '/mcp/raw');
  const before = server.received.length;
  const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'look', arguments: {} } };
  const answer = await post(gateway.url, '/mcp/raw', [call], { 'mcp-session-id': id });
  assert.equal(answer.status, 400);
  assert.equal(JSON.parse(answer.text).error.code, -32600);
  assert.equal(server.received.length, before);
});

test('8 and 9: an error of a tool with an output schema, unknown `_meta` and nulls in structured content pass unchanged', async () => {
  const failing = { content: [{ type: 'text', text: 'no such order' }], isError: true };
  const odd = {
    content: [],
    structuredContent: { a: null, b: [null, { c: null }] },
    _meta: { 'example/x': { y: null }, 'toolgate/check': 'mine' },
  };
  const output = { outputSchema: { type: 'object', properties: { a: {} }, required: ['a'] } };
  const { url, server } = await stage({
    pages: () => [{ tools: [tool('fails', output), tool('odd', output)] }],
    handle: ({ message, result }) => result(message.params?.['name'] === 'fails' ? failing : odd),
  });
  const client = await connect(url);
  assert.deepEqual(await client.callTool({ name: 'fails', arguments: {} }), failing);
  const result = await client.callTool({ name: 'odd', arguments: {}, _meta: { 'example/q': [null] } });
  assert.deepEqual(result, { ...odd, _meta: { 'example/x': { y: null } } });
  const sent = server.received.findLast(({ method }) => method === 'tools/call');
  assert.deepEqual(sent?.params?.['_meta'], { 'example/q': [null] });
});

test('10: an argument rule on a tool leaves it in the list', async () => {
  const input = { inputSchema: { type: 'object', properties: { amount: { type: 'number' } }, required: ['amount'] } };
  const { url } = await stage(
    { pages: () => [{ tools: [tool('pay', input)] }], handle: ({ result }) => result(said('paid')) },
    { tools: [{ name: 'pay', writes: false, checks: [{ field: 'amount', at_most: 10 }] }] },
  );
  const client = await connect(url);
  assert.deepEqual(
    (await client.listTools()).tools.map(({ name }) => name),
    ['pay'],
  );
  assert.equal((await client.callTool({ name: 'pay', arguments: { amount: 11 } })).isError, true);
  assert.equal(textOf(await client.callTool({ name: 'pay', arguments: { amount: 9 } })), 'paid');
});

test('11: a body over the limit is 413 and names the limit; the next call works', async () => {
  const { gateway, server } = await stage(
    { ...one('look'), handle: ({ result }) => result(said('seen')) },
    { limit: '2MiB' },
  );
  const id = await initialize(gateway.url, '/mcp/raw');
  const call = (text: string) => ({
    jsonrpc: '2.0',
    id: 1,
    method: 'tools/call',
    params: { name: 'look', arguments: { text } },
  });
  const before = server.received.length;
  const large = await post(gateway.url, '/mcp/raw', call('x'.repeat(2_200_000)), { 'mcp-session-id': id });
  assert.equal(large.status, 413);
  assert.match(large.text, /2097152/);
  assert.equal(server.received.length, before);
  const next = await post(gateway.url, '/mcp/raw', call('x'), { 'mcp-session-id': id });
  assert.match(next.text, /seen/);
});

test('12: slow tools finish within their time; one that runs out of it ends alone', async () => {
  const { url } = await stage(
    {
      pages: () => [{ tools: [tool('slow'), tool('slower'), tool('never')] }],
      handle: async ({ message, result }) => {
        const name = message.params?.['name'];
        if (name === 'never') return;
        await pause((name === 'slow' ? 3.1 : 12.1) * SECOND);
        result(said(`${name} is done`));
      },
    },
    {
      timeout: '60s',
      tools: [
        { name: '*', writes: false },
        { name: 'never', writes: false, timeout: `${Math.round(2 * SECOND)}ms` },
      ],
    },
  );
  const client = await connect(url);
  const call = (name: string) => client.callTool({ name, arguments: {} });
  const [slow, slower, never] = await Promise.all([call('slow'), call('slower'), call('never')]);
  assert.equal(textOf(slow), 'slow is done');
  assert.equal(textOf(slower), 'slower is done');
  assert.equal(never.isError, true);
  assert.match(textOf(never), /did not answer in time/);
});

test('13: one of forty tools has a schema that leads nowhere; the others work', async () => {
  const broken = tool('broken', {
    outputSchema: {
      type: 'object',
      properties: { a: { $ref: '#/$defs/none' }, b: { type: 'string', format: 'no-such' } },
    },
  });
  const others = Array.from({ length: 39 }, (_, at) => tool(`t${at}`));
  const { url } = await stage({
    pages: () => [{ tools: [broken, ...others, { name: 7 }, { name: 'no schema' }] }],
    handle: ({ result }) => result(said('ok')),
  });
  const client = await connect(url);
  const names = (await client.listTools()).tools.map(({ name }) => name);
  assert.ok(names.length >= 39 && names.includes('t0') && names.includes('t38'));
  assert.equal(textOf(await client.callTool({ name: 't5', arguments: {} })), 'ok');
});

test('14: every digit of a large integer reaches the server, and the client', async () => {
  let text = '';
  const { gateway } = await stage({
    ...one('look'),
    handle: (exchange) => {
      text = exchange.text;
      exchange.json(
        `{"jsonrpc":"2.0","id":${JSON.stringify(exchange.message.id)},"result":{"content":[],"structuredContent":{"id":1915883588174806058,"text":"1915883588174806058 \\"1915883588174806059"}}}`,
      );
    },
  });
  const id = await initialize(gateway.url, '/mcp/raw');
  const body =
    '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"look","arguments":{"id":1915883588174806058}}}';
  const answer = await post(gateway.url, '/mcp/raw', body, { 'mcp-session-id': id });
  assert.match(text, /"id":1915883588174806058[,}]/);
  assert.match(answer.text, /"id":1915883588174806058,"text":"1915883588174806058 \\"1915883588174806059"/);
});

test('15: a name that a second server lists later changes nothing of what the first one’s means', async () => {
  let tools = [tool('other')];
  const second = await startRawServer({ pages: () => [{ tools }], handle: ({ result }) => result(said('second')) });
  closing.push(() => second.close());
  const first = await startRawServer({ ...one('search'), handle: ({ result }) => result(said('first')) });
  closing.push(() => first.close());
  const gateway = await startTestGateway({
    agents: { desk: {} },
    routes: [
      { name: 'one', mcp: first.url, agents: ['desk'], tools: [{ name: 'search', writes: false }] },
      {
        name: 'two',
        mcp: second.url,
        agents: ['desk'],
        tools: [{ name: 'other', writes: false, after: ['one/search'] }],
      },
    ],
  });
  closing.push(() => gateway.close());
  const client = await connect(`${gateway.url}/mcp`);
  tools = [tool('other'), tool('search')];
  await gateway.reload();
  assert.deepEqual(
    (await client.listTools()).tools.map(({ name }) => name),
    ['one__search', 'two__other', 'two__search'],
  );
  assert.equal(textOf(await client.callTool({ name: 'one__search', arguments: {} })), 'first');
  // What is written with the pair means the pair, and no bare name has slipped to another server.
  assert.equal(textOf(await client.callTool({ name: 'two__other', arguments: {} })), 'second');
  const bare = await client.callTool({ name: 'search', arguments: {} });
  assert.equal(bare.isError, true);
});

test('16: a write whose connection drops is not sent again, and its outcome is unknown', async () => {
  const { url, server } = await stage(
    { ...one('change', NO_ARGUMENTS), handle: ({ response }) => void response.destroy() },
    { tools: [{ name: 'change', confirm: 'reasons' }] },
  );
  const client = await connect(url);
  const result = await client.callTool({ name: 'change', arguments: {} });
  assert.equal(result._meta?.['toolgate/outcome'], 'outcome_unknown');
  const streams = await stage(
    {
      ...one('change', NO_ARGUMENTS),
      handle: ({ stream }) => {
        stream().end();
      },
    },
    { tools: [{ name: 'change', confirm: 'reasons' }] },
  );
  const other = await connect(streams.url);
  assert.equal(
    (await other.callTool({ name: 'change', arguments: {} }))._meta?.['toolgate/outcome'],
    'outcome_unknown',
  );
  await pause(SECOND);
  for (const { received } of [server, streams.server])
    assert.equal(received.filter(({ method }) => method === 'tools/call').length, 1);
});

test('17: a stream on which nothing happens is kept open by comments', async () => {
  const { gateway } = await stage(one('look'), {}, SECOND);
  const id = await initialize(gateway.url, '/mcp/raw');
  const got = await new Promise<string>((resolve, reject) => {
    const request = httpRequest(
      `${gateway.url}/mcp/raw`,
      { headers: { accept: 'text/event-stream', 'mcp-session-id': id } },
      (response) => {
        response.setEncoding('utf8').once('data', (chunk: string) => {
          resolve(chunk);
          request.destroy();
        });
      },
    );
    request.once('error', reject).end();
  });
  assert.match(got, /^:/);
});

test('18: in the newer era the name in the header is that of the body at each hop', async () => {
  const { makeFixture } = await import('./fixture-tools.ts');
  const { startHttpFixture } = await import('./fixture-http.ts');
  const fixture = await startHttpFixture(makeFixture, 'modern');
  closing.push(() => fixture.close());
  const gateway = await startTestGateway({
    agents: { desk: {} },
    routes: [{ name: 'new', mcp: fixture.url, agents: ['desk'], tools: [{ name: '*', writes: false }] }],
  });
  closing.push(() => gateway.close());
  const client = await connect(`${gateway.url}/mcp`, { era: 'modern' });
  await client.callTool({ name: 'new__test_simple_text', arguments: {} });
  const sent = fixture.received.findLast(({ headers }) => headers.get('mcp-method') === 'tools/call');
  assert.equal(sent?.headers.get('mcp-name'), 'test_simple_text');
  assert.match(JSON.stringify(sent?.body), /"name":"test_simple_text"/);
});

test('19: a page of another site and a name that is not ours are refused', async () => {
  const { gateway } = await stage(one('look'));
  const foreign = await gateway.request('POST', '/mcp/raw', { body: {}, headers: { origin: 'https://evil.example' } });
  assert.equal(foreign.status, 403);
  const { port } = new URL(gateway.url);
  const status = await new Promise<number | undefined>((resolve, reject) => {
    const options = {
      host: '127.0.0.1',
      port,
      path: '/mcp/raw',
      method: 'POST',
      headers: { host: 'evil.example', 'content-type': 'application/json' },
    };
    httpRequest(options, (response) => {
      response.resume();
      resolve(response.statusCode);
    })
      .once('error', reject)
      .end('{}');
  });
  assert.equal(status, 403);
});

test('20: a name in the header that is not that of the body is refused, and nothing is forwarded', async () => {
  const { gateway, server } = await stage({ ...one('look'), handle: ({ result }) => result(said('seen')) });
  const before = server.received.length;
  const meta = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientCapabilities': {},
    'io.modelcontextprotocol/clientInfo': { name: 't', version: '1' },
  };
  const body = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'look', arguments: {}, _meta: meta } };
  const answer = await post(gateway.url, '/mcp/raw', body, {
    'mcp-protocol-version': '2026-07-28',
    'mcp-method': 'tools/call',
    'mcp-name': 'other',
  });
  assert.equal(answer.status, 400);
  assert.equal(JSON.parse(answer.text).error.code, -32020);
  assert.equal(server.received.length, before);
});

/** Begins a session by hand; resolves with its id. */
async function initialize(url: string, path: string): Promise<string> {
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'by-hand', version: '1' } };
  const answer = await post(url, path, { jsonrpc: '2.0', id: 1, method: 'initialize', params });
  const id = answer.headers.get('mcp-session-id') ?? '';
  assert.notEqual(id, '');
  await post(url, path, { jsonrpc: '2.0', method: 'notifications/initialized' }, { 'mcp-session-id': id });
  return id;
}

interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

async function post(
  url: string,
  path: string,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
): Promise<Answer> {
  const response = await fetch(`${url}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
  return { status: response.status, headers: response.headers, text: await response.text() };
}
