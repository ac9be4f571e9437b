import type { ConditionGate, RulebookGate, Settings } from '../policy/call.ts';
import type { Catalogue } from '../policy/catalogue.ts';
import type { Tool } from '../policy/tool.ts';
import type { SigningKey } from '../receipts/crypto.ts';
import type { Issuer, IssuerKey } from '../receipts/history-verify.ts';
import type { JsonObject } from '../receipts/json-value.ts';
import type { RuntimeRoute } from './catalogue/runtime-route.ts';
import type { Upstream } from './exchange.ts';
import type { RulePart } from './load/conditions.ts';
import type { FailedWhen } from './load/failed-when.ts';

/** What the MCP endpoints know of the routes of a config. */
interface McpPart {
  /** Tools as their MCP servers list them, by pair. */
  readonly listed: ReadonlyMap<string, JsonObject>;
  /** Routes whose server could not be asked: what they offer is not known, and none of it can be called. */
  readonly unlisted: readonly string[];
  /** Every route, by server name. */
  readonly routes: ReadonlyMap<string, RuntimeRoute>;
}

/**
 * A config as loaded and compiled: all that a reload swaps, as a whole or not at all. A call that began under one
 * `Loaded` ends under it.
 */
export interface Loaded {
  readonly tenant: string;
  readonly audience: string;
  /** The gateway's own issuer id. */
  readonly issuer: string;
  readonly catalogue: Catalogue;
  readonly settings: Settings;
  /** Until when a licence holds, and what is refused after; absent where none is configured. */
  readonly licence: { readonly endsMs: number; readonly refuses: 'writes' | 'all' } | undefined;
  /** Digest of all that decides or shapes what is sent; the same on every replica. */
  readonly policy: string;
  readonly signing: SigningKey;
  /** The gateway's own keys, the present one first. */
  readonly ownKeys: readonly IssuerKey[];
  /** The gateway alone, by its issuer id: whose histories a check goes on from. */
  readonly checkIssuers: ReadonlyMap<string, Issuer>;
  /** The gateway and the issuers of the config: whose receipts are read. */
  readonly receiptIssuers: ReadonlyMap<string, Issuer>;
  readonly confirmations: {
    readonly mode: 'returned' | 'held';
    /** Absent: `exact` for carried histories, `until_write` for held ones. */
    readonly point?: 'exact' | 'until_write';
    readonly ttlMs: number;
    /** Where an approver goes. */
    readonly approveAt: string;
  };
  readonly sessions: { readonly carryMs: number; readonly max: number };
  readonly runs: {
    readonly onRefuse: 'undo' | 'leave';
    readonly onFailure: 'undo' | 'leave';
    readonly idleMs: number;
  };
  readonly receipts: { readonly maxAgeMs: number; readonly enforce: ReadonlySet<'schema' | 'destination' | 'limits'> };
  readonly allowReadsWithoutStore: boolean;
  /** The largest answer that is kept for a repeat, in bytes. */
  readonly maxAnswerBytes: number;
  readonly idempotencyKeepMs: number;
  /** Reads that no rule counts, orders, taints by or takes a value from. */
  readonly unwatched: ReadonlySet<string>;
  /** By server name. */
  readonly upstreams: ReadonlyMap<string, Upstream>;
  /** What the MCP endpoints offer. */
  readonly mcp: McpPart;
  /** What proves a call of a server's tools: the check, a receipt, or a receipt where one is given. */
  readonly verifyOf: (server: string) => 'check' | 'receipt' | 'either';
  /** How long a call of the tool may take. */
  readonly timeoutMs: (tool: Tool) => number;
  /** How often a call of the tool is sent again at most, where that is safe. */
  readonly retryAttempts: (tool: Tool) => number;
  /** By tool pair; a tool that is not there is read by the default. */
  readonly failedWhen: ReadonlyMap<string, FailedWhen>;
  /** Tools whose writes must bring an idempotency key. */
  readonly idempotencyRequired: ReadonlySet<string>;
  readonly conditions: ConditionGate;
  readonly rulebook: RulebookGate;
  /** Tools whose answers in the session the rules of a tool read. */
  readonly answersRead: (toolId: string) => readonly string[];
  /** Conditions, limits, filters and followed outcomes of the tools. */
  readonly rules: RulePart;
}

/** The settings of a moment: a licence may have lapsed since the config was loaded. */
export function settingsAt({ settings, licence }: Loaded, nowMs: number): Settings {
  return licence === undefined || nowMs < licence.endsMs ? settings : { ...settings, lapsed: licence.refuses };
}
