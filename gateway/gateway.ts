import type { Crypto } from '../receipts/crypto.ts';
import type { VerifiedCache } from '../receipts/history-verify.ts';
import type { AuditLog } from './audit/audit-log.ts';
import type { Bell, Flights } from './flights.ts';
import type { Loaded } from './loaded.ts';
import type { Log } from './log.ts';
import type { Metrics } from './metrics.ts';
import type { Sessions } from './sessions.ts';
import type { CommitResult, Operation, Store } from './store/port.ts';
import type { Tracing } from './tracing/span.ts';
import type { UnderWay } from './under-way.ts';

/** The running gateway: what lives as long as the process, and the config as last loaded. */
export interface Gateway {
  /** Swapped by a reload. A call reads it once, at its beginning. */
  loaded: Loaded;
  readonly store: Store;
  readonly sessions: Sessions;
  /** Prefixes of carried histories that verified before. */
  readonly verified: VerifiedCache & { clear(): void };
  readonly audit: AuditLog;
  readonly metrics: Metrics;
  /** Absent where no exporter of spans is configured. */
  readonly tracing: Tracing | undefined;
  readonly log: Log;
  readonly crypto: Crypto;
  /**
   * Owner of the claims and runs that this process is at work on: the name of its audit chain, which a restart keeps, and
   * behind a `~` one of this start alone, so that a restarted gateway never passes for the process that died.
   */
  readonly replica: string;
  /** How long an owner may be silent before its claims are somebody else's to settle, in milliseconds. */
  readonly leaseMs: number;
  readonly flights: Flights;
  /** Rung where a run may have something to undo. */
  readonly undoWork: Bell;
  /** Fires when the process is about to end. */
  readonly stopping: AbortSignal;
  /** Calls that were sent and whose outcome is not stored yet: the end of the process waits for them. */
  readonly underWay: UnderWay;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  readonly random: (length: number) => Uint8Array;
  /** `store.commit`, with note taken of whether the store can be reached. */
  readonly commit: (operations: readonly Operation[]) => Promise<CommitResult>;
  /** Whether the last commit went through. */
  readonly storeIsUp: () => boolean;
  /** HMAC-SHA-256 under the store's secret, base64url: digests of values, and keys sent upstream. */
  readonly keyed: (text: string) => string;
}
