import { randomBytes } from 'node:crypto';
import { closeSync, fsyncSync, openSync, readFileSync, renameSync, writeSync } from 'node:fs';
import type { ChainHead } from './chain-lines.ts';
import { AuditFault, systemCode } from './fault.ts';

/** Numbers of prepared lines are set aside in blocks, so that none is used twice even where the log itself was lost. */
const BLOCK = 1_000_000;

/** What is kept beside the log: who writes it, and where it had got to at its last checkpoint. */
interface Kept {
  readonly replica: string;
  /** Numbers below this one may have been used. */
  readonly reserved: number;
  readonly head?: ChainHead;
  /** Every prepared line up to this number is in the log. */
  readonly written: number;
}

/** The note beside a log file. Without a path nothing outlives the process: each start is a new replica. */
export class AuditState {
  readonly #path: string | undefined;
  #kept: Kept;

  /** There was no note: the replica id is a new one, unless the log itself names one (`adopt`). */
  readonly isNew: boolean;

  private constructor(path: string | undefined, kept: Kept, isNew: boolean) {
    this.#path = path;
    this.isNew = isNew;
    this.#kept = kept;
  }

  /** Reads the note, or begins one with a new replica id. Throws `AuditFault` where it can be neither read nor written. */
  static load(path: string | undefined): AuditState {
    const kept = path === undefined ? undefined : readKept(path);
    const replica = randomBytes(12).toString('base64url');
    return new AuditState(path, kept ?? { replica, reserved: 1, written: 0 }, kept === undefined);
  }

  get blockSize(): number {
    return BLOCK;
  }

  get replica(): string {
    return this.#kept.replica;
  }

  get head(): ChainHead | undefined {
    return this.#kept.head;
  }

  /** Takes the name that a log file has where the note beside it was lost. */
  adopt(replica: string): void {
    this.#kept = { ...this.#kept, replica };
  }

  /** The first number of a new block, which is on disk as used before this returns. */
  reserve(atLeast: number): number {
    const first = Math.max(this.#kept.reserved, atLeast);
    this.#save({ ...this.#kept, reserved: first + BLOCK });
    return first;
  }

  /** The end of the block that the number is in. */
  get reservedTo(): number {
    return this.#kept.reserved;
  }

  get written(): number {
    return this.#kept.written;
  }

  /** Notes where the log is, after what it notes is on disk. */
  saveHead(head: ChainHead, written: number): void {
    this.#save({ ...this.#kept, head, written });
  }

  #save(kept: Kept): void {
    if (this.#path !== undefined) {
      const next = `${this.#path}.new`;
      try {
        const fd = openSync(next, 'w', 0o640);
        try {
          writeSync(fd, `${JSON.stringify(kept)}\n`);
          if (kept.reserved !== this.#kept.reserved) fsyncSync(fd);
        } finally {
          closeSync(fd);
        }
        renameSync(next, this.#path);
      } catch (error) {
        throw new AuditFault('audit_unavailable', `cannot write \`${this.#path}\`: ${systemCode(error)}`, error);
      }
    }
    this.#kept = kept;
  }
}

function readKept(path: string): Kept | undefined {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return undefined;
    throw new AuditFault('audit_unavailable', `cannot read \`${path}\`: ${systemCode(error)}`, error);
  }
  // A crash of the machine may leave a file without its content; then the log itself says who writes it.
  return text.replaceAll('\0', '').trim() === '' ? undefined : parseKept(text, path);
}

function parseKept(text: string, path: string): Kept {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    value = undefined;
  }
  const { replica, reserved, head, written } = (value ?? {}) as Partial<Record<keyof Kept, unknown>>;
  if (typeof replica !== 'string' || replica === '' || !Number.isSafeInteger(reserved))
    throw new AuditFault(
      'audit_foreign',
      `\`${path}\` is not the note of an audit log; restore it, or move it and the log away to begin a new chain`,
    );
  const kept = { replica, reserved: Number(reserved), written: typeof written === 'number' ? written : 0 };
  const { seq, hash } = (head ?? {}) as Partial<Record<keyof ChainHead, unknown>>;
  return typeof seq === 'number' && typeof hash === 'string' ? { ...kept, head: { seq, hash } } : kept;
}
