/**
 * Claims that this process is at work on now. A claim of its own that is open in the store and not here was orphaned: by
 * a commit of which nobody could tell whether it was stored, or by an error on the way. Its lease would be renewed for
 * ever; recovery settles it instead.
 */
export class Flights {
  readonly #links = new Map<string, number>();

  begin(link: string): void {
    this.#links.set(link, (this.#links.get(link) ?? 0) + 1);
  }

  end(link: string): void {
    const left = (this.#links.get(link) ?? 0) - 1;
    if (left > 0) this.#links.set(link, left);
    else this.#links.delete(link);
  }

  has(link: string): boolean {
    return this.#links.has(link);
  }
}

/** Wakes whoever waits for something to do. */
export class Bell {
  #wake: (() => void) | undefined;
  #rung = false;

  /** There may be something to do now. */
  ring(): void {
    this.#rung = true;
    this.#wake?.();
  }

  /** Resolves when it is rung, was rung since the last wait, or after `ms`. */
  wait(ms: number): Promise<void> {
    if (this.#rung) {
      this.#rung = false;
      return Promise.resolve();
    }
    return new Promise((resolve) => {
      const timer = setTimeout(done, ms);
      timer.unref();
      this.#wake = done;
      const bell = this;
      function done(): void {
        clearTimeout(timer);
        bell.#rung = false;
        bell.#wake = undefined;
        resolve();
      }
    });
  }
}
