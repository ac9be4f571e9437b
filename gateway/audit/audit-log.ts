import { createHmac, createSecretKey, type KeyObject } from 'node:crypto';
import { Chain } from './chain.ts';
import { type ChainHead, draftRecovered } from './chain-lines.ts';
import { createClock } from './clock.ts';
import type { AuditEvent } from './events.ts';
import { AuditFault, systemCode } from './fault.ts';
import { type Draft, draftEvent, type PreparedLine } from './line.ts';
import { AUDIT_DEFAULTS, type AuditLag, type AuditOptions } from './options.ts';
import { Outbox } from './outbox.ts';
import { parseStoredLine } from './stored-line.ts';
import { readWrittenNumbers } from './tail.ts';
import { openTarget, type Target } from './target.ts';

interface Group {
  readonly drafts: Draft[];
  readonly promise: Promise<void>;
  readonly resolve: () => void;
  readonly reject: (fault: AuditFault) => void;
}

const HEARTBEAT_MS = 10_000;

/**
 * The audit log of one process: JSON lines in a hash chain, with signed checkpoints (docs/formats.md, `qls-audit/1`).
 *
 * A line is written when `append` resolves: it is with the operating system and survives the end of this process. It is
 * on the disk with the next checkpoint, which is followed by an fdatasync. What a power loss takes of the lines in
 * between, the store's outbox gives back at the next start. Lines that arrive within one turn of the event loop, or
 * while a write is under way, are one write.
 *
 * A line that cannot be written rejects, and so does every later one (and `ready`) until the target takes lines again,
 * which the log tries by itself. The chain goes on where it was.
 */
export class AuditLog {
  readonly #options: AuditOptions & typeof AUDIT_DEFAULTS;
  readonly #nowMs: () => number;
  readonly #clock: () => string;
  readonly #digestKey: KeyObject;
  readonly #target: Target;
  readonly #chain: Chain;
  readonly #outbox: Outbox;
  #group: Group | undefined;
  /** Prepared lines that a failed write did not take: the store holds them, so the log must, too. */
  #owed: PreparedLine[] = [];
  #wantsCheckpoint = false;
  #durable: number;
  #down: { readonly fault: AuditFault; readonly sinceMs: number } | undefined;
  #closed = false;
  #work: Promise<void> = Promise.resolve();
  #scheduled = false;
  #syncing: Promise<void> = Promise.resolve();
  #timer: NodeJS.Timeout | undefined;
  #probe: NodeJS.Timeout | undefined;
  #beatMs: number;

