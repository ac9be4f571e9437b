import type { JsonObject } from '../../receipts/json-value.ts';
import type { AskedOfClient } from '../exchange.ts';
import { AskFault } from './call-fault.ts';
import type { ClientRequest } from './client-call.ts';

/** What a call of the newer era comes to next: its end, or a question that the client answers with its next request. */
export type CallEvent<T> =
  | { readonly kind: 'end'; readonly end: T }
  | { readonly kind: 'ask'; readonly questions: Readonly<Record<string, AskedOfClient>> };

type Questions = Readonly<Record<string, AskedOfClient>>;
type Answers = Readonly<Record<string, JsonObject>>;

/** Questions that go to the client together, and who waits for the answers. */
interface Round {
  readonly questions: Questions;
  readonly answered: PromiseWithResolvers<Answers>;
}

/** How long a question waits for its answer. */
const ASK_MS: number = 10 * 60_000;

/**
 * A call that outlives the request that began it: in the newer era a question ends the request, and its answer comes
 * with another one. The call itself is one, however many requests it takes.
 */
export class PendingCall<T> {
  readonly caller: string;
  #rounds = 0;
  readonly #cancelled = new AbortController();
  #request: ClientRequest;
  #next: PromiseWithResolvers<CallEvent<T>> = Promise.withResolvers();
  /** What the client has been asked, and answers with its next request. */
  #asked: Round | undefined;
  /** What is asked meanwhile (a server of the older era may ask twice at once) and goes to the client after that. */
  readonly #queue: Round[] = [];
  /** Hands the end to the request that waits for it: one that comes while the client is asked is kept for its next. */
  #tellEnd: (() => void) | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(caller: string, request: ClientRequest) {
    this.caller = caller;
    this.#request = request;
    // A call whose client has gone has nobody who waits for its end.
    this.#next.promise.catch(() => undefined);
  }

  /** How often the client was asked so far. */
  get rounds(): number {
    return this.#rounds;
  }

  /** Begins the work; what it does with the client goes to whichever request the client waits on. */
  run(work: (request: ClientRequest) => Promise<T>): void {
    const { method, params, answers, trace } = this.#request;
    const request: ClientRequest = {
      method,
      params,
      ...(answers === undefined ? {} : { answers }),
      ...(trace === undefined ? {} : { trace }),
      cancelled: this.#cancelled.signal,
      notify: (name, told) => this.#request.notify(name, told),
      ask: (questions) => this.#ask(questions),
    };
    work(request).then(
      (end) => this.#end(() => this.#next.resolve({ kind: 'end', end })),
      (error: unknown) => this.#end(() => this.#next.reject(error)),
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
    asked.answered.resolve(answers);
    if (this.#tellEnd !== undefined) this.#tellEnd();
    else this.#askNext();
    return true;
  }

  /** Nobody will answer any more. */
  giveUp(): void {
    const open = this.#asked === undefined ? this.#queue : [this.#asked, ...this.#queue];
    for (const { answered } of open)
      answered.reject(new AskFault('no_answer', 'the client did not answer what it was asked'));
    this.#queue.length = 0;
    this.#asked = undefined;
    clearTimeout(this.#timer);
  }

  #end(tell: () => void): void {
    this.#tellEnd = tell;
    if (this.#asked === undefined) tell();
  }

  #ask(questions: Questions): Promise<Answers> {
    const answered = Promise.withResolvers<Answers>();
    this.#queue.push({ questions, answered });
    if (this.#asked === undefined) this.#askNext();
    return answered.promise;
  }

  #askNext(): void {
    const round = this.#queue.shift();
    if (round === undefined) return;
    this.#asked = round;
    this.#rounds += 1;
    this.#timer = setTimeout(() => this.giveUp(), ASK_MS);
    this.#timer.unref();
    this.#next.resolve({ kind: 'ask', questions: round.questions });
  }
}
