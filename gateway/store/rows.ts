import type {
  ClaimRecord,
  ConfirmationRecord,
  CounterRecord,
  HoldRecord,
  OpenCount,
  RunRecord,
  SessionRecord,
  StepRecord,
  StoredAnswer,
  UndoRecord,
  WatchedRecord,
} from './port.ts';
import { rowKey, type SealedColumn } from './queries.ts';
import type { Sealer } from './seal.ts';

/** One column of a row, sealed ones already opened. */
export type Cell = string | number | null | Uint8Array;
export type Row = readonly Cell[];

/** The row with its sealed columns opened, as bytes. */
export function openRow(row: readonly Cell[], sealed: readonly SealedColumn[], sealer: Sealer): Row {
  const open = [...row];
  for (const { at, column, key } of sealed) {
    const cell = row[at];
    if (cell instanceof Uint8Array) open[at] = sealer.open(column, rowKey(...key.map((part) => row[part])), cell);
  }
  return open;
}

// The types of a row follow from the schema, which only this package writes: the readers below check the primitive type
// of each column, and trust that a state is one of the states that were put there.

function text(row: Row, at: number): string {
  const cell = row[at];
  if (typeof cell === 'string') return cell;
  if (cell instanceof Uint8Array) return Buffer.from(cell.buffer, cell.byteOffset, cell.byteLength).toString('utf8');
  throw new TypeError(`column ${at} of a stored row is no text`);
}

function num(row: Row, at: number): number {
  const cell = row[at];
  if (typeof cell === 'number') return cell;
  throw new TypeError(`column ${at} of a stored row is no number`);
}

function has(row: Row, at: number): boolean {
  const cell = row[at];
  return cell !== null && cell !== undefined;
}

function state<T extends string>(row: Row, at: number): T {
  return text(row, at) as T;
}

export function sessionOf(row: Row): SessionRecord {
  return {
    sid: text(row, 0),
    issuer: text(row, 1),
    caller: text(row, 2),
    session: text(row, 3),
    mode: state(row, 4),
    nonce: text(row, 5),
    audience: text(row, 6),
    ...(has(row, 7) ? { head: { step: num(row, 7), link: text(row, 8) } } : {}),
    headReport: JSON.parse(text(row, 9)),
    lateReports: has(row, 10) ? JSON.parse(text(row, 10)) : [],
    view: JSON.parse(text(row, 11)),
    version: num(row, 12),
    ...(has(row, 13) ? { frozen: text(row, 13) } : {}),
    openedAtMs: num(row, 14),
    usedAtMs: num(row, 15),
  };
}

export function stepOf(row: Row): StepRecord {
  const step = num(row, 1);
  const reportFrozen = has(row, 15) && step < num(row, 15);
  const late = num(row, 12) === 1;
  return {
    step,
    link: text(row, 2),
    body: text(row, 3),
    ...(has(row, 4) ? { token: text(row, 4) } : {}),
    ...reportOf(row, 5, 6),
    seen: num(row, 7) === 1,
    forwarded: num(row, 8) === 1,
    ...(has(row, 9) ? { fields: JSON.parse(text(row, 9)) } : {}),
    ...(has(row, 10) ? { undoArguments: text(row, 10) } : {}),
    undoAllowed: num(row, 11) === 1,
    reportFrozen,
    ...(reportFrozen ? { frozenReport: late ? reportOf(row, 13, 14) : reportOf(row, 5, 6) } : {}),
  };
}

function reportOf(row: Row, outcome: number, result: number): { outcome?: string; result?: string } {
  return {
    ...(has(row, outcome) ? { outcome: text(row, outcome) } : {}),
    ...(has(row, result) ? { result: text(row, result) } : {}),
  };
}

export function watchedOf(row: Row): WatchedRecord {
  return { tool: text(row, 1), step: num(row, 2), arguments: text(row, 3), result: text(row, 4) };
}

