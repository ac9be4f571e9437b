import type { SessionView } from '../../policy/session.ts';

/**
 * The store: everything that must outlive a process or be agreed on by replicas. Two adapters implement it, SQLite and
 * PostgreSQL, and one contract suite in test/store/ holds both to what stands here.
 *
 * All writing goes through `commit`: a list of operations that happens as a whole or not at all. An operation whose
 * precondition no longer holds makes the whole list a `Conflict`, and nothing of it is stored. When `commit` resolves,
 * what it stored survives a power loss. Adapters group the commits that arrive together into one transaction.
 */
export interface Store {
  readonly kind: 'sqlite' | 'postgres';
  /** Resolves where the store can be written to now; throws `StoreFault` with the reason where it cannot. */
  ready(): Promise<void>;
  /** Commits in order of arrival. Throws `StoreFault` where the store cannot be reached: nothing was stored, or (`maybe`) nobody can tell. */
  commit(operations: readonly Operation[]): Promise<CommitResult>;
  /**
   * Commits with the next group while nobody waits for it, in order with every other commit and read of the same
   * session. Never throws; what was not stored is told to `StoreOptions.onLost`.
   */
  enqueue(operations: readonly Operation[]): void;

  findSession(key: SessionKey): Promise<SessionRecord | undefined>;
  findSessionById(sid: string): Promise<SessionRecord | undefined>;
  /** The named steps of a session, those that exist. */
  findSteps(sid: string, steps: readonly number[]): Promise<readonly StepRecord[]>;
  /** Every entry of a session in order, for an export. */
  readEntries(sid: string): Promise<readonly StepRecord[]>;
  /**
   * Views of a caller's sessions that took an allowed entry since `sinceMs`: those whose view changed since then, for a
   * refused call leaves the view as it is. A report on an older entry counts too, which only makes the answer stricter.
   * The session of the id `except` is left out.
   */
  viewsOfCaller(issuer: string, caller: string, sinceMs: number, except?: string): Promise<readonly SessionView[]>;
  /** The newest answers that a session has from tools whose values are watched, newest first. */
  findWatched(sid: string, tools: readonly string[]): Promise<readonly WatchedRecord[]>;

  findClaim(by: { readonly link: string } | { readonly scopeKey: string }): Promise<ClaimRecord | undefined>;
  /** Claims in a state, oldest first (settled ones by when they were settled), at most `limit`. */
  listClaims(state: ClaimState, limit: number): Promise<readonly ClaimRecord[]>;
  /**
   * Claims whose owner let its lease pass, taken over by `owner` under a new fence (SKIP LOCKED where replicas share).
   * None that `owner` itself sends: it knows which of those are still on their way, however late its renewal is.
   */
  takeLapsedClaims(owner: string, nowMs: number, leaseUntilMs: number, limit: number): Promise<readonly ClaimRecord[]>;
  /** Prolongs the owner's leases on claims that the gateway runs itself and that are not settled, and on runs. */
  renewLeases(owner: string, leaseUntilMs: number): Promise<void>;

  findConfirmation(id: string): Promise<ConfirmationRecord | undefined>;
  /** The newest live confirmation that was asked for the same call in the session. */
  findConfirmationOfCall(sid: string, callDigest: string): Promise<ConfirmationRecord | undefined>;
  /** Held confirmations in a state, at most `limit`: pending ones that are not expired, oldest first; others newest first. */
  listConfirmations(state: ConfirmationState, nowMs: number, limit: number): Promise<readonly ConfirmationRecord[]>;

  /** Receipts that were admitted of a session's steps up to one, highest step first, at most `limit`. */
  findReceipts(
    key: SessionKey,
    most: { readonly upTo: number; readonly limit: number },
  ): Promise<readonly { readonly step: number; readonly link: string }[]>;

  findRun(caller: string, run: string): Promise<RunRecord | undefined>;
  listRuns(states: readonly RunState[], limit: number): Promise<readonly RunRecord[]>;
  /** Undo rows of a run, highest step first. */
  listUndos(caller: string, run: string): Promise<readonly UndoRecord[]>;
  /**
   * A failed or undoing run that no live owner holds and whose highest unfinished undo is pending or begun and due, or
   * that has no unfinished undo left and waits to be closed; leased to `owner`. Given back by a lease of 0.
   */
  takeUndoWork(owner: string, nowMs: number, leaseUntilMs: number): Promise<RunRecord | undefined>;

