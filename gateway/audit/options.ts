import type { SigningKey } from '../../receipts/crypto.ts';
import type { AuditFault } from './fault.ts';

export interface AuditOptions {
  /** A file, which this process alone writes; or standard output, where each start of the process is a new replica. */
  readonly target: { readonly file: string } | 'stdout';
  /** The gateway's signing key: signs checkpoints. */
  readonly signer: SigningKey;
  /** Keys the digests of values: 32 random bytes that stay secret. */
  readonly digestKey: Uint8Array;
  /** Argument and result values are written. Off by default. */
  readonly values?: boolean;
  /** A file that reaches this size is rotated away. 256 MiB by default; 0 never rotates. */
  readonly maxSizeBytes?: number;
  /** A checkpoint comes after this many lines (1,000), and this long after a line that none covers (1,000 ms). */
  readonly checkpointLines?: number;
  readonly checkpointMs?: number;
  /** How often a log that is down tries to write again (500 ms). */
  readonly probeMs?: number;
  readonly nowMs?: () => number;
  /** Told when the log goes down, and `undefined` when it is up again. */
  readonly onChange?: (fault: AuditFault | undefined) => void;
}

/** What of the log is to be watched. */
export interface AuditLag {
  /** Lines that wait to be written. */
  readonly waiting: number;
  /** Lines that no checkpoint covers. */
  readonly unsigned: number;
  /** When the log went down; absent while it is up. */
  readonly downSinceMs?: number;
}

export const AUDIT_DEFAULTS: Readonly<Record<'maxSizeBytes' | 'checkpointLines' | 'checkpointMs' | 'probeMs', number>> =
  { maxSizeBytes: 256 << 20, checkpointLines: 1000, checkpointMs: 1000, probeMs: 500 };
