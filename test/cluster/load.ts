import { setTimeout as pause } from 'node:timers/promises';
import { type Answer, send } from './scenario.ts';

/** What the balancer of the tests answers where a gateway's connection broke. */
const BROKEN = 599;

/**
 * Callers that send one call after the other, each in a session of its own, until they are told to stop. One whose
 * connection broke sends the same call again, a write with the same key, as a caller should.
 */
export class Load {
  /** Calls whose connection broke before an answer came. */
  broken = 0;
  readonly answers: { readonly status: number; readonly key: string | undefined; readonly what: string }[] = [];
  readonly #stop = new AbortController();
  readonly #callers: readonly Promise<void>[];

  constructor(base: string, name: string, callers: number) {
    this.#callers = Array.from({ length: callers }, (_, i) =>
      this.#run(base, `${name}-${i}`).catch((error: unknown) => {
        this.answers.push({ status: 0, key: undefined, what: String(error) });
      }),
    );
  }

  async #run(base: string, session: string): Promise<void> {
    const headers = { 'toolgate-origins': 'sku=context, quantity=context' };
    for (let i = 0; !this.#stop.signal.aborted; i++) {
      const key = i % 3 === 0 ? `${session}-${i}` : undefined;
      const call = (): Promise<Answer> =>
        key === undefined
          ? send(base, 'GET', '/shop/orders/4411', { session })
          : send(base, 'POST', '/shop/orders', {
              session,
              body: { sku: 'A1', quantity: 1 },
              headers: { ...headers, 'idempotency-key': `"${key}"` },
            });
      const answer = await this.#untilAnswered(call);
      this.answers.push({ status: answer.status, key, what: JSON.stringify(answer.json) });
    }
  }

  async #untilAnswered(call: () => Promise<Answer>): Promise<Answer> {
    for (;;) {
      let why: unknown;
      try {
        const answer = await call();
        if (answer.status !== BROKEN) return answer;
        why = new Error('the connection to the gateway broke');
      } catch (error) {
        why = error;
      }
      this.broken += 1;
      if (this.broken > 50) throw why;
      await pause(50);
    }
  }

  get count(): number {
    return this.answers.length;
  }

  /** Waits until so many more calls were answered. */
  async more(count: number): Promise<void> {
    const wanted = this.count + count;
    for (const since = Date.now(); this.count < wanted; await pause(10)) {
      if (Date.now() - since > 60_000) throw new Error(`only ${this.count} of ${wanted} calls were answered`);
    }
  }

  async end(): Promise<void> {
    this.#stop.abort();
    await Promise.all(this.#callers);
  }

  /** Answers that are none of those wanted. */
  wrong(): readonly string[] {
    return this.answers
      .filter(({ status, key }) => status !== (key === undefined ? 200 : 201))
      .map(({ status, what }) => `${status} ${what}`);
  }

  get writes(): number {
    return this.answers.filter(({ key }) => key !== undefined).length;
  }
}
