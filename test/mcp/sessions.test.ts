import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startTestGateway } from '../harness/gateway.ts';
import { checkOf, connectClient, textOf } from './clients.ts';
import { startRawServer, tool } from './raw-server.ts';

const SESSIONS = 200;
const CALLS = 2;

test('two hundred sessions at once: every answer goes to who asked, every history is its own', async () => {
  const input = {
    inputSchema: {
      type: 'object',
      properties: { who: { type: 'string' }, n: { type: 'integer' } },
      required: ['who', 'n'],
    },
  };
  const server = await startRawServer({
    pages: () => [{ tools: [tool('echo', input)] }],
    // What comes back says which session of the server it came over, and what was asked.
    handle: ({ message, request, result }) => {
      const text = `${JSON.stringify(message.params?.['arguments'])} ${request.headers['mcp-session-id']}`;
      setTimeout(() => result({ content: [{ type: 'text', text }] }), Math.random() * 20);
    },
  });
  const gateway = await startTestGateway({
    agents: { desk: {} },
    routes: [
      {
        name: 'raw',
        mcp: server.url,
        agents: ['desk'],
        tools: [{ name: 'echo', writes: false, reads_outside: false }],
      },
    ],
  });
  try {
    const clients = await Promise.all(Array.from({ length: SESSIONS }, () => connectClient(`${gateway.url}/mcp/raw`)));
    const histories = new Set<string>();
    const servers = new Set<string>();
    await Promise.all(
      clients.map(async (client, who) => {
        const own = new Set<string>();
        for (let n = 0; n < CALLS; n += 1) {
          const result = await client.callTool({
            name: 'echo',
            arguments: { who: `c${who}`, n },
            _meta: { 'toolgate/call': {} },
          });
          const [echoed = '', session = ''] = textOf(result).split(' ');
          assert.deepEqual(JSON.parse(echoed), { who: `c${who}`, n });
          const check = checkOf(result);
          assert.equal(check.step, n);
          own.add(`${check.session} ${session}`);
        }
        assert.equal(own.size, 1, 'one session of a client is one history and one session of the server');
        const [history = '', session = ''] = [...own][0]?.split(' ') ?? [];
        histories.add(history);
        servers.add(session);
      }),
    );
    assert.equal(histories.size, SESSIONS);
    assert.equal(servers.size, SESSIONS);
    await Promise.all(clients.map((client) => client.close()));
  } finally {
    await gateway.close();
    await server.close();
  }
});
