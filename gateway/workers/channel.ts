import type { Pins } from '../mcp/pin-book.ts';
import { messageOf } from '../message-of.ts';

/** The place of a worker among those of its primary. */
export interface Place {
  /** From 1 on. A worker that takes a dead one's place has its number, and with it its audit log. */
  readonly number: number;
  readonly count: number;
  /** That all of them listen on. */
  readonly port: number;
  /** The key under which workers talk to each other, base64url: nobody else can reach them past the listener, or pass for one. */
  readonly secret: string;
}

/** What a worker says of itself once it takes calls. */
export interface Readiness {
  readonly url: string;
  /** Where the other workers reach it, on loopback. */
  readonly hopPort: number;
}

/** What a worker found in the files: ready to be taken, or why not. */
export type Preparation =
  | { readonly files: readonly string[] }
  /** `text` is for people, as `validate` prints it. */
  | { readonly faults: number; readonly text: string };

/** The ports of workers, by number. */
export type Peers = readonly (readonly [number: number, port: number])[];

/** What primary and workers ask each other: the body of a question, and of its answer. */
export interface Questions {
  /** Of the primary: where the worker that asks stands. */
  readonly place: readonly [null, Place];
  /** Of the primary: whether the worker may serve what it loaded from these files. */
  readonly loaded: readonly [readonly string[], boolean];
  readonly ready: readonly [Readiness, null];
  /** Of the primary: to pin what a worker saw for the first time; answered with all pins. */
  readonly pin_first_use: readonly [Pins, Pins];
  /** Of the primary: the metrics of all, as Prometheus reads them. */
  readonly all_metrics: readonly [null, string];
  /** Of a worker, as all that follow: where the others are. */
  readonly peers: readonly [Peers, null];
  readonly prepare: readonly [null, Preparation];
  readonly take: readonly [null, null];
  readonly drop: readonly [null, null];
  /** A configuration with so many faults was not taken. */
  readonly refused: readonly [number, null];
  /** Of a worker: what prom-client puts together with that of others. */
  readonly metrics: readonly [null, readonly object[]];
  readonly reopen: readonly [null, null];
  /** Answered at once by whoever does not hang. */
  readonly alive: readonly [null, null];
  /** To end; takes calls for so many milliseconds more. */
  readonly drain: readonly [number, null];
}

type Question = keyof Questions;

/** An end of the line between a primary and a worker: `process` there, a `Worker` here. */
export interface ChannelEnd {
  on(event: 'message', listener: (message: unknown) => void): unknown;
  send?(message: Message, done: (error: Error | null) => void): unknown;
}

type Message =
  | { readonly toolgate: 'question'; readonly id: number; readonly what: Question; readonly body: unknown }
  | { readonly toolgate: 'answer'; readonly id: number; readonly body: unknown; readonly error?: string };

/** The other process gave no answer: it is gone, took too long, or failed. */
export class ChannelFault extends Error {
  readonly code = 'no_answer';
}

type Handlers = { [Q in Question]?: (body: Questions[Q][0]) => Promise<Questions[Q][1]> | Questions[Q][1] };

/** Questions and answers between a primary and one of its workers. Each side trusts the other: they are one program. */
export class Channel {
  readonly #end: ChannelEnd;
  readonly #handlers: Handlers;
  readonly #waiting = new Map<number, PromiseWithResolvers<unknown>>();
  #next = 1;

  constructor(end: ChannelEnd, handlers: Handlers) {
    this.#end = end;
    this.#handlers = handlers;
    end.on('message', (message) => {
      if (isMessage(message)) void this.#take(message);
    });
  }

  /** Rejects with `ChannelFault` where no answer comes within `timeoutMs`. */
  async ask<Q extends Question>(what: Q, body: Questions[Q][0], timeoutMs: number): Promise<Questions[Q][1]> {
    const id = this.#next++;
    const waiting = Promise.withResolvers<unknown>();
    this.#waiting.set(id, waiting);
    const timer = setTimeout(
      () => waiting.reject(new ChannelFault(`no answer to \`${what}\` within ${timeoutMs} ms`)),
      timeoutMs,
    );
    try {
      this.#send({ toolgate: 'question', id, what, body }, (error) => waiting.reject(error));
      return (await waiting.promise) as Questions[Q][1];
    } finally {
      clearTimeout(timer);
      this.#waiting.delete(id);
    }
  }

  /** The other side is gone: whoever waits for it need not. */
  close(): void {
    for (const waiting of this.#waiting.values()) waiting.reject(new ChannelFault('the other process is gone'));
  }

  #send(message: Message, failed: (error: ChannelFault) => void): void {
    const gone = (why: string): void => failed(new ChannelFault(`the other process cannot be reached: ${why}`));
    if (this.#end.send === undefined) gone('it is gone');
    else {
      this.#end.send(message, (error) => {
        if (error !== null) gone(error.message);
      });
    }
  }

  async #take(message: Message): Promise<void> {
    const { id } = message;
    if (message.toolgate === 'answer') {
      const waiting = this.#waiting.get(id);
      if (message.error === undefined) waiting?.resolve(message.body);
      else waiting?.reject(new ChannelFault(message.error));
      return;
    }
    // An answer that cannot be sent has nobody who waits for it any more.
    const answer = (body: unknown, error?: string): void =>
      this.#send({ toolgate: 'answer', id, body, ...(error === undefined ? {} : { error }) }, () => undefined);
    const handle = this.#handlers[message.what] as ((body: unknown) => unknown) | undefined;
    try {
      if (handle === undefined) throw new ChannelFault(`nobody answers \`${message.what}\` here`);
      answer(await handle(message.body));
    } catch (error) {
      answer(null, messageOf(error));
    }
  }
}

function isMessage(value: unknown): value is Message {
  return typeof value === 'object' && value !== null && 'toolgate' in value;
}
