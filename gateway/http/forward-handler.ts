import { Readable } from 'node:stream';
import type { Dispatcher } from 'undici';
import type { UpstreamAnswer } from '../exchange.ts';
import type { ForwardCall } from './forward.ts';
import { BrokenAnswer, GaveUp, notSent, unclear } from './forward-faults.ts';
import { type AnswerHead, answerHead } from './upstream-headers.ts';

type Controller = Dispatcher.DispatchController;

/** An answer of known length up to this is read whole even where nobody reads it: cheaper than a stream. */
const SMALL_BYTES = 16 * 1024;

/** Problem details of an upstream are read up to this, so that they cannot pass for the gateway's own. */
const PROBLEM_BYTES = 64 * 1024;

const EMPTY = Buffer.alloc(0);

/**
 * What undici tells of one call. `onRequestStart` is called right before the first byte is written, so an error before it
 * means that nothing was sent, and one after it that the call may have been done.
 */
export class ForwardHandler implements Dispatcher.DispatchHandler {
  readonly #call: ForwardCall;
  #resolve: ((answer: UpstreamAnswer) => void) | undefined;
  #controller: Controller | undefined;
  #gaveUp: GaveUp | undefined;
  #total: NodeJS.Timeout | undefined;
  #status = 0;
  #head: AnswerHead | undefined;
  /** Pieces of an answer that is read whole. */
  #pieces: Buffer[] | undefined;
  #size = 0;
  #limit = 0;
  #stream: AnswerStream | undefined;
  readonly #onAbort = (): void => this.#giveUp(new GaveUp('client_gone', 'the client went away'));

