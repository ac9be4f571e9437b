import type { Confirmation } from '../../policy/call.ts';
import type { Outcome } from '../../receipts/history.ts';
import type { JsonObject, JsonValue } from '../../receipts/json-value.ts';

/** A tool as a world describes it: the words of policy/tool.ts, all but the names left to their defaults. */
export interface WorldTool {
  readonly input?: JsonObject;
  readonly writes?: boolean;
  readonly irreversible?: boolean;
  readonly sends_out?: boolean;
  readonly reads_outside?: boolean;
  readonly subject_arguments?: readonly string[];
  readonly privilege?: number;
  readonly agents?: readonly string[];
  readonly confirm?: 'always' | 'reasons';
  readonly after?: readonly { readonly tool: string; readonly bind?: Readonly<Record<string, string>> }[];
  readonly not_after?: readonly string[];
  readonly at_most?: number;
  readonly undo?:
    | 'none'
    | { readonly tool: string; readonly with: Readonly<Record<string, string>>; readonly safe?: boolean };
  readonly pin?: 'changed' | 'missing';
}

/** An earlier entry of the session, and what became of it. */
export interface WorldEntry {
  readonly tool: string;
  readonly agent?: string;
  readonly arguments?: JsonObject;
  readonly decision?: 'allow' | 'confirm' | 'refuse';
  readonly labels?: readonly string[];
  readonly run?: string;
  readonly undoes?: number;
  readonly outcome?: Outcome;
  /** False for a report that nobody believes: an agent's of its own call. */
  readonly believed?: boolean;
  /** Fields of the result by dotted path, as they were seen. */
  readonly result?: JsonObject;
}

export interface WorldCall {
  readonly tool: string;
  readonly agent?: string;
  readonly arguments?: JsonObject;
  readonly origins?: Readonly<Record<string, string>>;
  readonly turns?: readonly string[];
  readonly labels?: Readonly<Record<string, readonly string[]>>;
  readonly filled?: readonly string[];
  /** What the request could not carry, as the gateway's reader found it. */
  readonly faults?: readonly { readonly pointer: string; readonly rule: string; readonly message: string }[];
  readonly run?: string;
  readonly undoes?: number;
  readonly engine?: boolean;
}

/** A confirmation that comes with the call; what is left out covers nothing in particular. */
export interface WorldConfirmation {
  readonly step: number;
  readonly link?: string;
  readonly session?: string;
  readonly tool: string;
  readonly agent: string;
  readonly arguments: JsonObject;
  readonly origins: Readonly<Record<string, string>>;
  readonly reasons: readonly string[];
  readonly labels?: readonly string[];
  readonly run?: string;
  readonly undoes?: number;
  readonly caller?: string;
  readonly policy?: string;
  readonly expires?: number;
  readonly spent?: boolean;
  readonly point?: Confirmation['point'];
  /** What the rulebook asked; left out, where it asked, what it asks now. */
  readonly question?: string;
}

/** All that one check depends on, as data. */
export interface World {
  readonly agents: Readonly<Record<string, { readonly privilege?: number }>>;
  readonly tools: Readonly<Record<string, WorldTool>>;
  readonly settings?: {
    readonly language?: 'en' | 'pt-BR';
    readonly taint_policy?: 'confirm' | 'refuse';
    readonly lapsed?: 'writes' | 'all';
  };
  readonly caller: { readonly name?: string; readonly host?: boolean; readonly agents?: readonly string[] };
  readonly carried?: { readonly tools?: Readonly<Record<string, number>>; readonly labels?: readonly string[] };
  readonly past?: readonly WorldEntry[];
  readonly ended_runs?: readonly string[];
  readonly fault?: { readonly fault: string; readonly entry?: number };
  readonly call: WorldCall;
  readonly confirmation?: 'invalid' | WorldConfirmation;
  readonly conditions?: { readonly reason: string; readonly detail?: JsonObject };
  readonly rulebook?:
    | { readonly reason: string; readonly detail?: JsonObject }
    | { readonly question: string; readonly detail?: JsonObject };
}

/** The session, the time and the policy of every world. */
export const SESSION = 'chat-1';
export const NOW_MS: number = Date.UTC(2026, 10, 29, 12);
export const POLICY = 'policy-1';

/** What a check must answer. Every member of `detail` is compared; of a `confirm`, those that are named. */
export interface Expected {
  readonly decision: 'allow' | 'confirm' | 'refuse';
  readonly step: string;
  readonly reasons: readonly string[];
  readonly pointer?: string;
  readonly detail?: JsonObject;
  readonly waived?: readonly string[];
  readonly labels?: readonly string[];
}

export type Change = { readonly at: string; readonly set: JsonValue } | { readonly at: string; readonly remove: true };

/** A file of decision vectors: worlds whose call is allowed, and single changes of them. */
export interface VectorFile {
  readonly about: string;
  readonly worlds: Readonly<Record<string, { readonly world: JsonObject; readonly expect: Expected }>>;
  readonly vectors: readonly {
    readonly id: string;
    readonly world: string;
    readonly change: Change;
    readonly expect: Expected;
  }[];
}