  /** What is counted in the buckets now: settled and held amounts, as decimal texts. */
  readCounters(buckets: readonly string[]): Promise<ReadonlyMap<string, CounterRecord>>;
  /** Amounts and times of a sliding bucket since `sinceMs`, oldest first. */
  readHolds(bucket: string, sinceMs: number): Promise<readonly HoldRecord[]>;

  /** What is not settled, by its state: for metrics. Kinds and states of which there is none are left out. */
  countOpen(nowMs: number): Promise<readonly OpenCount[]>;

  /** Outbox rows that `replica` has not marked written, in order. */
  readOutbox(replica: string, limit: number): Promise<readonly { readonly n: number; readonly line: string }[]>;

  /**
   * Deletes what is past its keeping, a bounded amount at a time; resolves with how many rows went (0: nothing is left to
   * do now). A session stays while one of its claims is open or unknown, or one of its runs waits to be undone. A bucket
   * that counts for nothing any more goes with whatever is still held in it.
   */
  sweep(nowMs: number, keep: Keep): Promise<number>;
  /** A key of this store, made at its creation (256 random bits): for digests of values and for keys sent upstream. */
  secret(): Uint8Array;
  close(): Promise<void>;
}

/** So many open claims, unfinished undos, or held confirmations that wait, in a state. */
export interface OpenCount {
  readonly what: 'claim' | 'undo' | 'confirmation';
  readonly state: string;
  readonly count: number;
}

/** What an adapter is opened with. */
export interface StoreOptions {
  /** 32 bytes: seals what may hold people's values (docs/store.md). Absent: stored as it is. */
  readonly encryptionKey?: Uint8Array;
  /** Told of each enqueued commit that was not stored. Must not throw. */
  readonly onLost?: (why: StoreFault | Conflict, operations: readonly Operation[]) => void;
  /** PostgreSQL connections that commit side by side; 4 where absent. */
  readonly connections?: number;
}

/** A store that cannot be used as it is told to: wrong key, newer schema, in use by another process. Names what to do. */
export class StoreSetupError extends Error {
  readonly code = 'store_setup';
  constructor(message: string, options?: { cause?: unknown }) {
    super(message, { cause: options?.cause });
    this.name = 'StoreSetupError';
  }
}

/** How long rows are kept, in milliseconds. */
export interface Keep {
  readonly claimsMs: number;
  readonly sessionsMs: number;
}

/** Why the store did not do what it was asked to. */
export class StoreFault extends Error {
  readonly code = 'store_unavailable';
  /** True where the connection broke while committing, so that nobody can tell whether it was stored. */
  readonly maybe: boolean;
  constructor(message: string, options?: { cause?: unknown; maybe?: boolean }) {
    super(message, { cause: options?.cause });
    this.name = 'StoreFault';
    this.maybe = options?.maybe ?? false;
  }
}

export type CommitResult = { readonly ok: true } | Conflict;

/** The first operation whose precondition did not hold. */
export interface Conflict {
  readonly ok: false;
  /** Index into the operations. */
  readonly operation: number;
  readonly conflict:
    | 'session_moved'
    | 'session_exists'
    | 'session_frozen'
    | 'too_many_sessions'
    | 'claim_exists'
    | 'claim_fenced'
    | 'confirmation_spent'
    | 'confirmation_state'
    | 'receipt_spent'
    | 'receipt_forked'
    | 'limit_reached'
    | 'run_foreign'
    | 'run_state'
    | 'undo_state';
}

/** Whose session: names are an issuer's and a caller's own, so nobody can touch another's. */
export interface SessionKey {
  readonly issuer: string;
  readonly caller: string;
  readonly session: string;
}

