import type { ReasonText } from '../../policy/reasons.ts';
import type { Decision } from '../../receipts/history.ts';
import type { JsonValue } from '../../receipts/json-value.ts';
import type { CallOutcome } from '../exchange.ts';
import type { UndoState } from '../store/port.ts';

/**
 * What the audit log tells, as a union over `event`. Members have the names that they have in the file. They hold names,
 * numbers and digests: never an argument, a result, a confirmation token, a fact or a destination. The one exception is
 * `values`, which the log drops unless it was opened with `values: true`.
 */
export type AuditEvent =
  | DecisionEvent
  | OutcomeEvent
  | UndoEvent
  | RunEvent
  | ApprovalEvent
  | ConfigEvent
  | KeyEvent
  | ForkEvent
  | PassEvent
  | ProblemEvent;

/** Which call, as far as it is known. */
export interface CallNames {
  /** Name of the route that the call came by. */
  readonly route?: string;
  /** The pair, or the text that was asked for where there is no such tool. */
  readonly tool?: string;
  readonly agent?: string;
  /** Name of the credential. */
  readonly caller?: string;
  readonly session?: string;
  readonly step?: number;
  readonly run?: string;
  /** The step that this call undoes. */
  readonly undoes?: number;
}

/** Where the time of a call went, in milliseconds. */
export interface Latency {
  readonly check?: number;
  readonly store?: number;
  readonly upstream?: number;
}

/** One call was decided: by the check or by a receipt. */
interface DecisionEvent extends CallNames {
  readonly event: 'decision';
  readonly via: 'route' | 'api' | 'mcp' | 'engine';
  readonly decision: Decision;
  readonly reasons: readonly ReasonText[];
  /** Digest of all that decides (docs/formats.md, `policy`). */
  readonly policy: string;
  readonly latency: Latency;
  /** Reasons that the operator's `confirm: reasons` waived. */
  readonly waived?: readonly string[];
  /** Id of the confirmation that was made, or that admitted the call. */
  readonly confirmation?: string;
  /** The receipt's issuer, where a receipt decided. */
  readonly issuer?: string;
  /** The receipt was admitted before, and sending it again is safe. */
  readonly resend?: boolean;
  /** The call was answered from the store. */
  readonly replayed?: boolean;
  /** JSON pointer of the argument at fault. */
  readonly pointer?: string;
  /** Keyed digest of the arguments. */
  readonly arguments?: string;
  /** Written where the operator turned values on. */
  readonly values?: JsonValue;
}

/** What became of an allowed call. */
export interface OutcomeEvent extends CallNames {
  readonly event: 'outcome';
  readonly outcome: CallOutcome | 'compensated';
  /** Who says so. */
  readonly by: 'gateway' | 'host' | 'agent' | 'approver';
  readonly latency?: Latency;
  /** HTTP status of the upstream's answer. */
  readonly upstream_status?: number;
  /** How many records of the answer a filter held back. */
  readonly held_back?: number;
  /** Why it failed or is unknown: a code (`ECONNRESET`), no text of the upstream. */
  readonly why?: string;
  /** Name of the approver who settled it. */
  readonly approver?: string;
  /** Keyed digest of the result. */
  readonly result?: string;
  readonly values?: JsonValue;
}

/** A step of a failed run is to be undone, is being undone, or was. */
interface UndoEvent extends CallNames {
  readonly event: 'undo';
  readonly state: UndoState;
  /** The tool that undoes it. */
  readonly undo_tool: string;
  /** 1, and one more each time that a late success reopened the step. */
  readonly round: number;
  readonly attempts?: number;
  readonly why?: string;
}

/** A run began to be undone, was undone as far as it can be, or ended. */
interface RunEvent extends CallNames {
  readonly event: 'run';
  readonly act: 'fail' | 'end' | 'compensated' | 'needs_person';
  /** Why it failed: a reason code, or that it was asked for. */
  readonly why?: string;
}

/** A person did what only a person may do. */
interface ApprovalEvent extends CallNames {
  readonly event: 'approval';
  readonly act: 'approve' | 'deny' | 'settle' | 'release' | 'expire';
  /** Name of the approver; absent where a confirmation ran out by itself. */
  readonly approver?: string;
  /** Id of the confirmation. */
  readonly confirmation?: string;
  readonly outcome?: CallOutcome;
}

