import assert from 'node:assert/strict';
import { afterEach, test } from 'node:test';
import { startTestGateway, type TestGateway } from '../harness/gateway.ts';
import { sendDirect } from './direct-client.ts';
import { type EchoBackend, startEcho, valuesOf } from './echo-backend.ts';

const text = { type: 'string' };
const item = { type: 'object', properties: { id: text, state: text, request_id: text }, required: ['id'] };
const answers = { '200': { description: 'ok', content: { 'application/json': { schema: item } } } };
const id = { name: 'id', in: 'path', required: true, schema: text };

function post(operationId: string, more: object = {}): object {
  const content = { 'application/json': { schema: { type: 'object', properties: { note: text, request_id: text } } } };
  return { operationId, requestBody: { content }, responses: answers, ...more };
}

const DOCUMENT = {
  openapi: '3.0.3',
  info: { title: 'Selection', version: '1' },
  servers: [{ url: 'https://shop.example/base/v2/' }],
  paths: {
    '/orders': { get: { operationId: 'orders/list', tags: ['orders'], responses: answers }, post: post('orders/new') },
    '/orders/{id}': {
      parameters: [id],
      get: { operationId: 'orders/get', tags: ['orders'], responses: answers },
      delete: { tags: ['danger'] },
    },
    '/orders/mine': { get: { operationId: 'orders/mine', responses: answers } },
    '/orders/search': { post: post('orders/search', { tags: ['orders'] }) },
    '/a/{x}': { get: { operationId: 'ax', parameters: [{ ...id, name: 'x' }] } },
    '/{y}/b': { get: { operationId: 'yb', parameters: [{ ...id, name: 'y' }] } },
    '/touch': { get: { operationId: 'touch' } },
    '/keyed': {
      post: post('keyed', { parameters: [{ name: 'X-Api-Key', in: 'header', required: true, schema: text }] }),
    },
    '/key-header': {
      post: post('keyHeader', { parameters: [{ name: 'X-Once', in: 'header', required: true, schema: text }] }),
    },
  },
};

let backend: EchoBackend | undefined;
let gateway: TestGateway | undefined;

afterEach(async () => {
  await gateway?.close();
  await backend?.close();
  gateway = undefined;
  backend = undefined;
});

async function start(
  route: object,
  openapi: object | string = './api.json',
  document: object = DOCUMENT,
): Promise<TestGateway> {
  backend = await startEcho({ id: 'i-1', state: 'open' });
  gateway = await startTestGateway(
    { agents: { desk: {} }, routes: [{ name: 'api', path: '/api', upstream: backend.url, openapi, ...route }] },
    { files: { 'api.json': JSON.stringify(document) } },
  );
  return gateway;
}

async function toolsOf(running: TestGateway): Promise<Record<string, string>> {
  const { tools } = (await running.request('GET', '/v1/tools')).json as { tools: { name: string; writes: boolean }[] };
  return Object.fromEntries(tools.map(({ name, writes }) => [name, writes ? 'writes' : 'reads']));
}

test('operations are taken, left out and renamed, and the method says what writes unless words do', async () => {
  const running = await start(
    {
      include: ['tag:orders', 'DELETE /orders/*', 'touch'],
      exclude: ['orders_list'],
      tools: [
        { name: 'orders_search', writes: false },
        { name: 'touch', writes: true, undo: 'none' },
      ],
    },
    { document: './api.json', rename: { 'orders/get': 'read_order' } },
  );
  assert.deepEqual(await toolsOf(running), {
    'api/read_order': 'reads',
    'api/delete_orders_id': 'writes',
    'api/orders_search': 'reads',
    'api/touch': 'writes',
  });
  const excluded = await sendDirect(`${running.url}/api`, { method: 'GET', target: '/orders' });
  assert.equal(excluded.status, 403, excluded.text);
  assert.match(excluded.text, /unknown_tool/);
});

