import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Shop, startShop } from '../../deploy/examples/shop/backend.ts';
import { startTestGateway, type TestAnswer, type TestGateway, type TestOptions } from '../harness/gateway.ts';

/** API keys of everybody who calls the gateway here. */
export const KEYS = {
  /** A host that may name both agents. */
  app: 'key-of-the-shop-app',
  /** Another host. */
  otherApp: 'key-of-another-app',
  desk: 'key-of-the-desk-agent',
  billing: 'key-of-the-billing-agent',
  ana: 'key-of-ana-who-approves',
} as const;

type Words = Readonly<Record<string, unknown>>;

const MONEY: Words = {
  type: 'object',
  properties: { order_id: { type: 'string' }, amount: { type: 'number' } },
  required: ['order_id', 'amount'],
};

const NOTE: Words = {
  type: 'object',
  properties: {
    text: { type: 'string' },
    number: { type: 'number' },
    list: { type: 'array', items: { type: 'number' } },
  },
};

const CALLS: readonly Words[] = [
  { name: 'get_order', method: 'GET', path: '/orders/{order_id}' },
  { name: 'check_stock', method: 'GET', path: '/stock/{sku}' },
  { name: 'read_inbox', method: 'GET', path: '/inbox' },
  {
    name: 'find_items',
    method: 'GET',
    path: '/items/{item}',
    input: {
      type: 'object',
      properties: { item: { type: 'integer' }, after: { type: 'integer' }, word: { type: 'string' } },
      required: ['item'],
    },
  },
  { name: 'charge_card', method: 'POST', path: '/charges', writes: true, input: MONEY },
  { name: 'refund_card', method: 'POST', path: '/refunds', writes: true, input: MONEY },
  { name: 'send_receipt', method: 'POST', path: '/orders/{order_id}/receipt', writes: true },
  {
    name: 'create_order',
    method: 'POST',
    path: '/orders',
    writes: true,
    input: {
      type: 'object',
      properties: { sku: { type: 'string' }, quantity: { type: 'integer', minimum: 1 } },
      required: ['sku', 'quantity'],
    },
  },
  { name: 'cancel_order', method: 'DELETE', path: '/orders/{order_id}', writes: true },
  { name: 'note', method: 'POST', path: '/notes', writes: true, input: NOTE },
];

const TOOLS: readonly Words[] = [
  {
    name: 'get_order',
    result: { type: 'object', properties: { order_id: { type: 'string' }, status: { type: 'string' } } },
  },
  { name: 'read_inbox', reads_outside: true },
  {
    name: 'charge_card',
    after: ['get_order'],
    not_after: ['read_inbox'],
    at_most: 2,
    idempotency: { header: 'Idempotency-Key' },
    undo: { tool: 'refund_card', with: { order_id: 'arguments.order_id', amount: 'arguments.amount' } },
  },
  { name: 'refund_card', agents: ['billing'], idempotency: { header: 'Idempotency-Key' }, undo: 'none' },
  { name: 'send_receipt', irreversible: true, sends_out: true, confirm: 'reasons' },
  {
    name: 'create_order',
    confirm: 'reasons',
    undo: { tool: 'cancel_order', with: { order_id: 'result.order_id' } },
    result: { type: 'object', properties: { order_id: { type: 'string' } } },
  },
  { name: 'cancel_order', irreversible: true },
  { name: 'note', sends_out: true, undo: 'none', confirm: 'reasons' },
];

/** The shop behind a gateway with credentials; `change` replaces members of its config. */
export function shopWorld(upstream: string, change: Words = {}, route: Words = {}): Record<string, unknown> {
  const app = { key: digestOf(KEYS.app), host: true, name: 'shop-app' };
  return {
    tenant: 'shop',
    audience: 'shop-gateway',
    agents: {
      desk: { privilege: 'low', credentials: [{ key: digestOf(KEYS.desk), name: 'desk-bot' }, app] },
      billing: {
        privilege: 'high',
        credentials: [
          { key: digestOf(KEYS.billing), name: 'billing-bot' },
          app,
          { key: digestOf(KEYS.otherApp), host: true, name: 'other-app' },
        ],
      },
    },
    approvers: [{ name: 'ana', credentials: [digestOf(KEYS.ana)] }],
    routes: [
      { name: 'shop', path: '/shop', upstream, agents: ['desk', 'billing'], http: CALLS, tools: TOOLS, ...route },
    ],
    ...change,
  };
}