export function claimOf(row: Row): ClaimRecord {
  const answer = answerOf(row);
  return {
    link: text(row, 0),
    ...(has(row, 1) ? { scopeKey: text(row, 1) } : {}),
    fingerprint: text(row, 2),
    sid: text(row, 3),
    step: num(row, 4),
    tool: text(row, 5),
    caller: text(row, 6),
    agent: text(row, 7),
    ...(has(row, 8) ? { run: text(row, 8) } : {}),
    ...(has(row, 9) ? { undoes: num(row, 9) } : {}),
    writes: num(row, 10) === 1,
    runBy: state(row, 11),
    state: state(row, 12),
    ...(has(row, 13) ? { upstreamKey: text(row, 13) } : {}),
    ...(has(row, 24) ? { request: text(row, 24) } : {}),
    owner: text(row, 14),
    fence: num(row, 15),
    leaseUntilMs: num(row, 16),
    createdAtMs: num(row, 17),
    ...(has(row, 18) ? { settledAtMs: num(row, 18) } : {}),
    ...(answer === undefined ? {} : { answer }),
    ...(has(row, 19) ? { why: text(row, 19) } : {}),
  };
}

function answerOf(row: Row): StoredAnswer | undefined {
  if (!has(row, 20)) return undefined;
  if (text(row, 20) === 'tombstone') return { kind: 'tombstone', status: num(row, 21) };
  const body = row[23];
  if (!(body instanceof Uint8Array)) throw new TypeError('a kept answer has no body');
  return {
    kind: 'kept',
    status: num(row, 21),
    ...(has(row, 22) ? { contentType: text(row, 22) } : {}),
    body,
  };
}

export function confirmationOf(row: Row): ConfirmationRecord {
  return {
    id: text(row, 0),
    sid: text(row, 1),
    session: text(row, 2),
    caller: text(row, 3),
    mode: state(row, 4),
    point: state(row, 5),
    step: num(row, 6),
    link: text(row, 7),
    tool: text(row, 8),
    agent: text(row, 9),
    arguments: text(row, 10),
    shown: text(row, 11),
    expiresMs: num(row, 12),
    state: state(row, 13),
    callDigest: text(row, 14),
    asked: text(row, 15),
    display: text(row, 16),
    ...(has(row, 17) ? { approver: text(row, 17) } : {}),
    ...(has(row, 18) ? { note: text(row, 18) } : {}),
    createdAtMs: num(row, 19),
    ...(has(row, 20) ? { decidedAtMs: num(row, 20) } : {}),
  };
}

export function runOf(row: Row): RunRecord {
  return {
    caller: text(row, 0),
    run: text(row, 1),
    sid: text(row, 2),
    agent: text(row, 3),
    state: state(row, 4),
    ...(has(row, 5) ? { why: text(row, 5) } : {}),
    ...(has(row, 6) ? { left: text(row, 6) } : {}),
    ...(has(row, 7) ? { owner: text(row, 7) } : {}),
    ...(has(row, 8) ? { leaseUntilMs: num(row, 8) } : {}),
    updatedAtMs: num(row, 9),
  };
}

export function undoOf(row: Row): UndoRecord {
  return {
    caller: text(row, 0),
    run: text(row, 1),
    step: num(row, 2),
    tool: text(row, 3),
    undoTool: text(row, 4),
    ...(has(row, 5) ? { arguments: text(row, 5) } : {}),
    state: state(row, 6),
    round: num(row, 7),
    attempts: num(row, 8),
    dueAtMs: num(row, 9),
    ...(has(row, 10) ? { why: text(row, 10) } : {}),
  };
}

export function counterOf(row: Row): readonly [string, CounterRecord] {
  return [text(row, 0), { settled: text(row, 1), held: text(row, 2) }];
}

export function holdOf(row: Row): HoldRecord {
  return { bucket: text(row, 0), link: text(row, 1), amount: text(row, 2), atMs: num(row, 3), state: state(row, 4) };
}

export function outboxOf(row: Row): { readonly n: number; readonly line: string } {
  return { n: num(row, 0), line: text(row, 1) };
}

export function viewOf(row: Row): SessionRecord['view'] {
  return JSON.parse(text(row, 0));
}

export function receiptOf(row: Row): { readonly step: number; readonly link: string } {
  return { step: num(row, 0), link: text(row, 1) };
}

export function openCountOf(row: Row): OpenCount {
  const what = text(row, 0);
  if (what !== 'claim' && what !== 'undo' && what !== 'confirmation')
    throw new TypeError(`there is no count of \`${what}\``);
  return { what, state: text(row, 1), count: Number(row[2]) };
}
