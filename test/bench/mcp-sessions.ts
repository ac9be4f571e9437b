import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { startTestGateway } from '../harness/gateway.ts';
import { said, startRawServer, tool } from '../mcp/raw-server.ts';

/** What many MCP sessions at once come to. */
export interface McpFigures {
  readonly sessions: number;
  readonly calls: number;
  readonly perSecond: number;
  /** Answers that went to another session than asked, or a history that another session's call stood in. */
  readonly crossTalk: number;
  /** Heap in use after each fifth of the calls, in MiB, garbage collected. */
  readonly heapMiB: readonly number[];
}

const SESSIONS = 200;
const FIFTHS = 5;

/** Calls through one gateway, from 200 sessions at once, with what of them went astray and what they left in memory. */
export async function measureMcp(calls = 10_000): Promise<McpFigures> {
  const input = { inputSchema: { type: 'object', properties: { who: { type: 'string' } }, required: ['who'] } };
  const server = await startRawServer({
    pages: () => [{ tools: [tool('echo', input)] }],
    handle: ({ message, result }) => result(said(JSON.stringify(message.params?.['arguments']))),
  });
  const words = [{ name: 'echo', writes: false, reads_outside: false }];
  const gateway = await startTestGateway({
    agents: { desk: {} },
    routes: [{ name: 'raw', mcp: server.url, agents: ['desk'], tools: words }],
  });
  try {
    const url = `${gateway.url}/mcp/raw`;
    const ids = await Promise.all(Array.from({ length: SESSIONS }, () => begin(url)));
    const histories = ids.map(() => new Set<string>());
    const rounds = Math.ceil(calls / SESSIONS / FIFTHS);
    const heapMiB: number[] = [];
    let crossTalk = 0;
    let tookMs = 0;
    for (let fifth = 0; fifth < FIFTHS; fifth += 1) {
      const startedAt = performance.now();
      for (let round = 0; round < rounds; round += 1) {
        const answers = await Promise.all(ids.map((id, who) => call(url, id, `c${who}`)));
        for (const [who, { echoed, session }] of answers.entries()) {
          if (echoed !== `{"who":"c${who}"}`) crossTalk += 1;
          histories[who]?.add(session);
        }
      }
      tookMs += performance.now() - startedAt;
      // What was received is the server's own note of it, not the gateway's.
      server.received.length = 0;
      heapMiB.push(heapInUse());
    }
    const known = new Set(histories.flatMap((own) => [...own]));
    if (known.size !== SESSIONS) crossTalk += Math.abs(known.size - SESSIONS);
    const made = rounds * FIFTHS * SESSIONS;
    return { sessions: SESSIONS, calls: made, perSecond: (made / tookMs) * 1_000, crossTalk, heapMiB };
  } finally {
    await gateway.close();
    await server.close();
  }
}

async function begin(url: string): Promise<string> {
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'bench', version: '1' } };
  const response = await post(url, { jsonrpc: '2.0', id: 0, method: 'initialize', params }, {});
  await response.text();
  return response.headers.get('mcp-session-id') ?? '';
}

async function call(
  url: string,
  id: string,
  who: string,
): Promise<{ readonly echoed: string; readonly session: string }> {
  const params = { name: 'echo', arguments: { who }, _meta: { 'toolgate/call': {} } };
  const response = await post(url, { jsonrpc: '2.0', id: 1, method: 'tools/call', params }, { 'mcp-session-id': id });
  const text = await response.text();
  const data = text.slice(text.lastIndexOf('data: {') + 6).trim();
  const { result } = JSON.parse(data) as {
    result: { content: { text: string }[]; _meta: Record<string, { session: string }> };
  };
  return { echoed: result.content[0]?.text ?? '', session: result._meta['toolgate/check']?.session ?? '' };
}

function post(url: string, message: object, headers: Readonly<Record<string, string>>): Promise<Response> {
  const all = { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...headers };
  return fetch(url, { method: 'POST', headers: all, body: JSON.stringify(message) });
}

function heapInUse(): number {
  setFlagsFromString('--expose-gc');
  const collect: unknown = runInNewContext('gc');
  if (typeof collect === 'function') collect();
  return Math.round(process.memoryUsage().heapUsed / (1 << 20));
}
