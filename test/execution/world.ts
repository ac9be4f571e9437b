import { setTimeout as pause } from 'node:timers/promises';
import { credentialDigest } from '../../gateway/config/credential.ts';

type Words = Record<string, unknown>;

const TEXT = { type: 'string' };

function write(name: string, properties: Words, words: Words = {}): { http: Words; words: Words } {
  const input = { type: 'object', properties, required: Object.keys(properties) };
  const result = { type: 'object', properties: { id: TEXT, status: TEXT } };
  return {
    http: { name, method: 'POST', path: `/${name}`, writes: true, input, result },
    words: { name, confirm: 'reasons', ...words },
  };
}

const KEYED = { idempotency: { header: 'Idempotency-Key' } };

const TOOLS = [
  // The backend takes a key, and what it did is undone by what it answered.
  write('charge', { order: TEXT }, { undo: { tool: 'refund', with: { charge: 'result.id' } }, ...KEYED }),
  write('refund', { charge: TEXT }, { undo: 'none', ...KEYED }),
  // Nobody can tell it to do it once; its undo does no harm where nothing was done.
  write('book', { order: TEXT }, { undo: { tool: 'unbook', with: { order: 'arguments.order' } } }),
  write('unbook', { order: TEXT }, { undo: 'none', safe_if_nothing_happened: true, ...KEYED }),
  write('reserve', { order: TEXT }, { undo: { tool: 'release', with: { hold: 'result.id' } } }),
  write('release', { hold: TEXT }, { undo: 'none' }),
  write('ship', { order: TEXT }, { irreversible: true }),
  write('note', { order: TEXT }, { undo: 'none' }),
  write('tell', { order: TEXT }),
];

/** A config of tools whose undos differ. What `change` has is put over it. */
export function worldConfig(
  upstream: string,
  change: Words = {},
  words: Record<string, Words> = {},
  timeout = '2s',
): Words {
  return {
    agents: {
      desk: { credentials: [{ key: credentialDigest('desk-key'), host: true, name: 'shop-app' }] },
      other: { credentials: [{ key: credentialDigest('other-key'), host: true, name: 'other-app' }] },
      bot: { credentials: [credentialDigest('bot-key')] },
    },
    approvers: [{ name: 'ana', credentials: [credentialDigest('ana-key')] }],
    routes: [
      {
        name: 'shop',
        path: '/shop',
        upstream,
        timeout,
        http: [
          {
            name: 'get_order',
            method: 'GET',
            path: '/get_order',
            input: { type: 'object', properties: { order: TEXT } },
          },
          ...TOOLS.map(({ http }) => http),
        ],
        tools: [...TOOLS.map(({ words: own }) => ({ ...own, ...words[String(own['name'])] })), ...extraOf(words)],
      },
    ],
    ...change,
  };
}

function extraOf(words: Record<string, Words>): Words[] {
  const known = new Set(TOOLS.map(({ words: own }) => String(own['name'])));
  return Object.entries(words)
    .filter(([name]) => !known.has(name))
    .map(([name, own]) => ({ name, ...own }));
}

/** What `/v1/call` answers, as far as tests look at it. */
interface Called {
  readonly check?: {
    readonly decision: string;
    readonly reason: string;
    readonly step: number;
    readonly session: string;
  };
  readonly outcome?: string;
  readonly replayed?: boolean;
  readonly status?: number;
  readonly result?: Record<string, unknown>;
  readonly type?: string;
  readonly why?: string;
}

export interface Answered {
  readonly status: number;
  readonly json: Called;
  readonly headers: Headers;
}

/** Calls a tool over `/v1/call`. Every argument comes from a place that is trusted, so that no person is asked. */
export async function call(
  url: string,
  tool: string,
  args: Words,
  members: Words = {},
  key = 'desk-key',
): Promise<Answered> {
  const origins = Object.fromEntries(Object.keys(args).map((name) => [name, 'context']));
  return post(url, '/v1/call', { tool: `shop/${tool}`, arguments: args, origins, ...members }, key);
}

export async function post(url: string, path: string, body: Words, key = 'desk-key'): Promise<Answered> {
  const response = await fetch(`${url}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${key}` },
    body: JSON.stringify(body),
  });
  return { status: response.status, headers: response.headers, json: (await response.json()) as Called };
}

export async function get<T>(
  url: string,
  path: string,
  key = 'desk-key',
): Promise<T & { readonly status_code: number }> {
  const response = await fetch(`${url}${path}`, { headers: { authorization: `Bearer ${key}` } });
  return { ...((await response.json()) as T), status_code: response.status };
}

export interface RunReport {
  readonly state: string;
  readonly why?: string;
  readonly steps: readonly { readonly step: number; readonly tool: string; readonly outcome: string }[];
  readonly undos: readonly {
    readonly step: number;
    readonly tool: string;
    readonly undo_tool: string;
    readonly state: string;
    readonly round: number;
    readonly attempts: number;
    readonly why?: string;
  }[];
  readonly left: readonly { readonly step: number; readonly tool: string; readonly why: string }[];
  readonly send?: Words;
}

export interface UnknownOutcome {
  readonly id: string;
  readonly tool: string;
  readonly session: string;
  readonly step: number;
  readonly why?: string;
  readonly run_by: string;
}

/** Calls of which nobody knows what became, as an approver sees them. */
export async function unknowns(url: string): Promise<readonly UnknownOutcome[]> {
  return (await get<{ outcomes: UnknownOutcome[] }>(url, '/v1/outcomes', 'ana-key')).outcomes;
}

/** Waits until `probe` gives something, and returns it; throws what it last gave after `ms`. */
export async function until<T>(what: string, probe: () => Promise<T | undefined>, ms = 30_000): Promise<T> {
  const end = Date.now() + ms;
  for (;;) {
    const found = await probe();
    if (found !== undefined) return found;
    if (Date.now() > end) throw new Error(`waited ${ms} ms for this in vain: ${what}`);
    await pause(25);
  }
}

/** Waits until a run stands so. */
export async function untilRun(url: string, run: string, state: string, key = 'desk-key'): Promise<RunReport> {
  let last: RunReport | undefined;
  try {
    return await until(`run ${run} is ${state}`, async () => {
      last = await get<RunReport>(url, `/v1/runs/${run}`, key);
      return last.state === state ? last : undefined;
    });
  } catch (error) {
    throw new Error(`${String(error)}; it is ${JSON.stringify(last)}`, { cause: error });
  }
}