test('patterns that meet nothing are told, names that are not there refused', async () => {
  const running = await start({ include: ['tag:orders', 'tag:nothing'] });
  const problems = await running.reconfigure({
    agents: { desk: {} },
    routes: [
      {
        name: 'api',
        upstream: 'http://127.0.0.1:9',
        openapi: { document: './api.json', rename: { 'orders/gett': 'x' } },
        include: ['orders/lst', 'tag:nothing', 'orders*'],
      },
    ],
  });
  const told = problems.filter(({ code }) => code === 'unknown_tool_name' || code === 'meets_no_tool');
  assert.deepEqual(
    told.map(({ severity, message }) => `${severity} ${/`([^`]*)`( to rename|\.|$|; did)/.exec(message)?.[1]}`).sort(),
    ['error orders/gett', 'error orders/lst', 'warning tag:nothing'],
  );
});

test('the base path of the document stands before the path, unless the upstream says one', async () => {
  const running = await start({});
  await running.request('GET', '/api/orders/7');
  assert.equal(backend?.arrived[0]?.target, '/base/v2/orders/7');
  const url = backend?.url ?? '';
  const route = { name: 'api', path: '/api', upstream: `${url}/internal`, openapi: './api.json' };
  await running.reconfigure({ agents: { desk: {} }, routes: [route] });
  await running.request('GET', '/api/orders/7');
  assert.equal(backend?.arrived[1]?.target, '/internal/orders/7');
});

test('the concrete path wins, and a request that two crossing templates match is refused', async () => {
  const running = await start({});
  const tool = async (target: string): Promise<unknown> => {
    const answer = await running.request('GET', `/api${target}`);
    return answer.status === 200 ? backend?.arrived.at(-1)?.target : answer.status;
  };
  assert.equal(await tool('/orders/mine'), '/base/v2/orders/mine');
  const sent = (await running.request('GET', '/v1/sessions/none')).status;
  assert.equal(sent, 404);
  assert.equal(await tool('/a/c'), '/base/v2/a/c');
  assert.equal(await tool('/c/b'), '/base/v2/c/b');
  assert.equal(await tool('/a/b'), 400);
  const before = backend?.arrived.length;
  // By its name a tool is called with the same value as little: the backend could take the path for the other one.
  for (const [name, args] of [
    ['ax', { x: 'b' }],
    ['yb', { y: 'a' }],
    ['orders_get', { id: 'mine' }],
  ] as const) {
    const body = { tool: `api/${name}`, arguments: args, session: 's' };
    const { json } = await running.request('POST', '/v1/call', { body });
    const { check } = json as { check: { reason: string; pointer: string } };
    assert.deepEqual([check.reason, check.pointer], ['argument_schema', `/${Object.keys(args)[0]}`]);
  }
  assert.equal(backend?.arrived.length, before);
});

test('two operations that match the same requests are an error when they are loaded', async () => {
  const same = {
    openapi: '3.0.3',
    paths: { '/a/{x}': { get: { operationId: 'one' } }, '/a/{y}': { get: { operationId: 'two' } } },
  };
  for (const [path, name] of [
    ['/a/{x}', 'x'],
    ['/a/{y}', 'y'],
  ] as const) {
    Object.assign(same.paths[path].get, { parameters: [{ name, in: 'path', required: true, schema: text }] });
  }
  await assert.rejects(
    start({}, './api.json', same),
    /gateway\.yaml:\d+:\d+: error: .*`one`.*`two`|`two`.*`one`.*operation_ambiguous/,
  );
  await backend?.close();
  const http = [
    { name: 'one', method: 'GET', path: '/a/{x}' },
    { name: 'two', method: 'GET', path: '/{y}/b' },
  ];
  const routes = [{ name: 'api', upstream: 'http://127.0.0.1:9', http }];
  await assert.rejects(startTestGateway({ agents: { desk: {} }, routes }), /operation_ambiguous/);
});

test('what the gateway writes itself is no argument: the operator’s headers, the key of a call', async () => {
  const running = await start({
    upstream_headers: { 'X-Api-Key': 'secret' },
    tools: [
      { name: 'keyed', idempotency: { argument: 'request_id' }, confirm: 'reasons', undo: 'none' },
      { name: 'keyHeader', idempotency: { header: 'x-once' }, confirm: 'reasons', undo: 'none' },
    ],
  });
  const call = async (tool: string, args: object): ReturnType<TestGateway['request']> =>
    running.request('POST', '/v1/call', {
      body: { tool: `api/${tool}`, arguments: args, session: tool, origins: { note: 'typed' }, turns: ['write hello'] },
    });
  const keyed = await call('keyed', { note: 'hello' });
  assert.equal(keyed.status, 200, keyed.text);
  const header = await call('keyHeader', { note: 'hello' });
  assert.equal(header.status, 200, header.text);
  const [one, two] = backend?.arrived ?? [];
  assert.ok(one !== undefined && two !== undefined);
  assert.deepEqual(valuesOf(one, 'x-api-key'), ['secret']);
  assert.match(one.body, /^\{"note":"hello","request_id":"[A-Za-z0-9_-]{43}"\}$/);
  assert.equal(valuesOf(two, 'x-once').length, 1);
  for (const [tool, args, pointer] of [
    ['keyed', { request_id: 'mine' }, '/request_id'],
    ['keyed', { 'X-Api-Key': 'mine' }, '/X-Api-Key'],
    ['keyHeader', { 'X-Once': 'mine' }, '/X-Once'],
  ] as const) {
    const { json, text: answer } = await call(tool, args);
    assert.equal((json as { check: { pointer: string } }).check.pointer, pointer, answer);
  }
});

test('the answers that a document declares give origins and what comes before', async () => {
  const running = await start({
    tools: [
      {
        name: 'orders_new',
        confirm: 'reasons',
        undo: 'none',
        after: [{ tool: 'orders_get', bind: { note: 'state' } }],
      },
    ],
  });
  const call = (tool: string, args: object, origins: object): ReturnType<TestGateway['request']> =>
    running.request('POST', '/v1/call', { body: { tool: `api/${tool}`, arguments: args, session: 'flow', origins } });
  const early = await call('orders_new', { note: 'open' }, {});
  assert.equal((early.json as { check: { decision: string } }).check.decision, 'refuse', early.text);
  assert.equal((await call('orders_get', { id: '7' }, {})).status, 200);
  const answer = await call('orders_new', { note: 'open' }, { note: 'result:1.state' });
  assert.equal(answer.status, 200, answer.text);
  assert.equal(backend?.arrived.at(-1)?.body, '{"note":"open"}');
});