  constructor(call: ForwardCall, resolve: (answer: UpstreamAnswer) => void) {
    this.#call = call;
    this.#resolve = resolve;
    call.abort?.addEventListener('abort', this.#onAbort);
  }

  /** The call waits for a connection since it was handed to the pool. */
  get waits(): boolean {
    return this.#controller === undefined && this.#resolve !== undefined;
  }

  /** The call has waited `waitedMs` for a connection; where that is too long, it ends unsent. */
  waited(waitedMs: number): void {
    if (!this.waits || waitedMs < this.#call.timeoutMs) return;
    this.#giveUp(new GaveUp('upstream_busy', 'no connection to the upstream came free in time'));
  }

  onRequestStart(controller: Controller): void {
    if (this.#controller !== undefined) {
      // undici offers a request again where its connection ended in certain ways; a call is sent once.
      controller.abort(new GaveUp('sent_twice', 'the connection ended before the answer'));
      return;
    }
    if (this.#gaveUp !== undefined) {
      controller.abort(this.#gaveUp);
      return;
    }
    this.#controller = controller;
    const { totalTimeoutMs } = this.#call;
    if (totalTimeoutMs !== undefined) {
      this.#total = setTimeout(
        () => this.#giveUp(new GaveUp('total_timeout', 'the call took longer than its tool may')),
        totalTimeoutMs,
      );
    }
  }

  onResponseStart(controller: Controller, status: number): void {
    // RFC 9110 section 15.2: informational answers come before the one that counts.
    if (status < 200) return;
    const head = answerHead(rawHeaders(controller));
    this.#status = status;
    this.#head = head;
    const { method, wholeUpTo } = this.#call;
    if (method === 'HEAD' || status === 204 || status === 304) {
      this.#pieces = [];
      this.#limit = 0;
      return;
    }
    const limit =
      head.mediaType === 'application/problem+json'
        ? Math.max(wholeUpTo, PROBLEM_BYTES)
        : head.length >= 0 && head.length <= SMALL_BYTES
          ? Math.max(wholeUpTo, SMALL_BYTES)
          : wholeUpTo;
    const streams = head.mediaType === 'text/event-stream' || head.length > limit || limit === 0;
    if (streams) this.#startStream(controller);
    else {
      this.#pieces = [];
      this.#limit = limit;
    }
  }

  onResponseData(controller: Controller, chunk: Buffer): void {
    if (this.#stream !== undefined) {
      if (!this.#stream.push(chunk)) controller.pause();
      return;
    }
    this.#pieces?.push(chunk);
    this.#size += chunk.length;
    if (this.#size > this.#limit) this.#startStream(controller);
  }

  onResponseEnd(): void {
    this.#done();
    if (this.#stream !== undefined) {
      this.#stream.finish();
      return;
    }
    const pieces = this.#pieces ?? [];
    const [only] = pieces;
    const body = pieces.length === 1 && only !== undefined ? only : Buffer.concat(pieces, this.#size);
    this.#answer(pieces.length === 0 ? EMPTY : body);
  }

  onResponseError(_controller: Controller | undefined, error: Error): void {
    this.#done();
    if (this.#stream !== undefined) {
      const { code, why } = unclear(error);
      this.#stream.destroy(new BrokenAnswer(code, why, error));
      return;
    }
    this.#settle(this.#controller === undefined ? notSent(error) : unclear(error));
  }

  /** Ends the call. Before it started it is answered at once, and never starts. */
  #giveUp(why: GaveUp): void {
    this.#gaveUp ??= why;
    if (this.#controller === undefined) {
      this.#done();
      this.#settle(notSent(why));
    } else {
      this.#controller.abort(why);
    }
  }

  #startStream(controller: Controller): void {
    const stream = new AnswerStream(controller);
    for (const piece of this.#pieces ?? []) {
      if (!stream.push(piece)) controller.pause();
    }
    this.#pieces = undefined;
    this.#stream = stream;
    this.#answer(stream);
  }

  #answer(body: Uint8Array | Readable): void {
    const head = this.#head;
    if (head === undefined) {
      this.#settle(unclear(new TypeError('an answer without a head')));
      return;
    }
    const headers = head.mediaType === 'application/problem+json' ? asPlainJson(head.headers, body) : head.headers;
    this.#settle({ kind: 'answer', status: this.#status, headers, body });
  }

  #settle(answer: UpstreamAnswer): void {
    this.#resolve?.(answer);
    this.#resolve = undefined;
  }

  #done(): void {
    clearTimeout(this.#total);
    this.#call.abort?.removeEventListener('abort', this.#onAbort);
  }
}

/** The header section as undici hands it on over HTTP/1.1: bytes, names and values in turn. */
function rawHeaders(controller: Controller): readonly Buffer[] {
  const raw = controller.rawHeaders;
  return isBytes(raw) ? raw : [];
}

function isBytes(raw: Controller['rawHeaders']): raw is Buffer[] {
  return Array.isArray(raw) && (raw.length === 0 || Buffer.isBuffer(raw[0]));
}

/** The body of an answer as it arrives. The upstream is read no faster than this is. */
class AnswerStream extends Readable {
  readonly #controller: Controller;
  #finished = false;

  constructor(controller: Controller) {
    super();
    this.#controller = controller;
    // It may break before anybody reads it; whoever does then still finds the error.
    this.on('error', ignored);
  }

  /** The upstream has sent all of it. */
  finish(): void {
    this.#finished = true;
    this.push(null);
  }

  override _read(): void {
    this.#controller.resume();
  }

  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    if (!this.#finished && !this.#controller.aborted) {
      this.#controller.abort(new GaveUp('client_gone', 'nobody reads the answer any more'));
    }
    callback(error);
  }
}

function ignored(): undefined {
  return undefined;
}

/**
 * A problem type of the gateway's own cannot come from an upstream: a client would take the upstream's words for a decision.
 * Such an answer, and one whose type cannot be read here (too large, compressed, broken), loses the media type that gives
 * `type` its meaning (RFC 9457 section 3).
 */
function asPlainJson(headers: string[], body: Uint8Array | Readable): string[] {
  if (body instanceof Uint8Array && !headers.includes('content-encoding') && isForeignProblem(body)) return headers;
  const plain = [...headers];
  for (let at = 0; at < plain.length; at += 2) {
    if (plain[at] === 'content-type') plain[at + 1] = 'application/json';
  }
  return plain;
}

function isForeignProblem(body: Uint8Array): boolean {
  let value: unknown;
  try {
    value = JSON.parse(Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString('utf8'));
  } catch {
    return false;
  }
  if (typeof value !== 'object' || value === null || !('type' in value)) return true;
  return !String(value.type).trim().toLowerCase().startsWith('urn:toolgate');
}
