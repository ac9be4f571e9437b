import type { TestGateway } from '../harness/gateway.ts';
import { type Backend, httpBackend } from '../http/backends.ts';

interface ShopAnswer {
  readonly status?: number;
  readonly type?: string;
  readonly encoding?: string;
  readonly body: string | Uint8Array;
}

/** A shop whose answers a test sets, and the calls that reached it. */
export class Shop {
  readonly calls: { readonly path: string; readonly body: string }[] = [];
  answer: (path: string, body: string) => ShopAnswer = () => ({ body: '{}' });
  /** What an answer waits for. */
  hold: Promise<void> | undefined;
  backend!: Backend;

  async start(): Promise<void> {
    this.backend = await httpBackend((request, response) => {
      let body = '';
      request.setEncoding('utf8').on('data', (chunk: string) => {
        body += chunk;
      });
      request.on('end', async () => {
        const path = request.url ?? '';
        this.calls.push({ path, body });
        await this.hold;
        const { status = 200, type = 'application/json', encoding, body: text } = this.answer(path, body);
        const encoded = encoding === undefined ? {} : { 'content-encoding': encoding };
        response.writeHead(status, { 'content-type': type, etag: '"e"', ...encoded }).end(text);
      });
    });
  }
}

const AMOUNT = {
  type: 'object',
  properties: { amount: { type: 'number' }, sku: { type: 'string' }, quantity: { type: 'integer' } },
};

export interface Words {
  readonly [word: string]: unknown;
}

export function configOf(upstream: string, tools: Record<string, Words>, more: Words = {}): object {
  return {
    tenant: 'shop',
    audience: 'shop-gateway',
    agents: { desk: { privilege: 'high' } },
    ...more,
    routes: [
      {
        name: 'shop',
        path: '/shop',
        upstream,
        agents: ['desk'],
        http: Object.entries(tools).map(([name, { writes }]) => ({
          name,
          method: writes === true ? 'POST' : 'GET',
          path: `/${name}`,
          ...(writes === true ? { writes } : {}),
          input: AMOUNT,
        })),
        tools: Object.entries(tools).map(([name, { writes, ...words }]) => ({
          name,
          ...(writes === true ? { confirm: 'reasons' } : {}),
          ...words,
        })),
      },
    ],
  };
}

export interface Called {
  readonly check?: {
    readonly decision: string;
    readonly reason: string;
    readonly detail: Record<string, unknown>;
    readonly sentence: string;
    readonly step: number;
  };
  readonly outcome?: string;
  readonly result?: unknown;
  readonly held_back?: number;
  readonly type?: string;
}

export async function call(gateway: TestGateway, tool: string, args: object, more: object = {}): Promise<Called> {
  const origins = Object.fromEntries(Object.keys(args).map((name) => [name, 'context']));
  const body = { tool: `shop/${tool}`, arguments: args, agent: 'desk', origins, ...more };
  return (await gateway.request('POST', '/v1/call', { body })).json as Called;
}

export function reasonOf(called: Called): string {
  return called.check === undefined ? `problem ${called.type}` : called.check.reason;
}
