/**
 * Calls that were sent and whose outcome is not stored yet. A client that hung up leaves nothing behind that the server
 * would wait for, and its call is one of these all the same.
 */
export class UnderWay {
  #count = 0;
  #whenNone: (() => void) | undefined;

  begin(): void {
    this.#count += 1;
  }

  end(): void {
    this.#count -= 1;
    if (this.#count === 0) this.#whenNone?.();
  }

  /** Counts `work` as under way until it ends, however it ends. */
  track<T>(work: Promise<T>): Promise<T> {
    this.begin();
    const end = (): void => this.end();
    work.then(end, end);
    return work;
  }

  /** Resolves when nothing is under way, at the latest after `graceMs`, with how many calls were left behind. */
  async idle(graceMs: number): Promise<number> {
    if (this.#count === 0) return 0;
    await new Promise<void>((resolve) => {
      const grace = setTimeout(resolve, graceMs);
      this.#whenNone = () => {
        clearTimeout(grace);
        resolve();
      };
    });
    this.#whenNone = undefined;
    return this.#count;
  }
}
