import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { checkOf, textOf } from './clients.ts';
import { closeStages, closing, connect, raw, SECOND, STRICT, start } from './proxy-stage.ts';
import { progressTokenOf, said, tool } from './raw-server.ts';

after(closeStages);

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
