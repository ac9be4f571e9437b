import { mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import type Database from 'better-sqlite3';
import { StoreFault } from './port.ts';
import { codeOf, describeFault, isBusy } from './sqlite-error.ts';
import { identityOf, openFile, takeOwnership } from './sqlite-file.ts';
import {
  COMMIT,
  DONE,
  type FaultReply,
  READ,
  READY,
  type Reply,
  type Requests,
  TASK,
  type WorkerInput,
} from './sqlite-messages.ts';
import { commit, type Prepared, prepare, probe, read, runReads, task } from './sqlite-requests.ts';

const FIRST_BACKOFF_MS = 50;
const LONGEST_BACKOFF_MS = 2_000;

/** Runs groups of requests on the file, and opens it anew once what was wrong with it is repaired. */
export class SqliteEngine {
  readonly #path: string;
  readonly #key: Uint8Array | undefined;
  #secret: Uint8Array | undefined;
  #lock: Database.Database | undefined;
  #lockIdentity: string | undefined;
  #prepared: Prepared | undefined;
  #fault: FaultReply | undefined;
  #backoffMs = FIRST_BACKOFF_MS;
  #retryAtMs = 0;

  constructor(input: WorkerInput) {
    this.#path = input.path;
    this.#key = input.key;
    this.#secret = input.expectSecret;
  }

  /** Opens the file; returns the store's secret. Throws what makes it unusable. */
  open(): Uint8Array {
    // Only a first opening makes what is missing: later, an empty store in its place would let every call run anew.
    const mayCreate = this.#secret === undefined;
    if (mayCreate) mkdirSync(dirname(this.#path), { recursive: true });
    this.#own();
    const file = openFile(this.#path, {
      mayCreate,
      key: this.#key,
      expectSecret: this.#secret,
    });
    try {
      this.#prepared = prepare(file);
    } catch (error) {
      file.db.close();
      throw error;
    }
    this.#secret = file.secret;
    return file.secret;
  }

  close(): void {
    this.#prepared?.file.db.close();
    this.#prepared = undefined;
    this.#lock?.close();
    this.#lock = undefined;
  }

  /**
   * Answers every request of the messages in their order. `early` gets the replies to reads that stand before the first
   * write, which need not wait for the disk.
   */
  run(messages: readonly Requests[], early: (replies: readonly Reply[]) => void): readonly Reply[] {
    const prepared = this.#usable(messages);
    if (prepared === undefined) return this.#faults(messages, 0);
    const replies: Reply[] = [];
    let gone = 0;
    try {
      gone = runReads(prepared, messages, replies);
      if (gone > 0) early(replies.splice(0));
      // A savepoint copies every page that is then written, and nearly no commit is taken back: so a group runs without
      // them, and from the start with them once one of its commits has to be.
      if (!this.#runGroup(prepared, messages, gone, replies, false)) {
        prepared.rollback.run();
        prepared.forget();
        replies.length = 0;
        this.#runGroup(prepared, messages, gone, replies, true);
      }
    } catch (error) {
      this.#fail(error, false);
      return this.#faults(messages, gone);
    }
    try {
      if (prepared.file.db.inTransaction) prepared.commit.run();
    } catch (error) {
      // What was written to the log but not proved to be on the disk may still come back when the log is read again.
      this.#fail(error, codeOf(error).startsWith('SQLITE_IOERR'));
      return this.#faults(messages, gone);
    }
    this.#backoffMs = FIRST_BACKOFF_MS;
    return replies;
  }

  /** Runs all but the first `skip` requests in a transaction; false where one has to be taken back and cannot be alone. */
  #runGroup(
    prepared: Prepared,
    messages: readonly Requests[],
    skip: number,
    replies: Reply[],
    savepoints: boolean,
  ): boolean {
    let index = 0;
    for (const requests of messages) {
      for (let at = 0; at < requests.length; ) {
        const kind = requests[at];
        const from = at + 2;
        at = from + Number(requests[at + 1]);
        index += 1;
        if (index <= skip) continue;
        if (index === skip + 1) prepared.begin.run();
        if (kind === COMMIT) {
          const reply = commit(prepared, requests, from, at, savepoints);
          if (reply !== DONE && !savepoints) return false;
          replies.push(reply);
        } else if (kind === READ) replies.push(read(prepared, requests, from, at));
        else if (kind === TASK) replies.push(task(prepared, requests, from, at));
        else replies.push(probe(prepared));
      }
    }
    return true;
  }

  #own(): void {
    const identity = identityOf(`${this.#path}-owner`);
    if (this.#lock !== undefined && identity !== undefined && identity === this.#lockIdentity) return;
    this.#lock?.close();
    this.#lock = undefined;
    this.#lock = takeOwnership(this.#path);
    this.#lockIdentity = identityOf(`${this.#path}-owner`);
  }

  /** The open file, opened anew where it is time to try; undefined where it cannot be used now. */
  #usable(messages: readonly Requests[]): Prepared | undefined {
    const open = this.#prepared;
    if (open !== undefined) {
      // SQLite goes on writing to a file that was moved away or replaced, and nobody would find what it stored.
      if (identityOf(this.#path) === open.file.identity) return open;
      this.#fail(new StoreFault(`the store's file \`${this.#path}\` was moved or replaced; put it back`), false);
    }
    const asked = messages.some((requests) => requests[0] === READY);
    if (!asked && performance.now() < this.#retryAtMs) return undefined;
    try {
      this.open();
    } catch (error) {
      this.#fail(error, false);
    }
    return this.#prepared;
  }

  /** Remembers why, and closes the file unless it is only busy. */
  #fail(error: unknown, maybe: boolean): void {
    const prepared = this.#prepared;
    this.#fault = { fault: describeFault(error, this.#path), maybe };
    if (prepared?.file.db.inTransaction) {
      try {
        prepared.rollback.run();
        prepared.forget();
      } catch {
        // The file is closed below, which ends the transaction too.
        this.#closeFile();
      }
    }
    if (prepared !== undefined && isBusy(error)) return;
    this.#closeFile();
    this.#retryAtMs = performance.now() + this.#backoffMs;
    this.#backoffMs = Math.min(this.#backoffMs * 2, LONGEST_BACKOFF_MS);
  }

  #closeFile(): void {
    this.#prepared?.file.db.close();
    this.#prepared = undefined;
  }

  /** The fault for every request but the first `gone`, which were answered. */
  #faults(messages: readonly Requests[], gone: number): readonly Reply[] {
    const fault = this.#fault ?? { fault: `\`${this.#path}\` cannot be used`, maybe: false };
    let count = 0;
    for (const requests of messages) {
      for (let at = 0; at < requests.length; at += 2 + Number(requests[at + 1])) count += 1;
    }
    return Array.from({ length: count - gone }, () => fault);
  }
}
