import { mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import type { ChainHead } from './chain-lines.ts';
import { AuditFault } from './fault.ts';
import { FileLock } from './lock.ts';
import { FileSink, type Sink, type SinkChange, StreamSink } from './sink.ts';
import { AuditState } from './state.ts';
import { readWrittenNumbers, replicaOf, rotatedName } from './tail.ts';

const STDOUT_FD = 1;

/** Where a log goes, and what is kept beside it. `head` and `lost` are what was found when it was opened. */
export interface Target {
  /** For messages. */
  readonly name: string;
  readonly state: AuditState;
  readonly head: ChainHead | undefined;
  /** The note says that the log had been there, but the file ends earlier or otherwise. */
  readonly lost: ChainHead | undefined;
  /** The first number that no earlier process can have given to a prepared line. */
  readonly firstNumber: number;
  /** The file's path; absent for a stream. */
  readonly path: string | undefined;
  readonly sink: () => Sink;
  readonly inspect: () => SinkChange;
  /** Opens what the path names now. Its head is `undefined` where that is a new file. */
  readonly reopen: () => ChainHead | undefined;
  /** Renames the file and opens a new one. */
  readonly rotate: (lastSeq: number) => void;
  /** Makes the target fit to be appended to after a fault: the lock is this process's, no part of a failed group is left. */
  readonly repair: (nowMs: number) => void;
  /** Throws `AuditFault` where the lock is no longer this process's. */
  readonly heartbeat: (nowMs: number) => void;
  readonly close: () => void;
}

/** Opens a target. Throws `AuditFault`, or the system's error where the file cannot be opened. */
export function openTarget(target: { readonly file: string } | 'stdout', nowMs: number): Target {
  return target === 'stdout' ? openStream() : openFile(target.file, nowMs);
}

function openStream(): Target {
  const sink = new StreamSink(STDOUT_FD);
  const state = AuditState.load(undefined);
  const nothing = (): undefined => undefined;
  return {
    name: 'on standard output',
    state,
    head: undefined,
    lost: undefined,
    firstNumber: state.reserve(1),
    path: undefined,
    sink: () => sink,
    inspect: () => 'none',
    reopen: nothing,
    rotate: nothing,
    repair: nothing,
    heartbeat: nothing,
    close: () => sink.close(),
  };
}

function openFile(path: string, nowMs: number): Target {
  // At the start a folder that is not there yet is made. One that goes while the log runs is not: somebody took it away.
  mkdirSync(dirname(path), { recursive: true, mode: 0o750 });
  const lock = FileLock.acquire(`${path}.lock`, nowMs);
  try {
    const state = AuditState.load(`${path}.state`);
    const { sink, tail } = FileSink.open(path);
    try {
      return fileTarget(path, lock, state, sink, tail.head);
    } catch (error) {
      sink.close();
      throw error;
    }
  } catch (error) {
    lock.release();
    throw error;
  }
}

function fileTarget(
  path: string,
  lock: FileLock,
  state: AuditState,
  first: FileSink,
  found: ChainHead | undefined,
): Target {
  let sink = first;
  let atLeast = 1;
  if (found !== undefined) {
    const replica = replicaOf(path);
    if (state.isNew) {
      if (replica === undefined) throw foreign(path);
      state.adopt(replica);
      // The note is lost: numbers up to the highest in the log were used, and some that only the store may hold.
      atLeast = readWrittenNumbers(path, 1).highest + state.blockSize;
    } else if (replica !== undefined && replica !== state.replica) {
      throw foreign(path);
    }
  }
  const noted = state.head;
  const behind =
    found !== undefined &&
    noted !== undefined &&
    (found.seq < noted.seq || (found.seq === noted.seq && found.hash !== noted.hash));
  const swap = (): ChainHead | undefined => {
    const opened = FileSink.open(path);
    const replica = opened.tail.head === undefined ? undefined : replicaOf(path);
    if (replica !== undefined && replica !== state.replica) {
      opened.sink.close();
      throw foreign(path);
    }
    sink.close();
    sink = opened.sink;
    return opened.tail.head;
  };
  return {
    name: `\`${path}\``,
    state,
    head: found ?? noted,
    lost: behind ? noted : undefined,
    firstNumber: state.reserve(atLeast),
    path,
    sink: () => sink,
    inspect: () => sink.inspect(),
    reopen: swap,
    rotate: (lastSeq) => {
      sink.moveTo(rotatedName(path, lastSeq));
      swap();
    },
    repair: (now) => {
      if (!lock.heartbeat(now) && !lock.reclaim()) throw lostLock(path);
      if (sink.isAtPath()) sink.restore();
    },
    heartbeat: (now) => {
      // Where the lock is gone with its directory, the next write finds that out and recovery makes it anew.
      if (!lock.heartbeat(now) && sink.isAtPath() && !lock.reclaim()) throw lostLock(path);
    },
    close: () => {
      sink.close();
      lock.release();
    },
  };
}

function foreign(path: string): AuditFault {
  return new AuditFault(
    'audit_foreign',
    `\`${path}\` is the audit log of another replica, or its note \`${path}.state\` is; move one of them away`,
  );
}

function lostLock(path: string): AuditFault {
  return new AuditFault('audit_locked', `another process took over the audit log \`${path}\``);
}
