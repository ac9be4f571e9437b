import assert from 'node:assert/strict';
import { request as httpRequest } from 'node:http';
import { after, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { startTestGateway } from '../harness/gateway.ts';
import { textOf } from './clients.ts';
import { closeStages, closing, connect, initialize, NO_ARGUMENTS, one, post, SECOND, stage } from './proxy-stage.ts';
import { said, startRawServer, tool } from './raw-server.ts';

after(closeStages);

// The table of test/vectors/mcp-proxy-cases.md, rows 10 to 20. Its times are scaled, as `SECOND` says.

test('10: an argument rule on a tool leaves it in the list', async () => {
  const input = { inputSchema: { type: 'object', properties: { amount: { type: 'number' } }, required: ['amount'] } };
  const { url } = await stage(
    { pages: () => [{ tools: [tool('pay', input)] }], handle: ({ result }) => result(said('paid')) },
    { tools: [{ name: 'pay', writes: false, checks: [{ field: 'amount', at_most: 10, because: 'Ten is enough.' }] }] },
  );
  const client = await connect(url);
  assert.deepEqual(
    (await client.listTools()).tools.map(({ name }) => name),
    ['pay'],
  );
  const refused = await client.callTool({ name: 'pay', arguments: { amount: 11 } });
  assert.equal(refused.isError, true);
  assert.match(textOf(refused), /Ten is enough\./);
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

// The seconds of this row are ten of the others: `MCP_TIME=10` runs it in the table's own time.
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
      timeout: `${Math.round(200 * SECOND)}ms`,
      tools: [
        { name: '*', writes: false },
        { name: 'never', writes: false, timeout: `${Math.round(2 * SECOND)}ms` },
      ],
    },
  );
  const client = await connect(url);
  const call = (name: string) => client.callTool({ name, arguments: {} }, { timeout: 200 * SECOND });
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
  const { url, gateway } = await stage({
    pages: () => [{ tools: [broken, ...others, { name: 7 }, { name: 'no schema' }] }],
    handle: ({ result }) => result(said('ok')),
  });
  const told = gateway.whole().warnings.filter(({ message }) => message.includes('`raw/broken`'));
  assert.equal(told.length, 1);
  assert.match(told[0]?.message ?? '', /#\/\$defs\/none.*no-such/);
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
