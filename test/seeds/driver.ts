import { enforce } from '../../gateway/enforce.ts';
import { parseCallMembers } from '../../gateway/http/call-members.ts';
import { parseJson } from '../../receipts/json.ts';
import type { JsonObject, JsonValue } from '../../receipts/json-value.ts';
import type { TestGateway } from '../harness/gateway.ts';

/** A check answer, as far as scenarios look at it. */
export interface Answer {
  readonly decision: string;
  readonly reason: string;
  readonly reasons: readonly string[];
  readonly pointer?: string;
  readonly detail: Record<string, unknown>;
  readonly tool: string;
  readonly session: string;
  readonly step: number;
  readonly entry?: Record<string, unknown>;
  readonly history?: Record<string, unknown>;
  readonly confirmation?: { readonly id: string; readonly token?: string };
}

/** Asks the check, one way or another. */
export interface Driver {
  readonly name: string;
  check(gateway: TestGateway, body: Record<string, unknown>): Promise<Answer>;
}

export const OVER_HTTP: Driver = {
  name: 'over HTTP',
  check: async (gateway, body) => {
    const answer = await gateway.request('POST', '/v1/check', { body });
    if (answer.status !== 200) throw new Error(`${answer.status}: ${answer.text}`);
    return answer.json as Answer;
  },
};

const CALL_NAMES: ReadonlySet<string> = new Set([
  'session',
  'agent',
  'run',
  'origins',
  'turns',
  'labels',
  'context',
  'history',
  'confirmation',
  'undoes',
  'idempotency_key',
]);

export const IN_PROCESS: Driver = {
  name: 'in process',
  check: async (gateway, body) => {
    const { tool, arguments: args, ...rest } = parseJson(JSON.stringify(body)) as JsonObject;
    const parsed = parseCallMembers(rest, CALL_NAMES);
    if ('problem' in parsed) throw new Error(parsed.problem.detail);
    const agents = new Set(gateway.gateway.loaded.catalogue.agents.keys());
    const answer = await enforce(gateway.gateway, {
      caller: { name: 'local', host: true, agents },
      tool: textOf(tool),
      arguments: args as JsonObject,
      members: parsed.members,
      byReceipt: false,
      purpose: 'decide',
      via: 'api',
      wantEntry: true,
      passedHeaders: [],
    });
    if (answer.kind !== 'decided') throw new Error(JSON.stringify(answer));
    return JSON.parse(JSON.stringify(answer.check)) as Answer;
  },
};

function textOf(value: JsonValue | undefined): string {
  if (typeof value !== 'string') throw new Error('a call names its tool');
  return value;
}

/** A history as its caller carries it through a scenario. */
export class Carried {
  readonly entries: Record<string, unknown>[] = [];
  #header: Record<string, unknown> | undefined;
  readonly #session: string | undefined;

  constructor(session: string | undefined) {
    this.#session = session;
  }

  /** What goes into the next call. */
  get history(): Record<string, unknown> {
    const named = this.#session === undefined ? {} : { session: this.#session };
    return { ...(this.#header ?? { format: 'qls-history/1', ...named }), entries: this.entries };
  }

  get session(): string {
    return String(this.#header?.['session']);
  }

  /** Takes an answer: one that starts a history replaces what was carried. */
  take(answer: Answer): void {
    if (answer.history !== undefined) {
      this.#header = answer.history;
      this.entries.length = 0;
    }
    if (answer.entry !== undefined) this.entries.push({ ...answer.entry });
  }
}
