import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { newCredential } from '../../gateway/config/credential.ts';
import type { TestGateway } from '../harness/gateway.ts';
import { closeStages, NO_ARGUMENTS, post, raw, start } from './proxy-stage.ts';
import { type RawServer, said, tool } from './raw-server.ts';

const APP = newCredential();
const OTHER = newCredential();
const BOT = newCredential();

/** Answers of clients that the server waits for, by the id of its question. */
const waiting = new Map<unknown, (result: unknown) => void>();
let server: RawServer;
let gateway: TestGateway;

after(closeStages);
before(async () => {
  let asked = 0;
  server = await raw({
    pages: () => [{ tools: ['write', 'erase', 'ask'].map((name) => tool(name, NO_ARGUMENTS)) }],
    first: ({ message, response }) => {
      if (message.method !== undefined || message.id === undefined) return false;
      waiting.get(message.id)?.(message.result);
      response.writeHead(202).end();
      return true;
    },
    handle: async ({ message, result, stream }) => {
      if (message.params?.['name'] !== 'ask') return result(said(`${String(message.params?.['name'])} done`));
      const events = stream();
      asked += 1;
      const id = `question-${asked}`;
      const answer = new Promise((resolve) => waiting.set(id, resolve));
      const params = {
        message: 'name?',
        requestedSchema: { type: 'object', properties: { name: { type: 'string' } } },
      };
      events.send({ jsonrpc: '2.0', id, method: 'elicitation/create', params });
      events.send({ jsonrpc: '2.0', id: message.id, result: said(`heard ${JSON.stringify(await answer)}`) });
      events.end();
    },
  });
  gateway = await start({
    agents: {
      desk: {
        credentials: [
          { key: APP.digest, host: true, name: 'app' },
          { key: OTHER.digest, host: true, name: 'other' },
          { key: BOT.digest, name: 'bot' },
        ],
      },
    },
    routes: [
      {
        name: 'raw',
        mcp: server.url,
        agents: ['desk'],
        annotations: 'trusted',
        tools: [
          { name: 'write', undo: 'none' },
          { name: 'erase', undo: 'none' },
          { name: 'ask', writes: false },
        ],
      },
    ],
  });
});

interface Reply {
  readonly result?: {
    readonly resultType?: string;
    readonly requestState?: string;
    readonly inputRequests?: Readonly<Record<string, unknown>>;
    readonly content?: readonly { readonly text?: string }[];
    readonly isError?: boolean;
  };
  readonly error?: { readonly code: number; readonly message: string };
}

let ids = 0;

/** One request of the newer era, by hand. */
async function send(key: string, name: string, more: object = {}): Promise<Reply> {
  const _meta = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientInfo': { name: 'by-hand', version: '1' },
    'io.modelcontextprotocol/clientCapabilities': { elicitation: { form: {} } },
  };
  const params = { name, arguments: {}, _meta, ...more };
  ids += 1;
  const answer = await post(
    gateway.url,
    '/mcp/raw',
    { jsonrpc: '2.0', id: ids, method: 'tools/call', params },
    {
      authorization: `Bearer ${key}`,
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': 'tools/call',
      'mcp-name': name,
    },
  );
  const text = answer.text.startsWith('{') ? answer.text : (/^data: (.*)$/m.exec(answer.text)?.[1] ?? '{}');
  return JSON.parse(text) as Reply;
}

const APPROVED = { inputResponses: { approve: { action: 'accept', content: { approve: true } } } };
const textOf = ({ result }: Reply): string => result?.content?.[0]?.text ?? '';
const called = (): readonly unknown[] =>
  server.received.filter(({ method }) => method === 'tools/call').map(({ params }) => params?.['name']);
/** Any character of it changed, and its signature cut off. */
const forged = (state: string): readonly string[] => [
  `${state.slice(0, 20)}${state[20] === 'A' ? 'B' : 'A'}${state.slice(21)}`,
  state.slice(0, state.lastIndexOf('.')),
  '',
];

async function refused(reply: Promise<Reply>): Promise<void> {
  assert.equal((await reply).error?.code, -32602, JSON.stringify(await reply));
}

test('the state of a question to a person is good for its own call and caller, and makes it once', async () => {
  const state = (await send(APP.key, 'write')).result?.requestState ?? '';
  const yes = { ...APPROVED, requestState: state };
  for (const key of [OTHER.key, BOT.key]) await refused(send(key, 'write', yes));
  for (const requestState of forged(state)) await refused(send(APP.key, 'write', { ...APPROVED, requestState }));
  await refused(send(APP.key, 'erase', yes));
  await refused(send(APP.key, 'write', { ...yes, arguments: { more: 1 } }));
  assert.deepEqual(called(), []);
  const replies = await Promise.all([1, 2, 3].map(() => send(APP.key, 'write', yes)));
  assert.deepEqual(replies.map(textOf).sort(), ['', '', 'write done']);
  // The others are asked anew: an approval is spent with its call.
  assert.equal(replies.filter(({ result }) => result?.resultType === 'input_required').length, 2);
  assert.equal((await send(APP.key, 'write', yes)).result?.resultType, 'input_required');
  // An agent that speaks as a host does is asked nothing, and its own answers say nothing.
  const claimed = await send(BOT.key, 'write', APPROVED);
  assert.match(textOf(claimed), /A person decides at/);
  assert.deepEqual(called(), ['write']);
});

test('the state of a question of a server is good for its own call and caller, and is answered once', async () => {
  const asked = await send(APP.key, 'ask');
  const state = asked.result?.requestState ?? '';
  const [question = ''] = Object.keys(asked.result?.inputRequests ?? {});
  const answer = { inputResponses: { [question]: { action: 'accept', content: { name: 'ana' } } } };
  const answered = { ...answer, requestState: state };
  for (const key of [OTHER.key, BOT.key]) await refused(send(key, 'ask', answered));
  for (const requestState of forged(state)) await refused(send(APP.key, 'ask', { ...answer, requestState }));
  await refused(send(APP.key, 'write', answered));
  const replies = await Promise.all([1, 2, 3].map(() => send(APP.key, 'ask', answered)));
  assert.deepEqual(replies.map(({ error }) => error?.code ?? 0).sort(), [-32602, -32602, 0]);
  assert.ok(replies.some((reply) => textOf(reply) === 'heard {"action":"accept","content":{"name":"ana"}}'));
});