/** A config of one backend with a read and a write, for one agent whose host is trusted. `route` is put over its route. */
export function moodyWorld(upstream: string, route: Words = {}): Words {
  const input = { type: 'object', properties: { id: { type: 'integer' } } };
  return {
    agents: { desk: { credentials: [{ key: digestOf(KEYS.app), host: true, name: 'app' }] } },
    routes: [
      {
        name: 'm',
        path: '/m',
        upstream,
        agents: ['desk'],
        http: [
          { name: 'look', method: 'GET', path: '/look' },
          { name: 'do', method: 'POST', path: '/do', writes: true, input },
        ],
        tools: [{ name: 'do', confirm: 'reasons', undo: 'none' }],
        ...route,
      },
    ],
  };
}

export function digestOf(key: string): string {
  return `sha256:${hash('sha256', key, 'hex')}`;
}

/** A check answer, or a problem, as a client reads it. */
export interface Answer {
  readonly decision: string;
  readonly reason: string;
  readonly reasons: readonly string[];
  readonly detail: Readonly<Record<string, unknown>>;
  readonly sentence: string;
  readonly tool: string;
  readonly session: string;
  readonly step: number;
  readonly entry?: Record<string, unknown>;
  readonly history?: Record<string, unknown>;
  readonly idempotency_key?: string;
  readonly confirmation?: {
    readonly id: string;
    readonly token?: string;
    readonly expires: number;
    readonly approve_at?: string;
  };
}

/** What `/v1/call` answers. */
export interface Called {
  readonly check: Answer;
  readonly outcome?: string;
  readonly status?: number;
  readonly result?: unknown;
  readonly replayed?: boolean;
  readonly why?: string;
}

/** A running shop and a gateway in front of it. */
export interface World {
  readonly shop: Shop;
  readonly gateway: TestGateway;
  readonly seen: Shop['seen'];
  check(body: Words, key?: string): Promise<Answer>;
  call(body: Words, key?: string): Promise<Called>;
  post(path: string, body: unknown, key?: string, headers?: Readonly<Record<string, string>>): Promise<TestAnswer>;
  get(path: string, key?: string, headers?: Readonly<Record<string, string>>): Promise<TestAnswer>;
  /** The audit log, line by line. */
  audit(): readonly Readonly<Record<string, unknown>>[];
  close(): Promise<void>;
}

export async function startWorld(change: Words = {}, route: Words = {}, options: TestOptions = {}): Promise<World> {
  const shop = await startShop();
  try {
    return worldOf(shop, await startTestGateway(shopWorld(shop.url, change, route), options));
  } catch (error) {
    await shop.close();
    throw error;
  }
}

export function worldOf(shop: Shop, gateway: TestGateway): World {
  const post: World['post'] = (path, body, key = KEYS.app, headers = {}) =>
    gateway.request('POST', path, { body, key, headers });
  const ok = async (path: string, body: Words, key?: string): Promise<unknown> => {
    const answer = await post(path, body, key);
    if (answer.status !== 200) throw new Error(`${path} answered ${answer.status}: ${answer.text}`);
    return answer.json;
  };
  return {
    shop,
    gateway,
    seen: shop.seen,
    check: async (body, key) => (await ok('/v1/check', body, key)) as Answer,
    call: async (body, key) => (await ok('/v1/call', body, key)) as Called,
    post,
    get: (path, key = KEYS.app, headers = {}) => gateway.request('GET', path, { key, headers }),
    audit: () => readAudit(gateway.folder),
    close: async () => {
      await gateway.close();
      await shop.close();
    },
  };
}

export function readAudit(folder: string): readonly Readonly<Record<string, unknown>>[] {
  return readFileSync(join(folder, 'audit.jsonl'), 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Record<string, unknown>);
}

/** A history as its caller carries it. */
export class CarriedHistory {
  entries: Record<string, unknown>[] = [];
  header: Record<string, unknown> = { format: 'qls-history/1' };

  get value(): Record<string, unknown> {
    return { ...this.header, entries: this.entries };
  }

  /** Takes an answer: one that starts a history replaces what was carried. */
  take(answer: Answer): Answer {
    if (answer.history !== undefined) {
      this.header = answer.history;
      this.entries = [];
    }
    if (answer.entry !== undefined) this.entries.push({ ...answer.entry });
    return answer;
  }

  copy(): CarriedHistory {
    const copy = new CarriedHistory();
    copy.header = structuredClone(this.header);
    copy.entries = structuredClone(this.entries);
    return copy;
  }
}

/** Typed by the person, as a host says. */
export const TYPED = {
  turns: ['charge 40 for order 4411, and refund 15.5 of order 4412; one A1'],
  origins: { order_id: 'typed', amount: 'typed' },
} as const;
