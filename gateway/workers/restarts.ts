/** A worker that ends sooner than this after its start died of its start. */
const QUICK_MS = 10_000;
/** So many such deaths in a row, of whichever workers, and starting others is no use. */
const GIVE_UP_AFTER = 5;
const FIRST_WAIT_MS = 100;
const LONGEST_WAIT_MS = 10_000;

/** When a worker that died is started again. */
export class Restarts {
  #quick = 0;

  /**
   * A worker died.
   * @param livedMs How long after its start.
   * @returns Milliseconds to wait before another is started; nothing where that is no use any more.
   */
  next(livedMs: number): number | undefined {
    this.#quick = livedMs < QUICK_MS ? this.#quick + 1 : 0;
    if (this.#quick >= GIVE_UP_AFTER) return undefined;
    return Math.min(FIRST_WAIT_MS * 2 ** this.#quick, LONGEST_WAIT_MS);
  }
}