/** A configuration was taken or turned away. */
interface ConfigEvent {
  readonly event: 'config';
  readonly act: 'start' | 'reload' | 'refused' | 'stop';
  /** Digest of the configuration as loaded. */
  readonly config?: string;
  readonly policy?: string;
  /** Routes and path patterns that are let through unchecked. */
  readonly passes?: readonly string[];
  /** How many faults the refused file has. */
  readonly faults?: number;
}

/** A key was used, made or put away. */
interface KeyEvent {
  readonly event: 'key';
  readonly act: 'load' | 'make' | 'sign' | 'verify' | 'retire';
  /** Id of the key: the gateway's own or an issuer's; for a stored secret its name. */
  readonly key: string;
  readonly caller?: string;
  readonly session?: string;
  readonly step?: number;
}

/** Two lines of one history: the session is frozen, and both heads are kept as evidence. */
interface ForkEvent extends CallNames {
  readonly event: 'fork';
  readonly fault: 'forked' | 'dropped';
  readonly issuer?: string;
  /** The head that the gateway knows, then the one that it was shown. */
  readonly heads: readonly [HistoryHead, HistoryHead];
}

interface HistoryHead {
  readonly step: number;
  readonly link: string;
}

/** A request goes through on a `pass:` path, unchecked. The line is written before anything is sent. */
interface PassEvent extends CallNames {
  readonly event: 'pass';
  readonly method: string;
  /** The pattern of the configuration, not the path of the request. */
  readonly pattern: string;
}

/** A request was answered with a problem and not decided. */
interface ProblemEvent extends CallNames {
  readonly event: 'problem';
  /** What stands behind `urn:toolgate:`. */
  readonly problem: string;
  readonly status: number;
  readonly latency?: Latency;
}

type MembersOf<T> = T extends unknown ? keyof T : never;

/** Every member that a line can have beside those of the chain. */
export type EventMember = MembersOf<AuditEvent>;

/** How a member is written. The table is exhaustive, so an event cannot have a member that no line would show. */
export const EVENT_MEMBERS: Readonly<Record<EventMember, 'text' | 'number' | 'flag' | 'texts' | 'latency' | 'json'>> = {
  act: 'text',
  agent: 'text',
  approver: 'text',
  arguments: 'text',
  attempts: 'number',
  by: 'text',
  caller: 'text',
  config: 'text',
  confirmation: 'text',
  decision: 'text',
  event: 'text',
  fault: 'text',
  faults: 'number',
  heads: 'json',
  held_back: 'number',
  issuer: 'text',
  key: 'text',
  latency: 'latency',
  method: 'text',
  outcome: 'text',
  passes: 'texts',
  pattern: 'text',
  pointer: 'text',
  policy: 'text',
  problem: 'text',
  reasons: 'texts',
  replayed: 'flag',
  resend: 'flag',
  result: 'text',
  round: 'number',
  route: 'text',
  run: 'text',
  session: 'text',
  state: 'text',
  status: 'number',
  step: 'number',
  tool: 'text',
  undo_tool: 'text',
  undoes: 'number',
  upstream_status: 'number',
  values: 'json',
  via: 'text',
  waived: 'texts',
  why: 'text',
};

const NAMES: Readonly<Record<keyof CallNames, true>> = {
  route: true,
  tool: true,
  agent: true,
  caller: true,
  session: true,
  step: true,
  run: true,
  undoes: true,
};

/**
 * Which members the lines of every call can have, so that nothing else is looked for in them. The tables are exhaustive,
 * as the one above.
 */
export const MEMBERS_OF_CALLS: {
  readonly decision: Readonly<Record<keyof DecisionEvent, true>>;
  readonly outcome: Readonly<Record<keyof OutcomeEvent, true>>;
} = {
  decision: {
    ...NAMES,
    event: true,
    via: true,
    decision: true,
    reasons: true,
    policy: true,
    latency: true,
    waived: true,
    confirmation: true,
    issuer: true,
    resend: true,
    replayed: true,
    pointer: true,
    arguments: true,
    values: true,
  },
  outcome: {
    ...NAMES,
    event: true,
    outcome: true,
    by: true,
    latency: true,
    upstream_status: true,
    held_back: true,
    why: true,
    approver: true,
    result: true,
    values: true,
  },
};
