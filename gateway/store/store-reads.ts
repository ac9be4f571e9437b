import { hourOf, type Value } from './lower.ts';
import type {
  ClaimRecord,
  ClaimState,
  CommitResult,
  ConfirmationRecord,
  ConfirmationState,
  CounterRecord,
  HoldRecord,
  Keep,
  OpenCount,
  Operation,
  RunRecord,
  RunState,
  SessionKey,
  SessionRecord,
  StepRecord,
  Store,
  UndoRecord,
  WatchedRecord,
} from './port.ts';
import type { QueryName } from './queries.ts';
import * as read from './rows.ts';

/** Reads that also write. */
export type TaskName = 'takeLapsedClaims' | 'renewLeases' | 'takeUndoWork' | 'sweep';

export type StoreQuery = QueryName | TaskName;

/** What both adapters share: every read is the name of a query and its parameters, and its rows become records. */
export abstract class StoreReads implements Store {
  abstract readonly kind: 'sqlite' | 'postgres';
  abstract ready(): Promise<void>;
  abstract commit(operations: readonly Operation[]): Promise<CommitResult>;
  abstract enqueue(operations: readonly Operation[]): void;
  abstract secret(): Uint8Array;
  abstract close(): Promise<void>;
  /** Runs a named query; rows come with their sealed columns opened. */
  protected abstract rows(name: StoreQuery, values: readonly Value[]): Promise<readonly read.Row[]>;

  async findSession(key: SessionKey): Promise<SessionRecord | undefined> {
    return one(await this.rows('findSession', [key.issuer, key.caller, key.session]), read.sessionOf);
  }

  async findSessionById(sid: string): Promise<SessionRecord | undefined> {
    return one(await this.rows('findSessionById', [sid]), read.sessionOf);
  }

  async findSteps(sid: string, steps: readonly number[]): Promise<readonly StepRecord[]> {
    return (await this.rows('findSteps', [sid, JSON.stringify(steps)])).map(read.stepOf);
  }

  async readEntries(sid: string): Promise<readonly StepRecord[]> {
    return (await this.rows('readEntries', [sid])).map(read.stepOf);
  }

  async viewsOfCaller(
    issuer: string,
    caller: string,
    sinceMs: number,
    except = '',
  ): Promise<readonly SessionRecord['view'][]> {
    return (await this.rows('viewsOfCaller', [issuer, caller, sinceMs, hourOf(sinceMs), except])).map(read.viewOf);
  }

  async findWatched(sid: string, tools: readonly string[]): Promise<readonly WatchedRecord[]> {
    return (await this.rows('findWatched', [sid, JSON.stringify(tools)])).map(read.watchedOf);
  }

  async findClaim(by: { readonly link: string } | { readonly scopeKey: string }): Promise<ClaimRecord | undefined> {
    const rows =
      'link' in by ? this.rows('findClaimByLink', [by.link]) : this.rows('findClaimByScopeKey', [by.scopeKey]);
    return one(await rows, read.claimOf);
  }

  async listClaims(state: ClaimState, limit: number): Promise<readonly ClaimRecord[]> {
    const settled = state === 'ran' || state === 'failed';
    return (await this.rows(settled ? 'listSettledClaims' : 'listOpenClaims', [state, limit])).map(read.claimOf);
  }

  async takeLapsedClaims(
    owner: string,
    nowMs: number,
    leaseUntilMs: number,
    limit: number,
  ): Promise<readonly ClaimRecord[]> {
    const rows = await this.rows('takeLapsedClaims', [owner, nowMs, leaseUntilMs, limit]);
    return rows.map(read.claimOf).sort((a, b) => a.createdAtMs - b.createdAtMs);
  }

  async renewLeases(owner: string, leaseUntilMs: number): Promise<void> {
    await this.rows('renewLeases', [owner, leaseUntilMs]);
  }

  async findConfirmation(id: string): Promise<ConfirmationRecord | undefined> {
    return one(await this.rows('findConfirmation', [id]), read.confirmationOf);
  }

  async findConfirmationOfCall(sid: string, callDigest: string): Promise<ConfirmationRecord | undefined> {
    return one(await this.rows('findConfirmationOfCall', [sid, callDigest]), read.confirmationOf);
  }

  async listConfirmations(
    state: ConfirmationState,
    nowMs: number,
    limit: number,
  ): Promise<readonly ConfirmationRecord[]> {
    return (await this.rows('listConfirmations', [state, nowMs, limit])).map(read.confirmationOf);
  }

  async findReceipts(
    key: SessionKey,
    most: { readonly upTo: number; readonly limit: number },
  ): Promise<readonly { readonly step: number; readonly link: string }[]> {
    const named = [key.issuer, key.caller, key.session] as const;
    return (await this.rows('findReceipts', [...named, most.upTo, most.limit])).map(read.receiptOf);
  }

  async findRun(caller: string, run: string): Promise<RunRecord | undefined> {
    return one(await this.rows('findRun', [caller, run]), read.runOf);
  }

  async listRuns(states: readonly RunState[], limit: number): Promise<readonly RunRecord[]> {
    return (await this.rows('listRuns', [JSON.stringify(states), limit])).map(read.runOf);
  }

  async listUndos(caller: string, run: string): Promise<readonly UndoRecord[]> {
    return (await this.rows('listUndos', [caller, run])).map(read.undoOf);
  }

  async takeUndoWork(owner: string, nowMs: number, leaseUntilMs: number): Promise<RunRecord | undefined> {
    return one(await this.rows('takeUndoWork', [owner, nowMs, leaseUntilMs]), read.runOf);
  }

  async readCounters(buckets: readonly string[]): Promise<ReadonlyMap<string, CounterRecord>> {
    return new Map((await this.rows('readCounters', [JSON.stringify(buckets)])).map(read.counterOf));
  }

  async readHolds(bucket: string, sinceMs: number): Promise<readonly HoldRecord[]> {
    return (await this.rows('readHolds', [bucket, sinceMs])).map(read.holdOf);
  }

  async countOpen(nowMs: number): Promise<readonly OpenCount[]> {
    return (await this.rows('countOpen', [nowMs])).map(read.openCountOf);
  }

  async readOutbox(replica: string, limit: number): Promise<readonly { readonly n: number; readonly line: string }[]> {
    return (await this.rows('readOutbox', [replica, limit])).map(read.outboxOf);
  }

  async sweep(nowMs: number, keep: Keep): Promise<number> {
    const [row] = await this.rows('sweep', [nowMs, keep.claimsMs, keep.sessionsMs]);
    return Number(row?.[0] ?? 0);
  }
}

function one<T>(rows: readonly read.Row[], make: (row: read.Row) => T): T | undefined {
  const [row] = rows;
  return row === undefined ? undefined : make(row);
}
