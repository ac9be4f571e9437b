import type Database from 'better-sqlite3';
import { messageOf } from '../message-of.ts';
import { ARITY, type Value } from './lower.ts';
import { type Query, queriesOf } from './queries.ts';
import { type Cell, openRow, type Row } from './rows.ts';
import type { Sealer } from './seal.ts';
import { isRefusal } from './sqlite-error.ts';
import type { OpenFile } from './sqlite-file.ts';
import type { Ground, Handler } from './sqlite-ground.ts';
import { makeHandlers } from './sqlite-handlers.ts';
import { DONE, READ, type Reply, type Requests } from './sqlite-messages.ts';
import { Numbered } from './sqlite-numbered.ts';
import { makeTasks, type Task } from './sqlite-tasks.ts';
import type { TaskName } from './store-reads.ts';

type Read = (values: readonly Value[]) => readonly Row[];

/** An open file with all that is run on it. */
export interface Prepared {
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
  forget(): void;
}

/** Prepares every statement, once. */
export function prepare(file: OpenFile): Prepared {
  const { db, sealer } = file;
  const ground: Ground = { db, sealer, forget: [] };
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
    forget: () => {
      for (const forget of ground.forget) forget();
    },
  };
}

function prepareRead(db: Database.Database, query: Query, sealer: Sealer | undefined): Read {
  const statement = new Numbered<Cell[]>(db, query.sql).raw();
  const { sealed } = query;
  if (sealer === undefined || sealed === undefined) return (values) => statement.all(...values);
  return (values) => statement.all(...values).map((row) => openRow(row, sealed, sealer));
}

/** Answers the reads that stand before the first other request; returns how many there are. */
export function runReads(prepared: Prepared, messages: readonly Requests[], replies: Reply[]): number {
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
export function commit(prepared: Prepared, values: Requests, from: number, end: number, savepoints: boolean): Reply {
  if (savepoints) prepared.savepoint.run();
  const reply = operate(prepared, values, from, end);
  if (!savepoints) return reply;
  if (reply !== DONE) {
    prepared.backTo.run();
    prepared.forget();
  }
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

export function read(prepared: Prepared, values: Requests, from: number, end: number): Reply {
  const run = prepared.reads.get(String(values[from]));
  if (run === undefined) throw new TypeError(`unknown query ${values[from]}`);
  return run(values.slice(from + 1, end));
}

export function task(prepared: Prepared, values: Requests, from: number, end: number): Reply {
  const run = prepared.tasks[String(values[from]) as TaskName];
  return run(values.slice(from + 1, end));
}

/** Writes a page, which proves that the file can be written to. */
export function probe(prepared: Prepared): Reply {
  prepared.probe.run();
  return DONE;
}
