import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Ending, Problem } from '../exchange.ts';
import type { CallSpan } from '../tracing/span.ts';
import { headerOf } from './headers.ts';
import { fault, type RenderedAnswer, renderProblem } from './problems.ts';
import type { Target } from './target.ts';

/** What the server tells each request about itself. */
export interface EdgeContext {
  readonly secure: boolean;
  /** Bytes of an unread request body that are thrown away to keep a connection usable. */
  readonly drainBytes: number;
  /** How long such bytes are waited for. */
  readonly lingerMs: number;
  /** Told of every problem that is answered, by its code. */
  readonly onProblem?: (code: string) => void;
  /** How long a client may take over a whole answer. */
  readonly takeMs: number;
}

/** An answer of so many bytes goes to the kernel at once, whatever its client does. */
const KERNEL_TAKES = 64 * 1024;

/**
 * One request and its response at the edge, with the header section already checked. Everything else reads the request
 * through it, and writes at most one answer.
 */
export class EdgeExchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly method: string;
  /** The path as it came: checked, never decoded or tidied. */
  readonly path: string;
  /** The query as it came, without the question mark. */
  readonly query: string;
  /** The request came over TLS. */
  readonly secure: boolean;
  /** The client waits for `100 Continue` before it sends its body. */
  readonly awaitsContinue: boolean;
  /** The span that the request is handled under, where spans are made. */
  span: CallSpan | undefined;
  readonly #context: EdgeContext;
  #departure: Departure | undefined;

  constructor(
    request: IncomingMessage,
    response: ServerResponse,
    target: Target,
    context: EdgeContext,
    awaitsContinue: boolean,
  ) {
    this.request = request;
    this.response = response;
    this.method = request.method ?? '';
    this.path = target.path;
    this.query = target.query;
    this.secure = context.secure;
    this.awaitsContinue = awaitsContinue;
    this.#context = context;
  }

  /** The value of a header (lower-case name) that may stand once. */
  header(name: string): string | undefined {
    return headerOf(this.request, name);
  }

  /** Address of the peer, an IPv4 one never in IPv6 clothes; empty once it is gone. */
  get remoteAddress(): string {
    return peerAddress(this.request.socket);
  }

  /** The request announces a body. */
  get hasBody(): boolean {
    const headers = this.request.headers;
    if (headers['transfer-encoding'] !== undefined) return true;
    const length = headers['content-length'];
    return length !== undefined && length !== '0';
  }

  /** The client has gone before its answer was written whole. */
  get isGone(): boolean {
    return this.response.destroyed && !this.response.writableFinished;
  }

  /** Tells when the client goes before its answer was written whole. Made at first use: most calls never ask. */
  get departure(): Ending {
    this.#departure ??= new Departure(this.response);
    return this.#departure;
  }

  /** The same as a signal, for what takes nothing less. */
  get gone(): AbortSignal {
    const gone = new AbortController();
    if (this.isGone) gone.abort();
    else this.departure.addEventListener('abort', () => gone.abort());
    return gone.signal;
  }

  /** Writes a whole answer of the gateway's own. Does nothing where the client has gone or an answer has begun. */
  answer(answer: RenderedAnswer): void {
    const { request, response } = this;
    if (response.headersSent || response.destroyed) return;
    if (request.complete || !this.hasBody) {
      response.writeHead(answer.status, answer.headers);
      response.end(answer.body);
      if (answer.body.length > KERNEL_TAKES) this.#limitTaking();
      return;
    }
    this.#answerOverBody(answer);
  }

  /** A client that asks for much and takes little would hold its connection, and the answer in memory, for ever. */
  #limitTaking(): void {
    const timer = setTimeout(() => this.response.destroy(), this.#context.takeMs);
    this.response.once('close', () => clearTimeout(timer));
  }

  /** Writes a problem; a 405 names what is allowed in `allow`. */
  problem(problem: Problem, allow?: readonly string[]): void {
    this.#context.onProblem?.(problem.code);
    this.answer(renderProblem(problem, allow === undefined ? {} : { allow }));
  }

  /** Writes an answer of JSON text. */
  json(status: number, body: string): void {
    const headers = ['content-type', 'application/json', 'content-length', String(Buffer.byteLength(body))];
    this.answer({ status, headers, body });
  }

  /**
   * Answers a request whose body was not read. A short rest is thrown away, so that the connection stays usable; for a long
   * or unknown one the connection ends. It is not torn down at once: unread bytes would make the kernel send a reset that
   * can overtake the answer (RFC 9112 section 9.6), so the answer is written whole and the rest is read for a moment.
   */
  #answerOverBody(answer: RenderedAnswer): void {
    const { request, response } = this;
    const length = Number(request.headers['content-length'] ?? Number.NaN);
    if (!this.awaitsContinue && length <= this.#context.drainBytes) {
      response.writeHead(answer.status, answer.headers);
      response.end(answer.body);
      request.resume();
      return;
    }
    response.shouldKeepAlive = false;
    response.writeHead(answer.status, answer.headers);
    if (this.awaitsContinue) {
      response.end(answer.body);
      return;
    }
    response.write(answer.body);
    let left = this.#context.drainBytes;
    const timer = setTimeout(() => response.end(), this.#context.lingerMs);
    const end = (): void => {
      clearTimeout(timer);
      request.off('data', take).off('close', end);
      response.end();
    };
    const take = (chunk: Buffer): void => {
      left -= chunk.length;
      if (left < 0) end();
    };
    request.on('data', take).once('end', end).once('close', end);
    request.resume();
  }
}

/** Address of a connection's peer, an IPv4 one never in IPv6 clothes; empty once it is gone. */
export function peerAddress({ remoteAddress = '' }: { readonly remoteAddress?: string | undefined }): string {
  return remoteAddress.startsWith('::ffff:') && remoteAddress.includes('.') ? remoteAddress.slice(7) : remoteAddress;
}

/** The going of a client, told without the machinery of an `AbortController`: every read of a proxied route asks for it. */
class Departure implements Ending {
  readonly #response: ServerResponse;
  readonly #listeners: (() => void)[] = [];

  constructor(response: ServerResponse) {
    this.#response = response;
    response.once('close', () => {
      if (!response.writableFinished) for (const listener of this.#listeners.splice(0)) listener();
    });
  }

  get aborted(): boolean {
    return this.#response.destroyed && !this.#response.writableFinished;
  }

  addEventListener(_type: 'abort', listener: () => void): void {
    this.#listeners.push(listener);
  }

  removeEventListener(_type: 'abort', listener: () => void): void {
    const at = this.#listeners.indexOf(listener);
    if (at !== -1) this.#listeners.splice(at, 1);
  }
}

/** What a handler that threw is answered. The error itself is for the log. */
export function internalError(): Problem {
  return fault('internal_error', 'the gateway failed while it handled the request; its log says why');
}