export interface SessionRecord extends SessionKey {
  /** Internal id, random. */
  readonly sid: string;
  readonly mode: 'held' | 'carried';
  /** base64url of 16 bytes. */
  readonly nonce: string;
  readonly audience: string;
  /** Link of the newest entry in base64url; absent before the first. */
  readonly head?: { readonly step: number; readonly link: string };
  /** What is reported of the newest entry, as the next link will freeze it. */
  readonly headReport: { readonly outcome?: string; readonly result?: string };
  /** Reports on older steps that the next entry's body must carry, sorted by step (docs/formats.md, `reports`). */
  readonly lateReports: readonly { readonly step: number; readonly outcome: string; readonly result?: string }[];
  readonly view: SessionView;
  /** Counts every change of the row; a commit says which version it saw. */
  readonly version: number;
  /** Why no call goes on in it. */
  readonly frozen?: string;
  readonly openedAtMs: number;
  readonly usedAtMs: number;
}

/** An entry as stored, with what only the gateway knows of it. */
export interface StepRecord {
  readonly step: number;
  readonly link: string;
  /** JCS of the entry's body (docs/formats.md). */
  readonly body: string;
  /** base64url; absent until the entry is handed out. */
  readonly token?: string;
  /** What is reported, and whether the gateway saw it itself (then nobody overrides it). */
  readonly outcome?: string;
  readonly result?: string;
  readonly seen: boolean;
  /** The gateway forwards this call; nobody else may report on it. */
  readonly forwarded: boolean;
  /** Result field → keyed digest of its value. */
  readonly fields?: Readonly<Record<string, string>>;
  /** Canonical JSON of what the undo of this step binds. */
  readonly undoArguments?: string;
  /** An undo of this step was allowed and is not known to have failed. */
  readonly undoAllowed: boolean;
  /** An entry follows, whose link froze what was reported until then. */
  readonly reportFrozen: boolean;
  /** What the following link froze; absent while none follows. `outcome` and `result` are the newest. */
  readonly frozenReport?: { readonly outcome?: string; readonly result?: string };
}

/** Values of one answer that rules read later (docs/execution.md); nothing else of a result is stored. */
export interface WatchedRecord {
  readonly tool: string;
  readonly step: number;
  /** The call's own arguments and result fields that `same` and `from` name, canonical JSON. */
  readonly arguments: string;
  readonly result: string;
}

export type ClaimState = 'claimed' | 'sending' | 'ran' | 'failed' | 'outcome_unknown';

/** One allowed entry's one claim to run. */
export interface ClaimRecord {
  /** Link of the allowed entry, base64url: the primary key. */
  readonly link: string;
  /** Digest of tenant, caller, agent and the client's own key; absent where the client gave none. Unique. */
  readonly scopeKey?: string;
  /** H(`qls-call/1`, JCS [tool, arguments]). */
  readonly fingerprint: string;
  readonly sid: string;
  readonly step: number;
  readonly tool: string;
  readonly caller: string;
  readonly agent: string;
  readonly run?: string;
  readonly undoes?: number;
  readonly writes: boolean;
  /** Who runs it: the gateway, or the host that checked it (then it is never forwarded). */
  readonly runBy: 'gateway' | 'host';
  readonly state: ClaimState;
  /** The key sent upstream; absent where none is. */
  readonly upstreamKey?: string;
  /** Canonical JSON of the arguments, kept while a resend may need it. */
  readonly request?: string;
  readonly owner: string;
  readonly fence: number;
  readonly leaseUntilMs: number;
  readonly createdAtMs: number;
  readonly settledAtMs?: number;
  readonly answer?: StoredAnswer;
  /** Why it is unknown or failed, in words. */
  readonly why?: string;
}

/** What a repeat of a settled call is answered with. */
export type StoredAnswer =
  | {
      readonly kind: 'kept';
      readonly status: number;
      readonly contentType?: string;
      readonly body: Uint8Array;
    }
  /** Too large, or a stream: the call is not run again, but its answer is gone. */
  | { readonly kind: 'tombstone'; readonly status: number };

export type ConfirmationState = 'pending' | 'approved' | 'denied' | 'spent';