  private constructor(options: AuditOptions & typeof AUDIT_DEFAULTS, target: Target) {
    this.#options = options;
    this.#nowMs = options.nowMs ?? Date.now;
    this.#clock = createClock(this.#nowMs);
    this.#digestKey = createSecretKey(options.digestKey);
    this.#target = target;
    this.#outbox = new Outbox(target.firstNumber, target.state.written);
    this.#durable = target.state.written;
    this.#chain = new Chain(target, {
      ...options,
      time: this.#clock,
      floorWith: (lines) => this.#outbox.floorWith(lines),
      prepared: () => this.#outbox.next - 1,
    });
    this.#beatMs = this.#nowMs();
  }

  /**
   * Opens the log, repairs the end that a crash may have left, and writes its `open` line.
   * Throws `AuditFault`: `audit_locked`, `audit_foreign`, or `audit_unavailable` where it cannot be written.
   */
  static async open(options: AuditOptions): Promise<AuditLog> {
    const name = options.target === 'stdout' ? 'on standard output' : `\`${options.target.file}\``;
    try {
      const target = openTarget(options.target, (options.nowMs ?? Date.now)());
      try {
        const log = new AuditLog({ ...AUDIT_DEFAULTS, ...options }, target);
        await log.#chain.open(target.lost);
        log.#timer = setInterval(() => log.#tick(), log.#options.checkpointMs);
        log.#timer.unref();
        return log;
      } catch (error) {
        target.close();
        throw error;
      }
    } catch (error) {
      throw asFault(error, name);
    }
  }

  /** Who writes this log; the store's outbox rows are under this name. */
  get replica(): string {
    return this.#target.state.replica;
  }

  /** The newest line's place and hash: what an external anchor notes. */
  get head(): ChainHead {
    return this.#chain.head;
  }

  /** Every prepared line up to this number is written and on the disk: what `outbox_written` may say. */
  get durableUpTo(): number {
    return this.#durable;
  }

  /** Resolves when the line is written. Rejects with `AuditFault` where it is not: then the call is refused. */
  append(event: AuditEvent): Promise<void> {
    if (this.#closed || this.#down !== undefined) return Promise.reject(this.#standing());
    return this.#queue(draftEvent(event, this.#clock(), this.#options.values === true));
  }

  /**
   * A line for the store's transaction, to be given to `write` once that has committed, or to `abandon` once it is
   * certain that it has not. Throws `AuditFault` while lines cannot be written.
   */
  prepare(event: AuditEvent): PreparedLine {
    if (this.#closed || this.#down !== undefined) throw this.#standing();
    const { state } = this.#target;
    if (this.#outbox.next >= state.reservedTo) state.reserve(this.#outbox.next);
    const n = this.#outbox.take();
    const { line, cuts } = draftEvent(event, this.#clock(), this.#options.values === true, n);
    return { n, line, cuts };
  }

  /** Resolves when the prepared line is written. Where it rejects, the line is written as soon as that can be done. */
  write(prepared: PreparedLine): Promise<void> {
    if (this.#closed) return Promise.reject(this.#standing());
    const first = this.#outbox.queue(prepared.n);
    if (this.#down === undefined) return first ? this.#queue(prepared) : this.#settled();
    if (first) this.#owed.push(prepared);
    return Promise.reject(this.#standing());
  }

  /** The transaction that held the prepared line did not happen. Not to be said where nobody can tell. */
  abandon(prepared: PreparedLine): void {
    this.#outbox.settle(prepared.n);
  }

  /**
   * Outbox rows of this replica, in order: writes those that the log lacks, and resolves with the number up to which
   * every row is in the log and on the disk, to be marked in the store. Called at start with each batch of rows until
   * there is none, and with the empty batch last; later for rows that nobody could tell of.
   */
  async catchUp(rows: readonly { readonly n: number; readonly line: string }[]): Promise<number> {
    const [first, last] = [rows[0], rows.at(-1)];
    if (first === undefined || last === undefined) this.#outbox.endCatchUp();
    else if (this.#outbox.mustLearn(last.n) && this.#target.path !== undefined)
      this.#outbox.learn(readWrittenNumbers(this.#target.path, first.n));
    const lacking = rows.filter((row) => !this.#outbox.has(row.n));
    await Promise.all(lacking.map((row) => this.write({ n: row.n, ...parseStoredLine(row.line) })));
    for (const row of rows) this.#outbox.settle(row.n);
    await this.checkpoint();
    return this.#durable;
  }

  /** Keyed digest (HMAC-SHA-256, base64url) of a text in canonical form: no reader of the log can try values against it. */
  digest(canonical: string): string {
    return createHmac('sha256', this.#digestKey).update(canonical).digest('base64url');
  }

  /** Writes a checkpoint and resolves when all lines up to it are on the disk. */
  async checkpoint(): Promise<void> {
    this.#wantsCheckpoint = true;
    await this.#settled();
  }

  /** Resolves where lines can be written; rejects with the `AuditFault` that says why not, after trying once more. */
  async ready(): Promise<void> {
    await this.#settled();
  }

  /** Goes on in a new file where the old one was moved away: what a log rotation asks for. */
  async reopen(): Promise<void> {
    await this.#settled();
  }

  lag(): AuditLag {
    const waiting = (this.#group?.drafts.length ?? 0) + this.#owed.length;
    const lag = { waiting, unsigned: this.#chain.unsigned };
    return this.#down === undefined ? lag : { ...lag, downSinceMs: this.#down.sinceMs };
  }

  /** Writes what waits and a last checkpoint, and lets the file go. Rejects where that could not be written. */
  async close(): Promise<void> {
    if (this.#closed) return;
    clearInterval(this.#timer);
    try {
      await this.checkpoint();
    } finally {
      this.#closed = true;
      clearTimeout(this.#probe);
      this.#target.close();
    }
  }

  #queue(draft: Draft): Promise<void> {
    let group = this.#group;
    if (group === undefined) {
      group = { drafts: [], ...Promise.withResolvers<void>() };
      this.#group = group;
      void this.#schedule();
    }
    group.drafts.push(draft);
    return group.promise;
  }

  /** One pass over all that waits, behind the one that is under way. Never rejects. */
  #schedule(): Promise<void> {
    if (this.#scheduled) return this.#work;
    this.#scheduled = true;
    this.#work = this.#work
      // The end of this turn of the event loop: what else arrives in it joins the group.
      .then(() => new Promise<void>((resolve) => setImmediate(resolve)))
      .then(() => {
        this.#scheduled = false;
        return this.#pass();
      });
    return this.#work;
  }

  async #settled(): Promise<void> {
    if (this.#closed) throw this.#standing();
    await this.#schedule();
    await this.#syncing;
    if (this.#down !== undefined) throw this.#standing();
  }

  async #pass(): Promise<void> {
    const drafts = this.#group?.drafts ?? [];
    const group = this.#group;
    this.#group = undefined;
    const checkpoint = this.#wantsCheckpoint || this.#chain.isDue(drafts.length);
    this.#wantsCheckpoint = false;
    try {
      if (this.#down === undefined) await this.#chain.follow();
      else await this.#recover(this.#down);
      await this.#write(drafts, checkpoint);
      group?.resolve();
    } catch (error) {
      for (const draft of drafts) if (isPrepared(draft)) this.#owed.push(draft);
      this.#fail(error);
      group?.reject(this.#standing());
      return;
    }
    if (checkpoint) this.#startSync();
  }

  async #write(drafts: readonly Draft[], checkpoint: boolean): Promise<void> {
    await this.#chain.write(drafts, checkpoint);
    for (const { n } of drafts) if (n !== undefined) this.#outbox.settle(n);
  }

  /** Lines go on being written while the disk takes those of the checkpoint. */
  #startSync(): void {
    this.#syncing = this.#syncing
      .then(() => this.#chain.sync())
      .then((floor) => {
        this.#durable = floor;
      })
      .catch((error: unknown) => this.#fail(error));
  }

  async #recover(down: { readonly fault: AuditFault; readonly sinceMs: number }): Promise<void> {
    this.#target.repair(this.#nowMs());
    await this.#chain.follow();
    const owed = this.#owed;
    const since = new Date(down.sinceMs).toISOString();
    const { cause, code } = down.fault;
    const why = cause === undefined ? code : systemCode(cause);
    await this.#write([draftRecovered(this.#clock(), since, why), ...owed], true);
    this.#owed = this.#owed.slice(owed.length);
    this.#down = undefined;
    this.#startSync();
    this.#options.onChange?.(undefined);
  }

  #fail(error: unknown): void {
    const fault = asFault(error, this.#target.name);
    const before = this.#down;
    this.#down = { fault, sinceMs: before?.sinceMs ?? this.#nowMs() };
    if (before === undefined) this.#options.onChange?.(fault);
    clearTimeout(this.#probe);
    if (this.#closed) return;
    this.#probe = setTimeout(() => void this.#schedule(), this.#options.probeMs);
    this.#probe.unref();
  }

  #standing(): AuditFault {
    if (this.#closed) return new AuditFault('audit_closed', 'the audit log is closed');
    return this.#down?.fault ?? new AuditFault('audit_unavailable', 'the audit log cannot be written');
  }

  #tick(): void {
    const nowMs = this.#nowMs();
    if (this.#down === undefined && nowMs - this.#beatMs >= HEARTBEAT_MS) {
      this.#beatMs = nowMs;
      try {
        this.#target.heartbeat(nowMs);
      } catch (error) {
        this.#fail(error);
      }
    }
    if (this.#down !== undefined || this.#chain.unsigned === 0) return;
    this.#wantsCheckpoint = true;
    void this.#schedule();
  }
}

function isPrepared(draft: Draft): draft is PreparedLine {
  return draft.n !== undefined;
}

function asFault(error: unknown, name: string): AuditFault {
  if (error instanceof AuditFault) return error;
  return new AuditFault('audit_unavailable', `cannot write the audit log ${name}: ${systemCode(error)}`, error);
}
