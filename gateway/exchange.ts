import type { Readable } from 'node:stream';
import type { Caller } from '../policy/call.ts';
import type { ReasonText } from '../policy/reasons.ts';
import type { SchemaFault } from '../policy/schema/walk.ts';
import type { Tool } from '../policy/tool.ts';
import type { Decision } from '../receipts/history.ts';
import type { JsonObject, JsonValue } from '../receipts/json-value.ts';
import type { StoredAnswer } from './store/port.ts';
import type { CallSpan } from './tracing/span.ts';

/**
 * What passes between an adapter and `enforce`. An adapter turns what arrived into an `EnforceRequest`, and an
 * `EnforceAnswer` into what its client is answered; everything between is `enforce`, the same for every kind of route.
 */

/** The members that a call carries beside its tool and arguments (docs/api.md), typed but not yet believed. */
export interface CallMembers {
  readonly session?: string;
  readonly agent?: string;
  readonly run?: string;
  readonly origins: Readonly<Record<string, string>>;
  readonly turns: readonly string[];
  readonly labels: Readonly<Record<string, readonly string[]>>;
  readonly context: Readonly<Record<string, boolean>>;
  /** A carried history, whole or cut, not yet parsed. */
  readonly history?: JsonValue;
  /** A confirmation token, or the id of a held confirmation. */
  readonly confirmation?: string;
  readonly undoes?: number;
  /** The client's own idempotency key, 1 to 255 characters. */
  readonly idempotencyKey?: string;
}

/** What a server asks of the client behind a call: `elicitation/create`, `sampling/createMessage`, `roots/list`. */
export interface AskedOfClient {
  readonly method: string;
  readonly params?: JsonObject;
}

/** How an MCP server and the client that called one of its tools hear of each other while the call runs. */
export interface CallRelay {
  /** Names the client's session; a server keeps one of its own for each. */
  readonly link: string;
  /** Revisions up to 2025-11-25 (sessions), or from 2026-07-28 on (none). */
  readonly era: 'legacy' | 'modern';
  /** The client's `_meta`, without what is the gateway's or the connection's own. */
  readonly meta: JsonObject;
  /** What the client says that it can be asked. */
  readonly capabilities: JsonObject;
  /** Passes progress on; absent where the client asked for none. */
  readonly progress?: (params: JsonObject) => void;
  readonly notify: (method: string, params: JsonObject) => void;
  /** Asks the client, by name of each question. Rejects where it cannot be asked, or does not answer. */
  readonly ask: (questions: Readonly<Record<string, AskedOfClient>>) => Promise<Readonly<Record<string, JsonObject>>>;
  /** What the client answers before it was asked (the newer era's `inputResponses`). */
  readonly answers?: Readonly<Record<string, JsonObject>>;
  /** Fires when the client takes its call back. */
  readonly cancelled: AbortSignal;
  /** The answer is filtered: nothing that the server says beside it is passed on. */
  readonly quiet?: true;
}

/** Tells of an end that comes from outside: what of an `AbortSignal` is heard of here. */
export interface Ending {
  readonly aborted: boolean;
  addEventListener(type: 'abort', listener: () => void, options?: { readonly once?: boolean }): void;
  removeEventListener(type: 'abort', listener: () => void): void;
}

export interface EnforceRequest {
  readonly caller: Caller;
  readonly tool: string;
  readonly arguments: JsonObject;
  /** What of the request could not be read as arguments; row 3 refuses for it. */
  readonly faults?: readonly SchemaFault[];
  readonly members: CallMembers;
  /** The call is to be proved by a receipt and not checked again. */
  readonly byReceipt: boolean;
  /** A receipt (whole or cut history) that came apart from `members.history`. */
  readonly receipt?: JsonValue;
  /** `decide`: the caller runs an allowed call itself. `forward`: the gateway does. */
  readonly purpose: 'decide' | 'forward';
  /** With `decide` and a receipt: spends it all the same. */
  readonly spend?: boolean;
  readonly via: 'route' | 'api' | 'mcp' | 'engine';
  /** Which undo of its step this is: 1, and one more each time that a late success reopened the step. */
  readonly undoRound?: number;
  /** The route that the request came by, for the log. */
  readonly route?: string;
  /** The signed entry is handed out with the answer. */
  readonly wantEntry: boolean;
  /** Tells when the client goes away: ends a read, never a write. Asked for only where it is heeded. */
  readonly gone?: () => Ending;
  /** Request headers that the route lets through, lower-case name and value in turn. */
  readonly passedHeaders: readonly string[];
  /** W3C trace context of the request. */
  readonly traceparent?: string;
  /** The span of the request, where spans are made. */
  readonly span?: CallSpan;
  /** The MCP client that made the call. */
  readonly relay?: CallRelay;
}

/** A qls-tool-check/1 answer (docs/api.md). */
export interface ToolCheck {
  readonly format: 'qls-tool-check/1';
  readonly decision: Decision;
  readonly reason: ReasonText;
  readonly reasons: readonly ReasonText[];
  readonly pointer?: string;
  readonly detail: JsonObject;
  readonly sentence: string;
  readonly tool: string;
  readonly agent: string;
  readonly session: string;
  readonly step: number;
  /** The signed entry; left out where it is not handed out. */
  readonly entry?: JsonObject;
  /** Header of a history that starts with this answer. */
  readonly history?: JsonObject;
  readonly idempotency_key?: string;
  readonly confirmation?: {
    readonly id: string;
    readonly token?: string;
    readonly expires: number;
    readonly approve_at?: string;
  };
}

