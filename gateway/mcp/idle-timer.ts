/** Fires when nothing was heard for so long; stands still while a person is asked. */
export class IdleTimer {
  readonly #ms: number;
  readonly #onIdle: () => void;
  #timer: NodeJS.Timeout | undefined;
  #paused = 0;

  constructor(ms: number, onIdle: () => void) {
    this.#ms = ms;
    this.#onIdle = onIdle;
    this.heard();
  }

  /** Something was heard: the time begins anew. */
  heard(): void {
    clearTimeout(this.#timer);
    if (this.#paused === 0) this.#timer = setTimeout(this.#onIdle, this.#ms);
  }

  /** Runs work that takes a person's time. */
  async pausedFor<T>(work: () => Promise<T>): Promise<T> {
    this.#paused += 1;
    clearTimeout(this.#timer);
    try {
      return await work();
    } finally {
      this.#paused -= 1;
      this.heard();
    }
  }

  stop(): void {
    this.#paused = 1;
    clearTimeout(this.#timer);
  }
}
