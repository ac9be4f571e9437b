import { createHmac, createSecretKey, randomBytes } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import { dirname } from 'node:path';
import { LRUCache } from 'lru-cache';
import type { SigningKey } from '../../receipts/crypto.ts';
import { nodeCrypto } from '../../receipts/crypto-node.ts';
import { AuditLog } from '../audit/audit-log.ts';
import type { Config } from '../config/config.ts';
import { Bell, Flights } from '../flights.ts';
import type { Gateway } from '../gateway.ts';
import type { Loaded } from '../loaded.ts';
import type { Log } from '../log.ts';
import { Metrics } from '../metrics.ts';
import { Sessions } from '../sessions.ts';
import { type CommitResult, type Operation, type Store, StoreFault } from '../store/port.ts';
import type { Tracing } from '../tracing/span.ts';
import type { SpanCounts } from '../tracing/span-counts.ts';
import { UnderWay } from '../under-way.ts';
import { auditFileOf } from '../workers/worker-audit.ts';

/** Sessions that are kept in memory. One that is not is read from the store. */
const LIVE_SESSIONS = 20_000;
/** Links of carried histories that verified before. */
const VERIFIED_HEADS = 50_000;

/** How long an owner may be silent before its claims are somebody else's to settle. */
const LEASE_MS = 30_000;

/** What lives as long as the process, opened. */
export interface Services {
  readonly store: Store;
  readonly audit: AuditLog;
  readonly leaseMs?: number | undefined;
  readonly ofAllWorkers?: (() => Promise<string>) | undefined;
  /** Absent where no exporter of spans is configured, or none are made at all. */
  readonly tracing?: Tracing | undefined;
  readonly spans?: SpanCounts;
}

/**
 * Opens the audit log and writes into it what a crash may have left in the store alone.
 * @param worker Its number, where this process is one of several.
 */
export async function openAudit(
  config: Config,
  store: Store,
  signing: SigningKey,
  log: Log,
  worker: number,
): Promise<AuditLog> {
  const file = config.audit.file === 'stdout' ? undefined : auditFileOf(config.audit.file, worker);
  if (file !== undefined) await mkdir(dirname(file), { recursive: true });
  const audit = await AuditLog.open({
    target: file === undefined ? 'stdout' : { file },
    signer: signing,
    digestKey: digestKeyOf(store),
    values: config.audit.values,
    maxSizeBytes: config.audit.maxSizeBytes,
    onChange: (fault) => {
      if (fault === undefined) log.info('the audit log can be written again');
      else log.error({ err: fault }, 'the audit log cannot be written; calls are refused until it can');
    },
  });
  for (;;) {
    const rows = await store.readOutbox(audit.replica, 500);
    const written = await audit.catchUp(rows);
    if (rows.length === 0) return audit;
    await store.commit([{ op: 'outbox_written', replica: audit.replica, n: written }]);
  }
}

/** Digests in the log are keyed apart from everything else that the store's secret keys. */
function digestKeyOf(store: Store): Uint8Array {
  return createHmac('sha256', store.secret()).update('toolgate audit digests').digest();
}

/** Puts the running gateway together. */
export function makeGateway(
  loaded: Loaded,
  services: Services,
  log: Log,
  health: StoreHealth,
  stopping: AbortSignal,
): Gateway {
  const { store, audit, ofAllWorkers, tracing, spans } = services;
  const secret = createSecretKey(store.secret());
  const sessions = new Sessions(store, nodeCrypto, LIVE_SESSIONS, (operations) => store.enqueue(operations));
  const metrics = new Metrics({
    storeCounts: () => store.countOpen(Date.now()),
    storeIsUp: () => health.isUp,
    auditLag: () => audit.lag(),
    sessions: () => sessions.size,
    spans,
    ...(ofAllWorkers === undefined ? {} : { ofAllWorkers }),
  });
  health.onLost = () => sessions.forgetAll();
  return {
    loaded,
    store,
    commit: async (operations) => {
      const startedAt = performance.now();
      const result = await health.commit(store, operations);
      metrics.storeTook(performance.now() - startedAt);
      return result;
    },
    sessions,
    audit,
    metrics,
    tracing,
    log,
    crypto: nodeCrypto,
    verified: new LRUCache<string, string>({ max: VERIFIED_HEADS }),
    replica: `${audit.replica}~${randomBytes(6).toString('base64url')}`,
    leaseMs: services.leaseMs ?? LEASE_MS,
    flights: new Flights(),
    undoWork: new Bell(),
    now: Date.now,
    random: (length) => randomBytes(length),
    storeIsUp: () => health.isUp,
    stopping,
    underWay: new UnderWay(),
    keyed: (text) => createHmac('sha256', secret).update(text).digest('base64url'),
  };
}

/** Whether the store took the last commit: while it does not, nothing is let through on the strength of memory alone. */
export class StoreHealth {
  isUp = true;
  onLost: () => void = () => undefined;
  readonly #log: Log;

  constructor(log: Log) {
    this.#log = log;
  }

  /** Told by the store of commits that nobody waited for and that were not stored. */
  lost(why: unknown, operations: readonly Operation[]): void {
    this.#log.error({ err: why, operations: operations.map(({ op }) => op) }, 'a commit was not stored');
    if (why instanceof StoreFault) this.isUp = false;
    this.onLost();
  }

  /** Commits, and notes whether the store took it. */
  async commit(store: Store, operations: readonly Operation[]): Promise<CommitResult> {
    try {
      const result = await store.commit(operations);
      this.isUp = true;
      return result;
    } catch (error) {
      this.isUp = false;
      throw error;
    }
  }
}
