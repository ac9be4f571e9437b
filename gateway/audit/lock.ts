import { randomBytes } from 'node:crypto';
import { linkSync, readFileSync, renameSync, statSync, unlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { AuditFault, systemCode } from './fault.ts';

/** A holder on another machine touches its lock with every heartbeat; one not touched for so long is dead. */
const FOREIGN_STALE_MS = 60_000;

/**
 * Keeps two processes from writing one file, by a lock file beside it that names its holder. One that a dead process
 * left is taken over: same machine and the process is gone (or its number is another process's by now), or another
 * machine and it was not touched for a minute.
 */
export class FileLock {
  readonly #path: string;
  readonly #text: string;

  private constructor(path: string, text: string) {
    this.#path = path;
    this.#text = text;
  }

  /** Throws `AuditFault` `audit_locked` where a living process holds it, `audit_unavailable` where it cannot be written. */
  static acquire(path: string, nowMs: number): FileLock {
    const text = JSON.stringify({
      pid: process.pid,
      started: startOf(process.pid),
      host: hostname(),
      token: randomBytes(12).toString('base64url'),
    });
    const own = `${path}.${randomBytes(6).toString('hex')}`;
    try {
      writeFileSync(own, text, { mode: 0o640, flag: 'wx' });
    } catch (error) {
      throw new AuditFault('audit_unavailable', `cannot write the lock file \`${path}\`: ${systemCode(error)}`, error);
    }
    try {
      // Two rounds: one that may find a stale lock and take it away, one that must find the place free.
      for (let round = 0; round < 2; round++) {
        // A link appears whole or not at all, so nobody ever reads half of a lock.
        if (tryLink(own, path)) return new FileLock(path, text);
        removeStale(path, nowMs);
      }
      throw new AuditFault('audit_locked', `another process took the lock \`${path}\` at the same moment`);
    } finally {
      unlinkSync(own);
    }
  }

  /** Touches the lock; false where it is no longer this process's. */
  heartbeat(nowMs: number): boolean {
    try {
      if (readFileSync(this.#path, 'utf8') !== this.#text) return false;
      utimesSync(this.#path, nowMs / 1000, nowMs / 1000);
      return true;
    } catch {
      return false;
    }
  }

  /** Puts the lock back where its file was removed, directory and all; false where another process has it now. */
  reclaim(): boolean {
    try {
      writeFileSync(this.#path, this.#text, { mode: 0o640, flag: 'wx' });
      return true;
    } catch (error) {
      if (systemCode(error) !== 'EEXIST') throw error;
      return readFileSync(this.#path, 'utf8') === this.#text;
    }
  }

  release(): void {
    try {
      if (readFileSync(this.#path, 'utf8') === this.#text) unlinkSync(this.#path);
    } catch (error) {
      // Gone already, with its directory: there is nothing left to release.
      if (systemCode(error) !== 'ENOENT') throw error;
    }
  }
}

function tryLink(from: string, to: string): boolean {
  try {
    linkSync(from, to);
    return true;
  } catch (error) {
    if (systemCode(error) === 'EEXIST') return false;
    throw new AuditFault('audit_unavailable', `cannot write the lock file \`${to}\`: ${systemCode(error)}`, error);
  }
}

function removeStale(path: string, nowMs: number): void {
  let text: string;
  let touchedMs: number;
  try {
    text = readFileSync(path, 'utf8');
    touchedMs = statSync(path).mtimeMs;
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return;
    throw new AuditFault('audit_unavailable', `cannot read the lock file \`${path}\`: ${systemCode(error)}`, error);
  }
  const holder = parseHolder(text);
  if (holder !== undefined && isAlive(holder, touchedMs, nowMs))
    throw new AuditFault(
      'audit_locked',
      `process ${holder.pid} on ${holder.host} writes this audit log (\`${path}\`); give each process a file of its own`,
    );
  // Moved, not deleted: of several processes that found the same stale lock, one moves it, and whoever moved a newer
  // one by mistake puts that back.
  const aside = `${path}.stale.${randomBytes(6).toString('hex')}`;
  try {
    renameSync(path, aside);
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return;
    throw new AuditFault('audit_unavailable', `cannot take over the lock \`${path}\`: ${systemCode(error)}`, error);
  }
  if (readFileSync(aside, 'utf8') !== text) tryLink(aside, path);
  unlinkSync(aside);
}

interface Holder {
  readonly pid: number;
  readonly started: string;
  readonly host: string;
}

function parseHolder(text: string): Holder | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (typeof value !== 'object' || value === null) return undefined;
  const { pid, started, host } = value as Partial<Record<keyof Holder, unknown>>;
  if (typeof pid !== 'number' || !Number.isSafeInteger(pid) || pid <= 0) return undefined;
  return { pid, started: String(started), host: String(host) };
}

function isAlive(holder: Holder, touchedMs: number, nowMs: number): boolean {
  if (holder.host !== hostname()) return nowMs - touchedMs < FOREIGN_STALE_MS;
  try {
    process.kill(holder.pid, 0);
  } catch (error) {
    // EPERM: it is there and belongs to somebody else.
    return systemCode(error) === 'EPERM';
  }
  return holder.started === startOf(holder.pid);
}

/** When a process began, in clock ticks since boot; empty where the system does not say (no /proc). */
function startOf(pid: number): string {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    // The second field is a name in brackets and may hold spaces; the start time is the 22nd.
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? '';
  } catch {
    return '';
  }
}
