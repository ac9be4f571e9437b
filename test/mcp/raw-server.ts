import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { closeServer, listen } from './fixture-http.ts';

/** A JSON-RPC message as a client sent it. */
export interface RawMessage {
  readonly id?: number | string;
  readonly method?: string;
  readonly params?: Readonly<Record<string, unknown>>;
  readonly result?: unknown;
}

/** One request to the server, with what answers it. */
interface RawExchange {
  readonly message: RawMessage;
  /** The body as it came, byte for byte. */
  readonly text: string;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** Answers with a result, as JSON. */
  result(result: unknown): void;
  /** Answers JSON text as it stands. */
  json(text: string, status?: number): void;
  /** Begins an event stream; each text is the data of one event. */
  stream(): { send(message: unknown): void; end(): void };
}

export interface RawOptions {
  /** The pages of its tools; each with the cursor that leads on. */
  readonly pages?: () => readonly { readonly tools: readonly unknown[]; readonly nextCursor?: string }[];
  /** Answers what is not answered here: calls of tools, above all. */
  readonly handle?: (exchange: RawExchange) => void | Promise<void>;
  /** Told of every POST before it is answered; true where it was answered. */
  readonly first?: (exchange: RawExchange) => boolean;
}

export interface RawServer {
  readonly url: string;
  /** Every message that came in. */
  readonly received: RawMessage[];
  /** How many sessions were begun. */
  readonly sessions: number;
  close(): Promise<void>;
}

/** A server of the older era that says and does exactly what a test wants, also what no server should. */
export async function startRawServer(options: RawOptions): Promise<RawServer> {
  const received: RawMessage[] = [];
  let sessions = 0;
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    if (request.method !== 'POST') {
      response.writeHead(405).end();
      return;
    }
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const text = Buffer.concat(chunks).toString();
    const message = JSON.parse(text) as RawMessage;
    received.push(message);
    const exchange = makeExchange(message, text, request, response);
    if (options.first?.(exchange) === true) return;
    if (message.method === 'initialize') {
      sessions += 1;
      response.setHeader('mcp-session-id', `session-${sessions}`);
      const { protocolVersion } = message.params ?? {};
      return exchange.result({
        protocolVersion,
        capabilities: { tools: { listChanged: true } },
        serverInfo: { name: 'raw', version: '1' },
      });
    }
    if (message.id === undefined || message.method === undefined) {
      response.writeHead(202).end();
      return;
    }
    if (message.method === 'server/discover') return exchange.json(errorOf(message.id, -32601));
    if (message.method === 'tools/list') {
      const pages = options.pages?.() ?? [];
      const { cursor } = message.params ?? {};
      const at = cursor === undefined ? 0 : pages.findIndex(({ nextCursor }) => nextCursor === cursor) + 1;
      return exchange.result(pages[at] ?? { tools: [] });
    }
    if (options.handle === undefined) return exchange.json(errorOf(message.id, -32601));
    await options.handle(exchange);
  };
  const server = createServer((request, response) => {
    answer(request, response).catch((error: unknown) => response.destroy(error instanceof Error ? error : undefined));
  });
  await listen(server);
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`,
    received,
    get sessions() {
      return sessions;
    },
    close: () => closeServer(server),
  };
}

/** A tool that takes anything, as a server lists it. */
export function tool(name: string, more: Readonly<Record<string, unknown>> = {}): Readonly<Record<string, unknown>> {
  return {
    name,
    description: `the tool ${name}`,
    inputSchema: { type: 'object', additionalProperties: true },
    ...more,
  };
}

/** The progress token that a request asks with. */
export function progressTokenOf({ params }: RawMessage): unknown {
  const meta = params?.['_meta'];
  return typeof meta === 'object' && meta !== null && 'progressToken' in meta ? meta.progressToken : undefined;
}

/** A result that is one text. */
export function said(text: string): Readonly<Record<string, unknown>> {
  return { content: [{ type: 'text', text }] };
}

function makeExchange(
  message: RawMessage,
  text: string,
  request: IncomingMessage,
  response: ServerResponse,
): RawExchange {
  const json = (body: string, status = 200): void => {
    response.writeHead(status, { 'content-type': 'application/json' }).end(body);
  };
  return {
    message,
    text,
    request,
    response,
    json,
    result: (result) => json(JSON.stringify({ jsonrpc: '2.0', id: message.id, result })),
    stream: () => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      return {
        send: (sent) => void response.write(`event: message\ndata: ${JSON.stringify(sent)}\n\n`),
        end: () => void response.end(),
      };
    },
  };
}

function errorOf(id: number | string, code: number): string {
  return JSON.stringify({ jsonrpc: '2.0', id, error: { code, message: 'no' } });
}
