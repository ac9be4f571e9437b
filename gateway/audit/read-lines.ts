import { isUtf8 } from 'node:buffer';
import { closeSync, openSync, readSync } from 'node:fs';

const CHUNK_BYTES = 1 << 18;
/** No line of this log comes near; what does is no line, and must not fill the memory. */
export const LINE_MAX_BYTES: number = 8 << 20;
const NEWLINE = 0x0a;

/** One line of a file as it was read. */
export interface ReadLine {
  readonly text: string;
  /** Offset of its first byte. */
  readonly at: number;
  /** It ends with a newline. */
  readonly whole: boolean;
  /** It cannot be a line of a log: not UTF-8 (two different texts might be read as one), or longer than any line is. */
  readonly broken: boolean;
}

/** Where lines come from: a file, as long as it may be. Reads a quarter of a megabyte at a time. */
export class LineReader {
  readonly #fd: number;
  readonly #chunk: Buffer = Buffer.allocUnsafe(CHUNK_BYTES);
  /** Bytes that were read and belong to a line that has not ended. */
  #rest: Buffer = Buffer.alloc(0);
  #filled = 0;
  #next = 0;
  #offset = 0;
  #position = 0;

  /** Throws the system's error where the file cannot be opened. */
  constructor(path: string) {
    this.#fd = openSync(path, 'r');
  }

  /** The next line; `undefined` at the end, where asking again reads on if the file has grown. */
  next(): ReadLine | undefined {
    for (;;) {
      const end = this.#chunk.subarray(0, this.#filled).indexOf(NEWLINE, this.#next);
      if (end !== -1) {
        const part = this.#chunk.subarray(this.#next, end);
        this.#next = end + 1;
        return this.#take(this.#rest.length === 0 ? part : Buffer.concat([this.#rest, part]), true);
      }
      if (this.#next < this.#filled)
        this.#rest = Buffer.concat([this.#rest, this.#chunk.subarray(this.#next, this.#filled)]);
      this.#next = 0;
      this.#filled = 0;
      if (this.#rest.length > LINE_MAX_BYTES) return this.#take(this.#rest, false, true);
      const read = readSync(this.#fd, this.#chunk, 0, CHUNK_BYTES, this.#position);
      if (read === 0) return undefined;
      this.#filled = read;
      this.#position += read;
    }
  }

  /** What stands behind the last newline, once `next` found no more. */
  partial(): ReadLine | undefined {
    if (this.#rest.length === 0) return undefined;
    return { text: this.#rest.toString('utf8'), at: this.#offset, whole: false, broken: true };
  }

  close(): void {
    closeSync(this.#fd);
  }

  #take(bytes: Buffer, whole: boolean, tooLong = false): ReadLine {
    const line = { text: bytes.toString('utf8'), at: this.#offset, whole, broken: tooLong || !isUtf8(bytes) };
    this.#offset += bytes.length + (whole ? 1 : 0);
    this.#rest = Buffer.alloc(0);
    return line;
  }
}

/** The lines of a file that end with a newline, in order. */
export function* readLines(path: string): Generator<ReadLine> {
  const reader = new LineReader(path);
  try {
    for (let line = reader.next(); line !== undefined; line = reader.next()) yield line;
  } finally {
    reader.close();
  }
}