export interface ConfirmationRecord {
  /** 22 characters of base64url: 128 random bits. */
  readonly id: string;
  readonly sid: string;
  readonly session: string;
  readonly caller: string;
  readonly mode: 'returned' | 'held';
  readonly point: 'exact' | 'until_write';
  readonly step: number;
  /** Link of the confirm entry. */
  readonly link: string;
  readonly tool: string;
  readonly agent: string;
  /** Digest of the arguments. */
  readonly arguments: string;
  readonly shown: string;
  readonly expiresMs: number;
  readonly state: ConfirmationState;
  /** Digest of the whole call, by which a repeat finds it. */
  readonly callDigest: string;
  /** What the confirm entry recorded and the approved call must repeat: JSON of `Confirmation.asked`. */
  readonly asked: string;
  /** What a person is shown, canonical JSON (sealed where the store has an encryption key). */
  readonly display: string;
  readonly approver?: string;
  readonly note?: string;
  readonly createdAtMs: number;
  readonly decidedAtMs?: number;
}

interface ReceiptKey {
  readonly issuer: string;
  readonly caller: string;
  readonly session: string;
  readonly step: number;
}

export type RunState = 'open' | 'failed' | 'undoing' | 'compensated' | 'needs_person' | 'ended';

export interface RunRecord {
  readonly caller: string;
  readonly run: string;
  readonly sid: string;
  readonly agent: string;
  readonly state: RunState;
  readonly why?: string;
  /** Steps that stay done: `[{step, tool, why}]` as JSON. */
  readonly left?: string;
  readonly owner?: string;
  readonly leaseUntilMs?: number;
  readonly updatedAtMs: number;
}

export type UndoState = 'undo_pending' | 'undoing' | 'compensated' | 'undo_unknown' | 'needs_person';

export interface UndoRecord {
  readonly caller: string;
  readonly run: string;
  readonly step: number;
  /** Tool of the step, and the tool that undoes it. */
  readonly tool: string;
  readonly undoTool: string;
  /** Canonical JSON of the bound arguments; absent where the undo cannot be bound. */
  readonly arguments?: string;
  readonly state: UndoState;
  /** 1, and one more each time a late success reopens the step: it stands in the undo's key. */
  readonly round: number;
  readonly attempts: number;
  readonly dueAtMs: number;
  readonly why?: string;
}

export interface CounterRecord {
  readonly settled: string;
  readonly held: string;
}

export interface HoldRecord {
  readonly bucket: string;
  readonly link: string;
  /** Decimal text. */
  readonly amount: string;
  readonly atMs: number;
  readonly state: 'held' | 'settled';
}

