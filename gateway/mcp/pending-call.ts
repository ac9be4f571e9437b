import type { JsonObject } from '../../receipts/json-value.ts';
import type { AskedOfClient } from '../exchange.ts';
import { AskFault } from './call-fault.ts';
import type { ClientRequest } from './client-call.ts';

/** What a call of the newer era comes to next: its end, or a question that the client answers with its next request. */
export type CallEvent<T> =
  | { readonly kind: 'end'; readonly end: T }
  | { readonly kind: 'ask'; readonly questions: Readonly<Record<string, AskedOfClient>> };

type Answers = Readonly<Record<string, JsonObject>>;

/** How long a question waits for its answer. */
const ASK_MS: number = 10 * 60_000;

/**
 * A call that outlives the request that began it: in the newer era a question ends the request, and its answer comes
 * with another one. The call itself is one, however many requests it takes.
 */
export class PendingCall<T> {
  readonly caller: string;
  readonly #cancelled = new AbortController();
  #request: ClientRequest;
  #next: PromiseWithResolvers<CallEvent<T>> = Promise.withResolvers();
  #asked: PromiseWithResolvers<Answers> | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(caller: string, request: ClientRequest) {
    this.caller = caller;
    this.#request = request;
    // A call whose client has gone has nobody who waits for its end.
    this.#next.promise.catch(() => undefined);
  }

  /** Begins the work; what it does with the client goes to whichever request the client waits on. */
  run(work: (request: ClientRequest) => Promise<T>): void {
    const { method, params } = this.#request;
    const request: ClientRequest = {
      method,
      params,
      cancelled: this.#cancelled.signal,
      notify: (name, told) => this.#request.notify(name, told),
      ask: (questions) => this.#ask(questions),
    };
    work(request).then(
      (end) => this.#next.resolve({ kind: 'end', end }),
      (error: unknown) => this.#next.reject(error),
    );
  }

  /** What comes next, for the request that waits. A client that goes meanwhile takes the call back. */
  async next(): Promise<CallEvent<T>> {
    const { cancelled } = this.#request;
    const cancel = (): void => this.#cancelled.abort();
    if (cancelled.aborted) cancel();
    cancelled.addEventListener('abort', cancel, { once: true });
    try {
      return await this.#next.promise;
    } finally {
      cancelled.removeEventListener('abort', cancel);
    }
  }

  /** The client's next request brings its answers. False where nothing is asked. */
  answer(request: ClientRequest, answers: Answers): boolean {
    const asked = this.#asked;
    if (asked === undefined) return false;
    this.#asked = undefined;
    clearTimeout(this.#timer);
    this.#request = request;
    this.#next = Promise.withResolvers();
    this.#next.promise.catch(() => undefined);
    asked.resolve(answers);
    return true;
  }

  /** Nobody will answer any more. */
  giveUp(): void {
    this.#asked?.reject(new AskFault('no_answer', 'the client did not answer what it was asked'));
    this.#asked = undefined;
    clearTimeout(this.#timer);
  }

  #ask(questions: Readonly<Record<string, AskedOfClient>>): Promise<Answers> {
    if (this.#asked !== undefined)
      return Promise.reject(new AskFault('cannot_ask', 'the client is being asked already'));
    const asked = Promise.withResolvers<Answers>();
    this.#asked = asked;
    this.#timer = setTimeout(() => this.giveUp(), ASK_MS);
    this.#timer.unref();
    this.#next.resolve({ kind: 'ask', questions });
    return asked.promise;
  }
}
