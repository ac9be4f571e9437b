import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import {
  createMcpHandler,
  hostHeaderValidationResponse,
  isLegacyRequest,
  localhostAllowedHostnames,
  localhostAllowedOrigins,
  type McpServer,
  originValidationResponse,
  WebStandardStreamableHTTPServerTransport,
} from '@modelcontextprotocol/server';
import { EventLog } from '../../gateway/mcp/event-log.ts';

/** A server of both eras over HTTP, on a port of its own. */
export interface HttpFixture {
  readonly url: string;
  /** Messages that came in, newest last. */
  readonly received: { readonly method: string; readonly headers: Headers; readonly body: unknown }[];
  /** Forgets every session, as a server that was started again does. */
  forgetSessions(): void;
  close(): Promise<void>;
}

/**
 * Starts it; it answers who calls it by a name of this machine alone.
 * @param make Makes the server of a session, or (told how changes are told) of one request.
 * @param eras Which it speaks; `both` as the SDK advises.
 */
export async function startHttpFixture(
  make: (tellChange?: () => void) => McpServer,
  eras: 'both' | 'legacy' | 'modern' = 'both',
): Promise<HttpFixture> {
  const received: HttpFixture['received'] = [];
  const sessions = new Map<string, WebStandardStreamableHTTPServerTransport>();
  const modern = createMcpHandler(() => make(() => modern.notify.toolsChanged()), { legacy: 'reject' });
  const legacy = async (request: Request, parsedBody: unknown): Promise<Response> => {
    const id = request.headers.get('mcp-session-id');
    const known = id === null ? undefined : sessions.get(id);
    if (known !== undefined) return known.handleRequest(request, { parsedBody });
    const isInitialize =
      typeof parsedBody === 'object' &&
      parsedBody !== null &&
      'method' in parsedBody &&
      parsedBody.method === 'initialize';
    if (!isInitialize)
      return Response.json(
        { jsonrpc: '2.0', id: null, error: { code: -32001, message: 'Session not found' } },
        { status: 404 },
      );
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: () => crypto.randomUUID(),
      eventStore: new EventLog(),
      retryInterval: 200,
      onsessioninitialized: (made) => {
        sessions.set(made, transport);
      },
      onsessionclosed: (ended) => {
        sessions.delete(ended);
      },
    });
    await make().connect(transport);
    return transport.handleRequest(request, { parsedBody });
  };
  const server = createServer((request, response) => {
    void serve(request, response, async (web, body) => {
      const foreign =
        hostHeaderValidationResponse(web, localhostAllowedHostnames()) ??
        originValidationResponse(web, localhostAllowedOrigins());
      if (foreign !== undefined) return foreign;
      received.push({ method: web.method, headers: web.headers, body });
      const isLegacy = web.method !== 'POST' || (await isLegacyRequest(web, body));
      if (eras === 'legacy') return legacy(web, body);
      return isLegacy && eras === 'both' ? legacy(web, body) : modern.fetch(web, { parsedBody: body });
    });
  });
  await listen(server);
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`,
    received,
    forgetSessions: () => sessions.clear(),
    close: async () => {
      await modern.close();
      await closeServer(server);
    },
  };
}

/** Serves one node:http request by a handler of web requests. */
async function serve(
  request: IncomingMessage,
  response: ServerResponse,
  handle: (web: Request, body: unknown) => Promise<Response>,
): Promise<void> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const bytes = Buffer.concat(chunks);
  const gone = new AbortController();
  response.once('close', () => gone.abort());
  const headers = new Headers(
    Object.entries(request.headers).flatMap(([name, value]) =>
      typeof value === 'string' && name !== 'content-length' ? [[name, value]] : [],
    ) as [string, string][],
  );
  const web = new Request(`http://${request.headers.host}${request.url}`, {
    method: request.method ?? 'GET',
    headers,
    signal: gone.signal,
  });
  const answer = await handle(web, bytes.length === 0 ? undefined : JSON.parse(bytes.toString()));
  response.writeHead(answer.status, Object.fromEntries(answer.headers));
  if (answer.body !== null) {
    const reader = answer.body.getReader();
    gone.signal.addEventListener('abort', () => void reader.cancel().catch(() => undefined));
    for (;;) {
      const { done, value } = await reader.read().catch(() => ({ done: true, value: undefined }));
      if (done) break;
      response.write(value);
    }
  }
  response.end();
}

/** Listens on a free port of this machine. */
export function listen(server: Server): Promise<void> {
  return new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
}

/** Ends a server with all its connections. */
export function closeServer(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}
