import type { ForwardHandler } from './forward-handler.ts';

/** How often waiting calls are looked at. */
const SWEEP_MS = 50;

/**
 * Calls that wait for a connection. Nearly every call waits for one turn of the event loop, so one sweep looks after all of
 * them: a timer of its own for each would cost more than the rest of its bookkeeping.
 */
export class WaitingCalls {
  #calls: { readonly handler: ForwardHandler; readonly sinceMs: number }[] = [];
  #timer: NodeJS.Timeout | undefined;

  add(handler: ForwardHandler): void {
    this.#calls.push({ handler, sinceMs: performance.now() });
    this.#timer ??= setInterval(() => this.#sweep(), SWEEP_MS).unref();
  }

  close(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#calls = [];
  }

  #sweep(): void {
    const nowMs = performance.now();
    this.#calls = this.#calls.filter(({ handler, sinceMs }) => {
      handler.waited(nowMs - sinceMs);
      return handler.waits;
    });
    if (this.#calls.length === 0) this.close();
  }
}
