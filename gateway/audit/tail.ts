import { fstatSync, ftruncateSync, readdirSync, readSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import type { ChainHead } from './chain-lines.ts';
import { AuditFault } from './fault.ts';
import { hashLine } from './line.ts';
import { LINE_MAX_BYTES, readLines } from './read-lines.ts';

const NEWLINE = 0x0a;

/** Where a file ends, once a line that was cut off by a crash is taken away. */
export interface Tail {
  /** Bytes up to the last newline. */
  readonly size: number;
  /** The newest line; absent in an empty file. */
  readonly head?: ChainHead;
  /** Bytes of a line without an end, which were removed. */
  readonly removedBytes: number;
}

/**
 * Ends the file after its last whole line and reads that line. A part of a line is what a crash in the middle of a write
 * leaves; nobody was told that it was written. Throws `AuditFault` `audit_foreign` where the last line is none of a log.
 */
export function repairTail(fd: number, path: string): Tail {
  const { size } = fstatSync(fd);
  const end = lastNewlineBefore(fd, size) + 1;
  if (end < size) ftruncateSync(fd, end);
  const removedBytes = size - end;
  if (end === 0) return { size: 0, removedBytes };
  const start = lastNewlineBefore(fd, end - 1) + 1;
  if (end - start > LINE_MAX_BYTES) throw foreign(path);
  const bytes = Buffer.alloc(end - 1 - start);
  readSync(fd, bytes, 0, bytes.length, start);
  const text = bytes.toString('utf8');
  const line = parseChainLine(text);
  if (line === undefined) throw foreign(path);
  return { size: end, head: { seq: line.seq, hash: hashLine(text) }, removedBytes };
}

function foreign(path: string): AuditFault {
  return new AuditFault(
    'audit_foreign',
    `the last line of \`${path}\` is not one of an audit log; move the file away to go on in a new one`,
  );
}

/** Offset of the last newline before `end`; -1 where there is none. */
function lastNewlineBefore(fd: number, end: number): number {
  const chunk = Buffer.alloc(Math.min(65_536, end));
  for (let to = end; to > 0; to -= chunk.length) {
    const from = Math.max(0, to - chunk.length);
    const read = readSync(fd, chunk, 0, to - from, from);
    const at = chunk.subarray(0, read).lastIndexOf(NEWLINE);
    if (at !== -1) return from + at;
  }
  return -1;
}

/** What the log itself reads of its lines. */
export interface ChainLine {
  readonly seq: number;
  readonly prev: string;
  readonly event: string;
  readonly members: Readonly<Record<string, unknown>>;
}

/** A line's text in, its place and members out; `undefined` where it is none of a log. */
export function parseChainLine(text: string): ChainLine | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
  const members = value as Readonly<Record<string, unknown>>;
  const { seq, prev, event } = members;
  if (typeof seq !== 'number' || !Number.isSafeInteger(seq) || seq < 0) return undefined;
  if (typeof prev !== 'string' || typeof event !== 'string') return undefined;
  return { seq, prev, event, members };
}

/** The replica whose log a file is: its first `open` or checkpoint line names it. */
export function replicaOf(path: string): string | undefined {
  for (const line of readLines(path)) {
    const { event, members } = parseChainLine(line.text) ?? {};
    const replica = members?.['replica'];
    if ((event === 'open' || event === 'checkpoint') && typeof replica === 'string') return replica;
  }
  return undefined;
}

/** Names of files that were rotated away from `path`, newest first. */
function rotatedFiles(path: string): readonly string[] {
  const prefix = `${basename(path)}.`;
  return readdirSync(dirname(path))
    .filter((name) => name.startsWith(prefix) && isDigits(name.slice(prefix.length)))
    .sort()
    .reverse()
    .map((name) => join(dirname(path), name));
}

/** The name that a file gets when it is rotated away; names sort as the chain goes. */
export function rotatedName(path: string, lastSeq: number): string {
  return `${path}.${String(lastSeq).padStart(12, '0')}`;
}

function isDigits(text: string): boolean {
  if (text.length < 12) return false;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    if (unit < 0x30 || unit > 0x39) return false;
  }
  return true;
}

/** Which prepared lines stand in the log already. */
export interface WrittenNumbers {
  /** All up to this one do. */
  readonly floor: number;
  /** These do, above the floor. */
  readonly above: ReadonlySet<number>;
  /** The highest of all. */
  readonly highest: number;
}

/**
 * Reads which numbered lines the log holds: the file, and rotated ones before it as far back as needed to know of
 * `from` and all after it.
 */
export function readWrittenNumbers(path: string, from: number): WrittenNumbers {
  const above = new Set<number>();
  let floor = 0;
  let highest = 0;
  for (const file of [path, ...rotatedFiles(path)]) {
    let first = true;
    let preparedAtStart = Number.POSITIVE_INFINITY;
    for (const { text } of readLines(file)) {
      const line = parseNumbered(text);
      if (first) preparedAtStart = line?.prepared ?? preparedAtStart;
      first = false;
      if (line?.written !== undefined) floor = Math.max(floor, line.written);
      if (line?.n === undefined) continue;
      above.add(line.n);
      highest = Math.max(highest, line.n);
    }
    highest = Math.max(highest, floor);
    // When this file was begun no number from `from` on had been given out: earlier files have none of them.
    if (preparedAtStart < from) break;
  }
  for (const n of above) if (n <= floor) above.delete(n);
  return { floor, above, highest };
}

interface NumberedLine {
  readonly n?: number;
  readonly written?: number;
  readonly prepared?: number;
}

function parseNumbered(text: string): NumberedLine | undefined {
  // Most lines of a log without an outbox have neither, and parsing them would be the whole cost.
  if (!text.includes('"n":') && !text.includes('"written":')) return undefined;
  const { event, members } = parseChainLine(text) ?? {};
  const n = members?.['n'];
  const written = members?.['written'];
  const prepared = members?.['prepared'];
  const tells = event === 'open' || event === 'checkpoint';
  return {
    ...(typeof n === 'number' ? { n } : {}),
    ...(tells && typeof written === 'number' ? { written } : {}),
    ...(tells && typeof prepared === 'number' ? { prepared } : {}),
  };
}
