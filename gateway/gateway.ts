import type { Crypto } from '../receipts/crypto.ts';
import type { VerifiedCache } from '../receipts/history-verify.ts';
import type { AuditLog } from './audit/audit-log.ts';
import type { Loaded } from './loaded.ts';
import type { Log } from './log.ts';
import type { Metrics } from './metrics.ts';
import type { Sessions } from './sessions.ts';
import type { CommitResult, Operation, Store } from './store/port.ts';

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
  readonly log: Log;
  readonly crypto: Crypto;
  /** Names this process among replicas: owner of claims, name of its audit chain. */
  readonly replica: string;
  /** Fires when the process is about to end. */
  readonly stopping: AbortSignal;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  readonly random: (length: number) => Uint8Array;
  /** `store.commit`, with note taken of whether the store can be reached. */
  readonly commit: (operations: readonly Operation[]) => Promise<CommitResult>;
  /** Commits without anybody waiting: for what a crash may lose. A failure forgets the sessions in memory. */
  readonly commitLater: (operations: readonly Operation[]) => void;
  /** Whether the last commit went through. */
  readonly storeIsUp: () => boolean;
  /** HMAC-SHA-256 under the store's secret, base64url: digests of values, and keys sent upstream. */
  readonly keyed: (text: string) => string;
}
