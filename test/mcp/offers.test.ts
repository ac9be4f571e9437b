import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, test } from 'node:test';
import { newCredential } from '../../gateway/config/credential.ts';
import { checkOf, connectClient, textOf } from './clients.ts';
import { closeServer, listen } from './fixture-http.ts';
import { closeStages, closing, connect, raw, STRICT, start } from './proxy-stage.ts';
import { said, tool } from './raw-server.ts';

after(closeStages);

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
        tools: [{ name: 'get_order', checks: [{ field: 'order_id', is_not: '9', because: 'Order 9 is sealed.' }] }],
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
  const sealed = await client.callTool({ name: 'shop__get_order', arguments: { order_id: '9' } });
  assert.equal(checkOf(sealed).reason, 'condition_failed');
  assert.match(textOf(sealed), /Order 9 is sealed\./);
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
  const given = { a: 'x', region: 'us' };
  assert.equal(textOf(await client.callTool({ name: 'raw__mine', arguments: given })), '{"a":"x","region":"us"}');
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
