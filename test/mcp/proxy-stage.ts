import assert from 'node:assert/strict';
import type { Client } from '@modelcontextprotocol/client';
import { startTestGateway, type TestGateway } from '../harness/gateway.ts';
import { connectClient } from './clients.ts';
import { type RawOptions, type RawServer, startRawServer, tool } from './raw-server.ts';

/** A second of the cases, in milliseconds: a tenth of one, unless `MCP_TIME` says otherwise. */
export const SECOND: number = 1_000 * Number(process.env['MCP_TIME'] ?? '0.1');

export const closing: (() => Promise<void>)[] = [];

/** For each file's own `after`: closes what was opened, the last first. */
export async function closeStages(): Promise<void> {
  for (const close of closing.splice(0).reverse()) await close();
}

interface Stage {
  readonly server: RawServer;
  readonly gateway: TestGateway;
  readonly url: string;
}

/** One raw server behind one gateway, as a host without credentials sees it: reads need no person. */
export async function stage(options: RawOptions, route: object = {}, mcpKeepAliveMs = 15_000): Promise<Stage> {
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

export async function connect(url: string, options: Parameters<typeof connectClient>[1] = {}): Promise<Client> {
  const client = await connectClient(url, options);
  closing.push(() => client.close());
  return client;
}

/** A schema that can be judged whole, so that nothing but the write itself asks for a person. */
export const NO_ARGUMENTS = { inputSchema: { type: 'object', properties: {} } };

export const one = (name: string, more = {}) => ({ pages: () => [{ tools: [tool(name, more)] }] });

/** Begins a session by hand; resolves with its id. */
export async function initialize(
  url: string,
  path: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<string> {
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'by-hand', version: '1' } };
  const answer = await post(url, path, { jsonrpc: '2.0', id: 1, method: 'initialize', params }, headers);
  const id = answer.headers.get('mcp-session-id') ?? '';
  assert.notEqual(id, '');
  await post(url, path, { jsonrpc: '2.0', method: 'notifications/initialized' }, { ...headers, 'mcp-session-id': id });
  return id;
}

interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

export async function post(
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

/** A raw server that ends with the tests. */
export async function raw(options: RawOptions): Promise<RawServer> {
  const server = await startRawServer(options);
  closing.push(() => server.close());
  return server;
}

/** A gateway that ends with the tests. */
export async function start(config: object): Promise<TestGateway> {
  const gateway = await startTestGateway(config);
  closing.push(() => gateway.close());
  return gateway;
}

/** A schema of one text, which can be judged whole. */
export const STRICT = { inputSchema: { type: 'object', properties: { text: { type: 'string' } } } };
