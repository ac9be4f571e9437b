import { McpServer } from '@modelcontextprotocol/server';
import { credentialDigest } from '../../gateway/config/credential.ts';
import { startTestGateway, type TestGateway } from '../harness/gateway.ts';
import { type Backend, httpBackend } from '../http/backends.ts';
import { type HttpFixture, startHttpFixture } from '../mcp/fixture-http.ts';

/** Stands in everything that no span may hold: whatever of it reaches a collector is a leak. */
export const CANARY = 'CANARY';
export const KEY: string = `${CANARY}-key`;

/** What a backend was sent. */
interface Seen {
  readonly line: string;
  readonly traceparent: string | undefined;
  readonly tracestate: string | undefined;
}

/** A shop over HTTP, an MCP server of the SDK, and a gateway before both. */
export interface TracingWorld {
  readonly gateway: TestGateway;
  /** Requests to the shop, oldest first. */
  readonly seen: Seen[];
  readonly mcp: HttpFixture;
  close(): Promise<void>;
}

const ORDER = { type: 'object', properties: { order: { type: 'string' } }, required: ['order'] };

function configOf(shop: string, mcp: string): object {
  const write = (name: string): object => ({ name, method: 'POST', path: `/${name}`, writes: true, input: ORDER });
  return {
    agents: { desk: { credentials: [{ key: credentialDigest(KEY), host: true, name: `${CANARY}-app` }] } },
    routes: [
      {
        name: 'shop',
        upstream: `${shop}/${CANARY}-base`,
        upstream_headers: { Authorization: `Bearer ${CANARY}-upstream` },
        http: [
          { name: 'get_order', method: 'GET', path: '/orders/{order}' },
          { name: 'get_shipment', method: 'GET', path: '/shipments/{order}' },
          ...['book', 'unbook', 'ship'].map(write),
        ],
        tools: [
          { name: 'book', undo: { tool: 'unbook', with: { order: 'arguments.order' } } },
          { name: 'unbook', undo: 'none' },
          {
            name: 'ship',
            undo: 'none',
            outcome: {
              follow: 'get_shipment',
              same: 'order',
              done_when: [{ field: 'status', is: 'done' }],
              failed_when: [{ field: 'status', is: 'lost' }],
              give_up_after: 1,
            },
          },
          { name: 'get_shipment', result: { type: 'object', properties: { status: { type: 'string' } } } },
        ],
        pass: ['/health'],
      },
      { name: 'talk', mcp, tools: [{ name: '*', writes: false, sends_out: true }] },
    ],
  };
}

/** Starts all; what the gateway is to know of its environment stands there by then. */
export async function startTracingWorld(): Promise<TracingWorld> {
  const seen: Seen[] = [];
  const failures = new Map<string, number>();
  const shop: Backend = await httpBackend((request, response) => {
    const { method = '', url = '', headers } = request;
    request.resume().on('end', () => {
      const line = `${method} ${url.replace(`/${CANARY}-base`, '')}`;
      const { traceparent, tracestate } = headers;
      seen.push({ line, traceparent: traceparent?.toString(), tracestate: tracestate?.toString() });
      response.setHeader('content-type', 'application/json');
      // An order that is flaky fails once, one that is missing always.
      const fails = url.includes('flaky') && !failures.has(url);
      failures.set(url, 1);
      response.statusCode = fails ? 503 : url.includes('missing') ? 404 : 200;
      response.end(JSON.stringify({ status: 'done', note: `${CANARY}-result` }));
    });
  });
  const mcp = await startHttpFixture(() => {
    const server = new McpServer({ name: 'talk', version: '1' });
    server.registerTool('greet', { description: 'greets' }, () => ({
      content: [{ type: 'text', text: `${CANARY}-greeting` }],
    }));
    server.registerTool('fail', { description: 'fails' }, () => ({
      content: [{ type: 'text', text: `${CANARY}-failure` }],
      isError: true,
    }));
    return server;
  });
  const gateway = await startTestGateway(configOf(shop.origin, mcp.url));
  return {
    gateway,
    seen,
    mcp,
    close: async () => {
      await gateway.close();
      await Promise.all([shop.close(), mcp.close()]);
    },
  };
}
