import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { startTestGateway } from '../harness/gateway.ts';
import { eventually } from '../http/backends.ts';
import { textOf } from './clients.ts';
import { closeStages, closing, connect, initialize, NO_ARGUMENTS, one, post, SECOND, stage } from './proxy-stage.ts';
import { progressTokenOf, said, startRawServer, tool } from './raw-server.ts';

after(closeStages);

// The table of test/vectors/mcp-proxy-cases.md, rows 1 to 9. Its times are scaled, as `SECOND` says.

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

// Two processes at once on one store: test/cluster/replicas.test.ts.
test('3: a session is served by the process that comes after the one that it began at', async () => {
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

test('7: a batch is refused and reaches no server, and neither does a request in the clothes of a notification', async () => {
  const { gateway, server } = await stage({ ...one('look'), handle: ({ result }) => result(said('seen')) });
  const headers = { 'mcp-session-id': await initialize(gateway.url, '/mcp/raw') };
  const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'look', arguments: {} } };
  assert.equal((await post(gateway.url, '/mcp/raw', call, headers)).status, 200);
  const before = server.received.length;
  const answer = await post(gateway.url, '/mcp/raw', [call], headers);
  assert.equal(answer.status, 400);
  assert.equal(JSON.parse(answer.text).error.code, -32600);
  // Nobody who counts on a header learns late that a message has its own place for what it says.
  for (const name of ['toolgate-receipt', 'toolgate-agent', 'idempotency-key']) {
    const passedOver = await post(gateway.url, '/mcp/raw', call, { ...headers, [name]: 'x' });
    assert.deepEqual([passedOver.status, JSON.parse(passedOver.text).error.code], [400, -32600], name);
  }
  // A lax server does what a message is named after, also one without an id, which the protocol has for a notification.
  const { id: _id, ...notified } = call;
  for (const method of ['tools/call', 'resources/read', 'prompts/get', 'tasks/cancel', 'subscriptions/listen'])
    await post(gateway.url, '/mcp/raw', { ...notified, method }, headers);
  for (const id of [null, '', 1.5, {}, []])
    await post(gateway.url, '/mcp/raw', { ...call, id, method: 'x/y' }, headers);
  // What is one reaches it, and behind all that was sent before.
  await post(gateway.url, '/mcp/raw', { ...notified, method: 'notifications/of-its-own' }, headers);
  assert.ok(await eventually(() => server.received.length > before));
  const [first, ...others] = server.received.slice(before);
  assert.deepEqual([first?.method, others], ['notifications/of-its-own', []]);
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
