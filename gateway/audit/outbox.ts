import type { WrittenNumbers } from './tail.ts';

/**
 * Which prepared lines are in the log. A number is open from `prepare` until its line is written, or its transaction is
 * known not to have happened.
 */
export class Outbox {
  readonly #first: number;
  #before: WrittenNumbers | undefined;
  /** Ascending, because numbers are given out so and sets keep the order of insertion. */
  readonly #open = new Set<number>();
  /** On their way into the log, or owed to it. */
  readonly #queued = new Set<number>();
  #next: number;
  #caughtUp = false;
  #highestOld: number;

  /** `first` is the first number to give out; all up to `floor` are known to be in the log. */
  constructor(first: number, floor: number) {
    this.#first = first;
    this.#next = first;
    this.#highestOld = floor;
  }

  /** Whether it must be told what the log holds from earlier processes, before `has` can say of `n`. */
  mustLearn(n: number): boolean {
    return this.#before === undefined && n < this.#first && n > this.#highestOld;
  }

  learn(before: WrittenNumbers): void {
    this.#before = before;
    this.#highestOld = Math.max(this.#highestOld, before.floor);
  }

  /** The number that `take` gives next. */
  get next(): number {
    return this.#next;
  }

  take(): number {
    const n = this.#next++;
    this.#open.add(n);
    return n;
  }

  /** The line is about to be written; false where it was, or is already on its way. */
  queue(n: number): boolean {
    if (this.#queued.has(n) || this.has(n)) return false;
    this.#queued.add(n);
    return true;
  }

  settle(n: number): void {
    this.#queued.delete(n);
    if (n < this.#first) this.#highestOld = Math.max(this.#highestOld, n);
    else this.#open.delete(n);
  }

  /** A row of an earlier process that the log has; rows come in order, so all rows before it are settled too. */
  has(n: number): boolean {
    if (n >= this.#first) return n < this.#next && !this.#open.has(n);
    return n <= this.#highestOld || this.#before?.above.has(n) === true;
  }

  /** Rows of earlier processes are all in the log. */
  endCatchUp(): void {
    this.#caughtUp = true;
  }

  /** Every stored line up to this number is in the log, once `lines` are too. */
  floorWith(lines: readonly { readonly n?: number }[]): number {
    if (!this.#caughtUp) return this.#highestOld;
    const about = new Set(lines.map((line) => line.n));
    for (const n of this.#open) if (!about.has(n)) return n - 1;
    return this.#next - 1;
  }
}
