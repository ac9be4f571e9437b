import {
  closeSync,
  fdatasync,
  fstatSync,
  ftruncateSync,
  openSync,
  renameSync,
  statSync,
  write,
  writeSync,
} from 'node:fs';
import { systemCode } from './fault.ts';
import { repairTail, type Tail } from './tail.ts';

/** How what stands at the path differs from what was written last. */
export type SinkChange = 'none' | 'replaced' | 'truncated';

/** Where lines go. Nothing here knows of chains; one call at a time. */
export interface Sink {
  /** Whether the target is still what it was. Throws the system's error where it is gone. */
  readonly inspect: () => SinkChange;
  /** Appends all of it, or throws and leaves the target as it was (so far as its kind allows: see `owes`). */
  readonly append: (bytes: Buffer) => Promise<void>;
  /** A group broke off that could not be taken back; the next `append` finishes it first. */
  readonly owes: () => boolean;
  /** Resolves when all that was appended is on the disk. */
  readonly sync: () => Promise<void>;
  readonly size: () => number;
  readonly close: () => void;
}

/**
 * Appending to a file only copies into the page cache: a few microseconds, where handing it to another thread costs
 * fifty. A disk under pressure makes the copying wait, though, and then the event loop must not: after a write that took
 * this long, writes go by another thread for a while.
 */
const SLOW_WRITE_MS = 4;
const SLOW_FOR_MS = 5_000;

/** A file that lines are appended to. */
export class FileSink implements Sink {
  readonly path: string;
  readonly #fd: number;
  readonly #inode: string;
  readonly #regular: boolean;
  #size: number;
  #slowUntilMs = 0;

  private constructor(path: string, fd: number, size: number) {
    const stat = fstatSync(fd);
    this.path = path;
    this.#fd = fd;
    this.#inode = `${stat.dev}:${stat.ino}`;
    this.#regular = stat.isFile();
    this.#size = size;
  }

  /** Opens or makes the file and repairs its end. Throws the system's error, or `AuditFault` `audit_foreign`. */
  static open(path: string): { readonly sink: FileSink; readonly tail: Tail } {
    // Read as well, for the repair of its end; O_APPEND, so that what truncates the file under us moves our writes too.
    const fd = openSync(path, 'a+', 0o640);
    try {
      const tail = fstatSync(fd).isFile() ? repairTail(fd, path) : { size: 0, removedBytes: 0 };
      return { sink: new FileSink(path, fd, tail.size), tail };
    } catch (error) {
      closeSync(fd);
      throw error;
    }
  }

  /** True where the path still names the file that is open. */
  isAtPath(): boolean {
    const stat = statSync(this.path, { throwIfNoEntry: false });
    return stat !== undefined && `${stat.dev}:${stat.ino}` === this.#inode;
  }

  inspect(): SinkChange {
    // Asked before every group: writing on into a file that was moved or deleted would succeed and be lost.
    const stat = statSync(this.path, { throwIfNoEntry: false });
    if (stat === undefined || `${stat.dev}:${stat.ino}` !== this.#inode) return 'replaced';
    if (!this.#regular) return 'none';
    if (stat.size < this.#size) return 'truncated';
    // What somebody else appended stays, for verification to show; a group of ours that fails is cut off behind it.
    this.#size = stat.size;
    return 'none';
  }

  /** Takes away what a group that failed may have left, where that could not be done at once. */
  restore(): void {
    if (this.#regular && fstatSync(this.#fd).size > this.#size) ftruncateSync(this.#fd, this.#size);
  }

  owes(): boolean {
    return false;
  }

  async append(bytes: Buffer): Promise<void> {
    try {
      const beganMs = performance.now();
      if (beganMs < this.#slowUntilMs) {
        await writeAll(this.#fd, bytes);
      } else {
        // A disk that is nearly full takes a part and says so only at the next write.
        for (let at = 0; at < bytes.length; ) at += writeSync(this.#fd, bytes, at);
        const endedMs = performance.now();
        if (endedMs - beganMs > SLOW_WRITE_MS) this.#slowUntilMs = endedMs + SLOW_FOR_MS;
      }
      this.#size += bytes.length;
    } catch (error) {
      // What was written of the group is taken back: those lines are told to be not written.
      if (this.#regular) truncateQuietly(this.#fd, this.#size);
      throw error;
    }
  }

  sync(): Promise<void> {
    if (!this.#regular) return Promise.resolve();
    return new Promise((resolve, reject) => {
      fdatasync(this.#fd, (error) => (error === null || error === undefined ? resolve() : reject(error)));
    });
  }

  size(): number {
    return this.#size;
  }

  /** Gives the file another name; it stays open. */
  moveTo(path: string): void {
    renameSync(this.path, path);
  }

  close(): void {
    closeSync(this.#fd);
  }
}

/** A stream that cannot be taken back or asked for its size: standard output. */
export class StreamSink implements Sink {
  readonly #fd: number;
  /** What is left of a group that broke off: it is finished first, so that no half line stands before a whole one. */
  #left: Buffer = Buffer.alloc(0);
  #size = 0;

  constructor(fd: number) {
    this.#fd = fd;
  }

  inspect(): SinkChange {
    return 'none';
  }

  owes(): boolean {
    return this.#left.length > 0;
  }

  async append(bytes: Buffer): Promise<void> {
    const all = this.#left.length === 0 ? bytes : Buffer.concat([this.#left, bytes]);
    const progress = { written: 0 };
    try {
      await writeAll(this.#fd, all, progress);
      this.#left = Buffer.alloc(0);
      this.#size += bytes.length;
    } catch (error) {
      // A group that had begun is finished later; one that had not is forgotten.
      const begun = progress.written > this.#left.length;
      this.#left = begun ? all.subarray(progress.written) : this.#left.subarray(progress.written);
      throw error;
    }
  }

  sync(): Promise<void> {
    return Promise.resolve();
  }

  size(): number {
    return this.#size;
  }

  close(): void {
    // Standard output belongs to the process.
    this.#left = Buffer.alloc(0);
  }
}

const FULL_PIPE_WAIT_MS = 5;
const FULL_PIPE_TRIES = 400;

async function writeAll(fd: number, bytes: Buffer, progress = { written: 0 }): Promise<void> {
  let tries = 0;
  while (progress.written < bytes.length) {
    try {
      const count = await writeSome(fd, bytes, progress.written);
      progress.written += count;
      tries = 0;
    } catch (error) {
      // A pipe whose reader is slow, where somebody made it non-blocking.
      if (systemCode(error) !== 'EAGAIN' || ++tries > FULL_PIPE_TRIES) throw error;
      await new Promise((resolve) => setTimeout(resolve, FULL_PIPE_WAIT_MS));
    }
  }
}

function writeSome(fd: number, bytes: Buffer, from: number): Promise<number> {
  return new Promise((resolve, reject) => {
    write(fd, bytes, from, bytes.length - from, null, (error, count) => (error ? reject(error) : resolve(count)));
  });
}

function truncateQuietly(fd: number, size: number): void {
  try {
    ftruncateSync(fd, size);
  } catch {
    // The write's own error says what is wrong, and recovery takes the rest away before anything is written again.
  }
}
