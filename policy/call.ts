import type { Outcome } from '../receipts/history.ts';
import type { JsonObject, JsonValue } from '../receipts/json-value.ts';
import type { Catalogue } from './catalogue.ts';
import type { ToolAnswer, Usage } from './conditions/condition.ts';
import type { SchemaFault } from './schema/walk.ts';
import type { SessionView } from './session.ts';
import type { Tool } from './tool.ts';

/** Who makes a call, as its credential says (docs/security-model.md). */
export interface Caller {
  /** Name of the credential; sessions, runs and idempotency keys belong to it. */
  readonly name: string;
  /** An application that speaks for its person: believed for turns, origins, facts and confirmations. */
  readonly host: boolean;
  /** Agents that it may name. */
  readonly agents: ReadonlySet<string>;
}

/** One call of one tool, as the check judges it. Every member but `tool` and `arguments` may be what a stranger said. */
export interface Call {
  /** As it was asked for: a pair or a bare name. */
  readonly tool: string;
  readonly arguments: JsonObject;
  readonly caller: Caller;
  readonly agent?: string;
  readonly run?: string;
  readonly undoes?: number;
  /** What of the arguments could not be read out of the request, or cannot be carried in one: row 3 refuses for it. */
  readonly faults: readonly SchemaFault[];
  /** Arguments that the gateway filled in from `defaults`. */
  readonly filled: ReadonlySet<string>;
  /** Argument → origin word, as sent. */
  readonly origins: Readonly<Record<string, string>>;
  readonly turns: readonly string[];
  /** `call` and argument names → labels, as sent. */
  readonly labels: Readonly<Record<string, readonly string[]>>;
  /** Facts as sent; used from a host only. */
  readonly context: Readonly<Record<string, boolean>>;
  /** Sent by the undo engine for a run that failed. */
  readonly fromEngine: boolean;
}

/** What the gateway knows of an earlier step that the call names. */
export interface StepFacts {
  readonly step: number;
  /** Link of its entry, base64url. */
  readonly link: string;
  readonly toolId: string;
  readonly agent: string;
  /** As whoever is believed for it says; an agent's own report is not here. */
  readonly outcome: Outcome | undefined;
  /** The step was itself an undo. */
  readonly undoes?: number;
  readonly run?: string;
  readonly labels: readonly string[];
  /** An undo of this step was allowed and is not known to have failed. */
  readonly undoAllowed: boolean;
  /** Compares a value with a field of the step's result, as whoever is believed for that result saw it. */
  readonly compareField: (field: string, value: JsonValue) => 'equal' | 'other' | 'unseen';
  /** What of the undo's arguments is bound so far, canonical JSON; absent where nothing is. */
  readonly undoArguments?: string;
}

/** A confirmation that came with the call and belongs to it so far as its signature or record goes. */
export interface Confirmation {
  readonly id: string;
  readonly session: string;
  readonly link: string;
  readonly step: number;
  readonly tool: string;
  readonly agent: string;
  readonly arguments: string;
  readonly expires: number;
  readonly spent: boolean;
  /** `exact`: the next entry alone; `until_write`: while no write was allowed and no label came. */
  readonly point: 'exact' | 'until_write';
  /** What the confirm entry recorded, which the approved call must repeat. */
  readonly asked: {
    readonly reasons: readonly string[];
    readonly run: string | undefined;
    readonly undoes: number | undefined;
    readonly origins: string;
    readonly labels: readonly string[];
    readonly caller: string;
    readonly policy: string;
    /** What the rulebook asked the person; a yes to one question is none to another. */
    readonly question?: string;
  };
}

/** What is wrong with a history, as `detail` of `history_invalid` says it. */
interface HistoryFault {
  readonly fault: string;
  readonly entry?: number;
}

/** The session as the check sees it. */
interface SessionFacts {
  readonly id: string;
  /** The store's own id of it, under which its limits are counted; absent where the session is not kept. */
  readonly sid?: string;
  readonly view: SessionView;
  /** Step and link of the newest entry; absent before the first. */
  readonly head: { readonly step: number; readonly link: string } | undefined;
  readonly fault?: HistoryFault;
}

/** What of the config the check reads beside the catalogue. */
export interface Settings {
  readonly language: 'en' | 'pt-BR';
  readonly taintPolicy: 'confirm' | 'refuse';
  /** What a lapsed licence refuses; absent where none lapsed. */
  readonly lapsed?: 'writes' | 'all';
}

/** Everything that a check may depend on. The same snapshot and call give the same answer. */
export interface Snapshot {
  readonly catalogue: Catalogue;
  readonly settings: Settings;
  readonly session: SessionFacts;
  /** The earlier steps that the call names. */
  readonly steps: ReadonlyMap<number, StepFacts>;
  /** A confirmation that was presented; `invalid` where it was none of this gateway's. */
  readonly confirmation?: Confirmation | 'invalid';
  /** Digest of all that decides (docs/formats.md, `policy`). */
  readonly policy: string;
  /** Digests of the call in the session: taken with the session's nonce. */
  readonly digests: { readonly arguments: string; readonly origins: string };
  /** Milliseconds since 1970. */
  readonly nowMs: number;
  /** What is counted in the buckets of the tool's limits; absent where nothing was counted, which is as `unknown`. */
  readonly usage?: Usage;
  /** What the tools that the call's rules read answered in this session, newest first. */
  readonly answers?: readonly ToolAnswer[];
  readonly step7: ConditionGate;
  readonly step8: RulebookGate;
}

/** A refusal that a gate gives. */
export interface GateRefusal {
  readonly reason: string;
  readonly detail: JsonObject;
}

/** Step 7: the tool's checks, limits and spend. Answers nothing where they hold. */
export type ConditionGate = (tool: Tool, call: Call, snapshot: Snapshot) => GateRefusal | undefined;

/** Step 8: the rulebook. A question is asked in step 11. */
export type RulebookGate = (
  tool: Tool,
  call: Call,
  snapshot: Snapshot,
) => GateRefusal | { readonly question: string; readonly detail: JsonObject } | undefined;