/** A qls-tool-receipt/1 answer (docs/formats.md). */
export interface ToolReceipt {
  readonly format: 'qls-tool-receipt/1';
  readonly decision: 'allow' | 'refuse';
  readonly reason: string;
  readonly reasons: readonly string[];
  readonly tool: string;
  readonly agent: string;
  /** Absent where no history verified. */
  readonly session?: string;
  readonly step?: number;
  readonly resend: boolean;
  readonly detail: JsonObject;
}

/** A fault of the request or of the gateway, as RFC 9457 problem details. */
export interface Problem {
  readonly status: number;
  /** Stands behind `urn:toolgate:` in `type`. */
  readonly code: string;
  /** What is wrong, where, and what to do. */
  readonly detail: string;
  readonly pointer?: string;
  readonly retryAfterSeconds?: number;
}

export type EnforceAnswer =
  /** A refusal, a confirm, or an allow that the caller runs itself. */
  | { readonly kind: 'decided'; readonly check: ToolCheck }
  /** A receipt's refusal, or an admitted receipt that the caller runs itself. */
  | { readonly kind: 'receipt'; readonly receipt: ToolReceipt }
  | {
      readonly kind: 'forwarded';
      readonly check?: ToolCheck;
      readonly receipt?: ToolReceipt;
      /** The idempotency key of a write. */
      readonly upstreamKey?: string;
      readonly answer: UpstreamAnswer;
      /** How many records of the answer the tool's filter held back; absent where it has none. */
      readonly heldBack?: number;
      /** Settles once the outcome is stored. An adapter that answers whole waits for it before its last byte. */
      readonly outcome: Promise<CallOutcome>;
    }
  | {
      readonly kind: 'replayed';
      /** The receipt that the first call was admitted by, where one came again. */
      readonly receipt?: ToolReceipt;
      readonly answer: StoredAnswer;
      readonly outcome: CallOutcome;
      readonly session: string;
      readonly step: number;
      readonly upstreamKey?: string;
    }
  | { readonly kind: 'problem'; readonly problem: Problem };

export type CallOutcome = 'ran' | 'failed' | 'outcome_unknown';

/** The seam to what stands behind a route. One for HTTP and OpenAPI, one for MCP. */
export interface Upstream {
  /** What of a tool's arguments a request cannot carry; empty where it can carry them all. */
  check(tool: Tool, args: JsonObject): readonly SchemaFault[];
  /**
   * Sends one checked call. Never retries. `onSending` is awaited before the first byte of the request can leave, so
   * that the store knows first. Resolves when the answer's head is there, or it is clear how the call ended; never rejects.
   */
  send(call: UpstreamCall): Promise<UpstreamAnswer>;
  /** What a trace says of the requests that a tool's calls are. */
  target(tool: Tool): UpstreamTarget;
  /** Resolves where the backend accepts connections; throws with the reason where it does not. */
  ready(): Promise<void>;
  close(): Promise<void>;
}

/** Where a tool's calls go, as the configuration has it: nothing of a call's own. */
export interface UpstreamTarget {
  readonly protocol: 'http' | 'mcp';
  /** Of HTTP, or of MCP. */
  readonly method: string;
  /** Path template of an HTTP backend. */
  readonly template?: string;
  readonly host?: string;
  readonly port?: number;
}

export interface UpstreamCall {
  readonly tool: Tool;
  readonly arguments: JsonObject;
  /** JCS of the arguments: what was digested is what is sent. */
  readonly canonical: string;
  /** Sent where the tool's `idempotency` says. */
  readonly upstreamKey?: string;
  readonly passedHeaders: readonly string[];
  /** The caller's. */
  readonly traceparent?: string;
  /** That of the span of this very request: it goes in the place of the caller's. */
  readonly ownTraceparent?: string;
  readonly timeoutMs: number;
  /** Something reads the answer: it is read whole, up to the largest answer that is kept. */
  readonly whole: boolean;
  /** Ends the call (a read whose client went away). */
  readonly abort?: Ending;
  readonly onSending?: () => Promise<void>;
  /** The MCP client that made the call. */
  readonly relay?: CallRelay;
}

export type UpstreamAnswer =
  | {
      readonly kind: 'answer';
      readonly status: number;
      /** End-to-end headers in order, name and value in turn, already stripped of hop-by-hop and Toolgate ones. */
      readonly headers: readonly string[];
      /** Whole where it was read (small JSON, or something reads it), else a stream with back-pressure. */
      readonly body: Uint8Array | Readable;
      /** MCP's `isError`, or what `failed_when` found: the backend says that nothing was done. */
      readonly saysFailed?: boolean;
    }
  /** It certainly was not sent: name not found, connection refused, TLS, connect timeout. */
  | { readonly kind: 'not_sent'; readonly code: string; readonly why: string }
  /** It may have been done: reset, timeout, a broken answer. */
  | { readonly kind: 'unclear'; readonly code: string; readonly why: string };
