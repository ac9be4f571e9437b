/**
 * Calls that were sent and whose outcome is not stored yet. A client that hung up leaves nothing behind that the server
 * would wait for, and its call is one of these all the same.
 */
export class UnderWay {
  readonly #open = new Set<Promise<unknown>>();

  /** Counts `work` as under way until it ends, however it ends. */
  track<T>(work: Promise<T>): Promise<T> {
    this.#open.add(work);
    const end = (): boolean => this.#open.delete(work);
    work.then(end, end);
    return work;
  }

  /** Resolves when nothing is under way, at the latest after `graceMs`, with how many calls were left behind. */
  async idle(graceMs: number): Promise<number> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const grace = setTimeout(resolve, graceMs);
    const ended = promise.then(() => 'late' as const);
    while (this.#open.size > 0) {
      const first = await Promise.race([ended, Promise.allSettled([...this.#open])]);
      if (first === 'late') break;
    }
    clearTimeout(grace);
    return this.#open.size;
  }
}
