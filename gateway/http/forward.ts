import { connect as connectTcp } from 'node:net';
import { Pool } from 'undici';
import type { Ending, UpstreamAnswer } from '../exchange.ts';
import { messageOf } from '../message-of.ts';
import { GaveUp, notSent } from './forward-faults.ts';
import { ForwardHandler } from './forward-handler.ts';
import { mayGoUpstream, requestHeaders } from './upstream-headers.ts';
import { WaitingCalls } from './waiting-calls.ts';

export interface HttpUpstreamOptions {
  /** `http://host:port` or `https://…`, no path. */
  readonly origin: string;
  readonly tls?: {
    readonly ca?: string | Buffer;
    readonly cert?: string | Buffer;
    readonly key?: string | Buffer;
    readonly servername?: string;
  };
  readonly connectTimeoutMs?: number;
  /** Connections at most; a call that finds none free waits for one, no longer than its own time. */
  readonly connections?: number;
  /** Headers of every request, name and value in turn (the operator's `upstream_headers`). */
  readonly headers?: readonly string[];
  /** An idle connection is kept this long, less where the upstream says so. */
  readonly keepAliveMs?: number;
}

/** One request, made from a checked call. The path is sent as it stands: nothing here decodes or tidies it. */
export interface ForwardCall {
  readonly method: string;
  /** Path and query; begins with a slash. */
  readonly rawPath: string;
  /** Name and value in turn. What belongs to a connection, and `Toolgate-*`, is left out. */
  readonly headers: readonly string[];
  readonly body?: string | Uint8Array;
  /** To the first byte of the answer, and for a connection to come free. */
  readonly timeoutMs: number;
  /** Between two pieces of the answer; `timeoutMs` where absent. */
  readonly idleTimeoutMs?: number;
  /** To the last byte of the answer; no end where absent. */
  readonly totalTimeoutMs?: number;
  /** An answer of up to so many bytes is read whole, because somebody reads it; 0 where nobody does. */
  readonly wholeUpTo: number;
  /** Ends the call, also while its answer streams. Given for reads only. */
  readonly abort?: Ending;
  /** Awaited before the first byte can leave; where it rejects nothing is sent. */
  readonly onSending?: () => Promise<void>;
}

export interface HttpUpstream {
  /** Sends one request, once. Never rejects. */
  forward(call: ForwardCall): Promise<UpstreamAnswer>;
  /** Resolves where a connection is taken; rejects with the reason where not. */
  ready(): Promise<void>;
  /** Ends idle connections and lets calls that are on their way finish. */
  close(): Promise<void>;
}

const CONNECT_TIMEOUT_MS = 5_000;
const KEEP_ALIVE_MS = 4_000;
const CONNECTIONS = 1_024;

/** A pool of connections to one upstream. Opens none until the first call. */
export function createHttpUpstream(options: HttpUpstreamOptions): HttpUpstream {
  return new PooledUpstream(options);
}

class PooledUpstream implements HttpUpstream {
  readonly #pool: Pool;
  readonly #origin: URL;
  readonly #connectTimeoutMs: number;
  readonly #waiting = new WaitingCalls();
  readonly #fixed: readonly string[];
  readonly #fixedNames: ReadonlySet<string>;

  constructor(options: HttpUpstreamOptions) {
    this.#origin = new URL(options.origin);
    this.#connectTimeoutMs = options.connectTimeoutMs ?? CONNECT_TIMEOUT_MS;
    const fixed: string[] = [];
    const names = new Set<string>();
    const given = options.headers ?? [];
    for (let at = 0; at + 1 < given.length; at += 2) {
      const name = (given[at] ?? '').toLowerCase();
      if (!mayGoUpstream(name)) continue;
      names.add(name);
      fixed.push(name, given[at + 1] ?? '');
    }
    this.#fixed = fixed;
    this.#fixedNames = names;
    this.#pool = new Pool(this.#origin.origin, {
      connections: options.connections ?? CONNECTIONS,
      // One call to a connection: what ends one call can never touch another, and undici resends nothing.
      pipelining: 1,
      allowH2: false,
      connect: { timeout: this.#connectTimeoutMs, ...options.tls },
      keepAliveTimeout: options.keepAliveMs ?? KEEP_ALIVE_MS,
      keepAliveMaxTimeout: 60_000,
    });
  }

  forward(call: ForwardCall): Promise<UpstreamAnswer> {
    if (call.onSending === undefined) return this.#send(call);
    return call.onSending().then(
      () => this.#send(call),
      (error: unknown) => ({
        kind: 'not_sent',
        code: 'not_recorded',
        why: `the call could not be recorded (${messageOf(error)})`,
      }),
    );
  }

  #send(call: ForwardCall): Promise<UpstreamAnswer> {
    return new Promise((resolve) => {
      // undici would send a whole URL as an absolute-form target, for a proxy to follow.
      if (!call.rawPath.startsWith('/')) {
        resolve({ kind: 'not_sent', code: 'bad_path', why: 'the path of the request does not begin with a slash' });
        return;
      }
      if (call.abort?.aborted === true) {
        resolve(notSent(new GaveUp('client_gone', 'the client went away')));
        return;
      }
      const handler = new ForwardHandler(call, resolve);
      try {
        this.#pool.dispatch(
          {
            method: call.method,
            path: call.rawPath,
            headers: requestHeaders(call.headers, this.#fixed, this.#fixedNames),
            body: call.body ?? null,
            headersTimeout: call.timeoutMs,
            bodyTimeout: call.idleTimeoutMs ?? call.timeoutMs,
          },
          handler,
        );
        if (handler.waits) this.#waiting.add(handler);
      } catch (error) {
        handler.onResponseError(undefined, error instanceof Error ? error : new TypeError(String(error)));
      }
    });
  }

  ready(): Promise<void> {
    const { hostname, port, protocol } = this.#origin;
    const host = hostname.startsWith('[') ? hostname.slice(1, -1) : hostname;
    return new Promise((resolve, reject) => {
      const socket = connectTcp({ host, port: port === '' ? (protocol === 'https:' ? 443 : 80) : Number(port) });
      const end = (error?: Error): void => {
        clearTimeout(timer);
        socket.destroy();
        if (error === undefined) resolve();
        else reject(error);
      };
      const timer = setTimeout(() => end(new Error('the upstream took no connection in time')), this.#connectTimeoutMs);
      socket.once('connect', () => end()).once('error', (error) => end(new Error(whyOf(error), { cause: error })));
    });
  }

  async close(): Promise<void> {
    await this.#pool.close();
    this.#waiting.close();
  }
}

function whyOf(error: unknown): string {
  const answer = notSent(error);
  return answer.why;
}
