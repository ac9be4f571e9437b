/** Lets something be said at most once in a while, and tells how often it was kept back meanwhile. */
export class Seldom {
  readonly #everyMs: number;
  #lastMs = Number.NEGATIVE_INFINITY;
  #keptBack = 0;

  constructor(everyMs: number) {
    this.#everyMs = everyMs;
  }

  /** @param count How many things this one stands for. */
  say(count: number, tell: (sinceLast: number) => void): void {
    this.#keptBack += count;
    const now = performance.now();
    if (now - this.#lastMs < this.#everyMs) return;
    this.#lastMs = now;
    const said = this.#keptBack;
    this.#keptBack = 0;
    tell(said);
  }
}
