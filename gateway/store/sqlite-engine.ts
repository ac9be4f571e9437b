import { mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import Database from 'better-sqlite3';
import { ARITY, type Value } from './lower.ts';
import { StoreFault, StoreSetupError } from './port.ts';
import { type Query, queriesOf } from './queries.ts';
import { type Cell, openRow, type Row } from './rows.ts';
import type { Sealer } from './seal.ts';
import { identityOf, type OpenFile, openFile, takeOwnership } from './sqlite-file.ts';
import type { Handler } from './sqlite-ground.ts';
import { makeHandlers } from './sqlite-handlers.ts';
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
import { Numbered } from './sqlite-numbered.ts';
import { makeTasks, type Task } from './sqlite-tasks.ts';
import type { TaskName } from './store-reads.ts';

const FIRST_BACKOFF_MS = 50;
const LONGEST_BACKOFF_MS = 2_000;

type Read = (values: readonly Value[]) => readonly Row[];

interface Prepared {
  readonly file: OpenFile;
  readonly handlers: readonly (Handler | undefined)[];
  readonly reads: ReadonlyMap<string, Read>;
  readonly tasks: Readonly<Record<TaskName, Task>>;
  readonly begin: Database.Statement;
  readonly commit: Database.Statement;
  readonly rollback: Database.Statement;
  readonly savepoint: Database.Statement;
  readonly release: Database.Statement;
  readonly backTo: Database.Statement;
  readonly probe: Database.Statement;
}

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

function prepare(file: OpenFile): Prepared {
  const { db, sealer } = file;
  const ground = { db, sealer };
  const reads = Object.entries(queriesOf('sqlite')).map(
    ([name, query]) => [name, prepareRead(db, query, sealer)] as const,
  );
  return {
    file,
    handlers: makeHandlers(ground),
    reads: new Map(reads),
    tasks: makeTasks(ground),
    begin: db.prepare('BEGIN IMMEDIATE'),
    commit: db.prepare('COMMIT'),
    rollback: db.prepare('ROLLBACK'),
    savepoint: db.prepare('SAVEPOINT one'),
    release: db.prepare('RELEASE one'),
    backTo: db.prepare('ROLLBACK TO one'),
    probe: db.prepare("UPDATE meta SET value = value WHERE name = 'probe'"),
  };
}

function prepareRead(db: Database.Database, query: Query, sealer: Sealer | undefined): Read {
  const statement = new Numbered<Cell[]>(db, query.sql).raw();
  const { sealed } = query;
  if (sealer === undefined || sealed === undefined) return (values) => statement.all(...values);
  return (values) => statement.all(...values).map((row) => openRow(row, sealed, sealer));
}

/** Answers the reads that stand before the first other request; returns how many there are. */
function runReads(prepared: Prepared, messages: readonly Requests[], replies: Reply[]): number {
  for (const requests of messages) {
    for (let at = 0; at < requests.length; ) {
      if (requests[at] !== READ) return replies.length;
      const from = at + 2;
      at = from + Number(requests[at + 1]);
      replies.push(read(prepared, requests, from, at));
    }
  }
  return replies.length;
}

/**
 * One commit. With savepoints it happens as a whole, or is taken back alone; without, whoever gets anything but DONE takes
 * back all of the transaction.
 */
function commit(prepared: Prepared, values: Requests, from: number, end: number, savepoints: boolean): Reply {
  if (savepoints) prepared.savepoint.run();
  const reply = operate(prepared, values, from, end);
  if (!savepoints) return reply;
  if (reply !== DONE) prepared.backTo.run();
  prepared.release.run();
  return reply;
}

function operate(prepared: Prepared, values: Requests, from: number, end: number): Reply {
  let operation = 0;
  try {
    for (let at = from; at < end; operation += 1) {
      const code = Number(values[at]);
      const handler = prepared.handlers[code];
      if (handler === undefined) throw new TypeError(`unknown operation ${code}`);
      const conflict = handler(values, at + 1);
      if (conflict !== undefined) return `${operation}:${conflict}`;
      at += 1 + (ARITY[code] ?? 0);
    }
    return DONE;
  } catch (error) {
    if (!isRefusal(error)) throw error;
    return { fault: `the store refuses operation ${operation}: ${messageOf(error)}`, maybe: false };
  }
}

function read(prepared: Prepared, values: Requests, from: number, end: number): Reply {
  const run = prepared.reads.get(String(values[from]));
  if (run === undefined) throw new TypeError(`unknown query ${values[from]}`);
  return run(values.slice(from + 1, end));
}

function task(prepared: Prepared, values: Requests, from: number, end: number): Reply {
  const run = prepared.tasks[String(values[from]) as TaskName];
  return run(values.slice(from + 1, end));
}

function probe(prepared: Prepared): Reply {
  prepared.probe.run();
  return DONE;
}

/** An error of one commit's own, which says nothing of the store. */
function isRefusal(error: unknown): boolean {
  if (error instanceof Database.SqliteError) return error.code.startsWith('SQLITE_CONSTRAINT');
  return !(error instanceof StoreFault);
}

function isBusy(error: unknown): boolean {
  return codeOf(error).startsWith('SQLITE_BUSY');
}

function codeOf(error: unknown): string {
  return error instanceof Database.SqliteError ? error.code : '';
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

const FAULTS: readonly (readonly [code: string, sentence: string])[] = [
  ['SQLITE_BUSY', 'is locked by another process'],
  ['SQLITE_READONLY', 'cannot be written to (read-only)'],
  ['SQLITE_FULL', 'cannot grow: the disk is full'],
  ['SQLITE_CANTOPEN', 'cannot be opened; look at its directory and its permissions'],
  ['SQLITE_CORRUPT', 'is damaged; restore it from a backup'],
  ['SQLITE_NOTADB', 'is no SQLite file'],
  ['SQLITE_IOERR', 'cannot be read or written'],
];

/** What is wrong with the file, in a sentence. */
export function describeFault(error: unknown, path: string): string {
  if (error instanceof StoreFault || error instanceof StoreSetupError) return error.message;
  const known = FAULTS.find(([code]) => codeOf(error).startsWith(code));
  return known === undefined
    ? `\`${path}\` cannot be used: ${messageOf(error)}`
    : `\`${path}\` ${known[1]} (${codeOf(error)})`;
}