/** One thing that a commit does. Preconditions stand beside each. */
export type Operation =
  /** `session_exists` where the key is taken; `too_many_sessions` where the caller already has `maxLive` since `liveSinceMs`. */
  | {
      readonly op: 'open_session';
      readonly session: SessionRecord;
      readonly maxLive: number;
      readonly liveSinceMs: number;
    }
  /** `session_moved` where the version is another; `session_frozen` where it is frozen. Stores version + 1. */
  | {
      readonly op: 'advance_session';
      readonly sid: string;
      readonly expectVersion: number;
      readonly head?: { readonly step: number; readonly link: string };
      readonly headReport: SessionRecord['headReport'];
      readonly lateReports: SessionRecord['lateReports'];
      readonly view: SessionView;
      readonly usedAtMs: number;
    }
  | { readonly op: 'freeze_session'; readonly sid: string; readonly why: string }
  /** `session_moved` where the step is taken. What is reported of the step before is frozen from here on. */
  | { readonly op: 'append_entry'; readonly sid: string; readonly entry: StepRecord }
  | { readonly op: 'sign_entry'; readonly sid: string; readonly step: number; readonly token: string }
  /**
   * Sets what is reported of a step; `undefined` members stay as they are, and what the gateway saw stays seen.
   * `session_moved` where there is no such step, as with every operation that names one.
   */
  | {
      readonly op: 'report_step';
      readonly sid: string;
      readonly step: number;
      readonly outcome: string;
      readonly result?: string;
      readonly seen: boolean;
      readonly fields?: Readonly<Record<string, string>>;
      readonly undoArguments?: string;
    }
  | { readonly op: 'mark_undo'; readonly sid: string; readonly step: number; readonly undoAllowed: boolean }
  /** Keeps the newest `keep` answers of the tool. */
  | { readonly op: 'watch'; readonly sid: string; readonly record: WatchedRecord; readonly keep: number }
  /** `claim_exists` where the link or the scope key has a claim. */
  | { readonly op: 'claim'; readonly claim: ClaimRecord }
  /**
   * `claim_fenced` where the fence is another or the state is none of `from`. To `ran` or `failed` settles the claim and
   * forgets its request. `why` becomes what is given, absent too; `answer` stays where none is given.
   */
  | {
      readonly op: 'move_claim';
      readonly link: string;
      readonly fence: number;
      readonly from: readonly ClaimState[];
      readonly to: ClaimState;
      readonly answer?: StoredAnswer;
      readonly why?: string;
      readonly atMs: number;
    }
  /**
   * Takes a claim that is in one of `from` to send it (again): `sending` under the next fence, run by the gateway.
   * `request` becomes what is given, and stays where none is. `claim_fenced` otherwise.
   */
  | {
      readonly op: 'retake_claim';
      readonly link: string;
      readonly fence: number;
      readonly from: readonly ClaimState[];
      readonly owner: string;
      readonly leaseUntilMs: number;
      readonly atMs: number;
      readonly request?: string;
    }
  | { readonly op: 'put_confirmation'; readonly confirmation: ConfirmationRecord }
  /** `confirmation_spent` where it is spent, `confirmation_state` where it is in none of `from`. */
  | {
      readonly op: 'move_confirmation';
      readonly id: string;
      readonly from: readonly ConfirmationState[];
      readonly to: ConfirmationState;
      readonly approver?: string;
      readonly note?: string;
      readonly atMs: number;
    }
  /** `receipt_spent` where the same link was admitted, `receipt_forked` where another link was. */
  | { readonly op: 'spend_receipt'; readonly key: ReceiptKey; readonly link: string; readonly untilMs: number }
  /**
   * Reserves `amount` in a bucket for a link. `limit_reached` where settled + held + amount would pass `max`; a sliding
   * bucket counts only holds since `sinceMs`, a bucket without it everything (its name holds the period).
   */
  | {
      readonly op: 'hold';
      readonly bucket: string;
      readonly link: string;
      readonly amount: string;
      readonly max: string;
      readonly atMs: number;
      readonly sinceMs?: number;
      /** When the bucket counts for nothing any more. Without it a sliding one is kept for its window, others for 400 days. */
      readonly untilMs?: number;
      /** Id of the session that alone is counted in the bucket, which then counts until the session is gone. */
      readonly ofSession?: string;
    }
  /** What is held under the link counts for good. */
  | { readonly op: 'settle_holds'; readonly link: string }
  /** What is still held under the link counts no more; what was settled stays. */
  | { readonly op: 'release_holds'; readonly link: string }
  /**
   * Makes or touches a run; `run_foreign` where it lives in another session; `run_state` where it is in none of `from`, or
   * `run.owner` is given and another owner's lease still lasts at `run.updatedAtMs`. `why` and `left` become what is given,
   * absent too; an absent owner leaves a failed or undoing run with the one it has.
   */
  | {
      readonly op: 'touch_run';
      readonly run: RunRecord;
      readonly from: readonly RunState[];
    }
  /** Puts the row, or puts it anew. */
  | { readonly op: 'put_undo'; readonly undo: UndoRecord }
  /** `undo_state` where the row is in none of `from`. `why` becomes what is given, absent too. */
  | {
      readonly op: 'move_undo';
      readonly caller: string;
      readonly run: string;
      readonly step: number;
      readonly from: readonly UndoState[];
      readonly to: UndoState;
      readonly attempts?: number;
      readonly dueAtMs?: number;
      readonly why?: string;
    }
  /** A line for the audit log of `replica`, in the same transaction as what it tells of. `n` counts the replica's lines. */
  | { readonly op: 'outbox'; readonly replica: string; readonly n: number; readonly line: string }
  /** The log of `replica` holds every line up to `n`: the store forgets them. */
  | { readonly op: 'outbox_written'; readonly replica: string; readonly n: number };
