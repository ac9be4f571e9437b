import { AsyncLocalStorage } from 'node:async_hooks';
import type { FetchLike } from '@modelcontextprotocol/client';
import { Agent, fetch as undiciFetch } from 'undici';
import { DigitKeeper } from './wire-digits.ts';

/** One request on its way, as the fetch below it sees it. */
export interface FetchWatch {
  /** The stream of the answer ended, or broke, and the server gave no means to go on from there. */
  streamEnded(): void;
  /** Sent with it. */
  readonly traceparent?: string | undefined;
}

/** Ties what is fetched to the request that it is fetched for: the SDK's transport knows requests by their ids alone. */
export const FETCH_WATCH: AsyncLocalStorage<FetchWatch> = new AsyncLocalStorage();

const CONNECT_TIMEOUT_MS = 5_000;
const CONNECTIONS = 1_024;
/** The end of a stream is told only after what stood before it has been read. */
const SETTLE_MS = 50;

/** Fetches from one server. Follows no redirect, sets no time limit once connected: requests bring their own. */
export interface ServerFetch {
  readonly fetch: FetchLike;
  close(): Promise<void>;
}

/** @param headers Sent with every request (the operator's `upstream_headers`), name and value in turn. */
export function createServerFetch(headers: readonly string[]): ServerFetch {
  const agent = new Agent({
    connections: CONNECTIONS,
    pipelining: 1,
    connect: { timeout: CONNECT_TIMEOUT_MS },
    headersTimeout: 0,
    bodyTimeout: 0,
    allowH2: false,
  });
  return {
    fetch: async (url, init) => {
      const sent = new Headers(init?.headers);
      const watch = FETCH_WATCH.getStore();
      if (watch?.traceparent !== undefined) sent.set('traceparent', watch.traceparent);
      for (let at = 0; at + 1 < headers.length; at += 2) sent.set(headers[at] ?? '', headers[at + 1] ?? '');
      const response = await undiciFetch(url, {
        method: init?.method ?? 'GET',
        headers: [...sent],
        redirect: 'manual',
        dispatcher: agent,
        ...(typeof init?.body === 'string' ? { body: init.body } : {}),
        ...(init?.signal ? { signal: init.signal } : {}),
      });
      const { status, statusText } = response;
      const answer = new Response(response.body as ReadableStream<Uint8Array> | null, {
        status,
        statusText,
        headers: [...response.headers],
      });
      return keepDigits(answer, watch);
    },
    close: () => agent.destroy(),
  };
}

function keepDigits(response: Response, watch: FetchWatch | undefined): Response {
  const { body, status, headers } = response;
  const type = headers.get('content-type') ?? '';
  const isStream = type.startsWith('text/event-stream');
  if (body === null || (!isStream && !type.startsWith('application/json'))) return response;
  const keeper = new DigitKeeper(isStream ? 'events' : 'json');
  const kept = ReadableStream.from(keepPieces(body, keeper, isStream ? watch : undefined));
  const changed = new Headers(headers);
  changed.delete('content-length');
  changed.delete('content-encoding');
  return new Response(kept, { status, statusText: response.statusText, headers: changed });
}

async function* keepPieces(
  body: ReadableStream<Uint8Array>,
  keeper: DigitKeeper,
  watch: FetchWatch | undefined,
): AsyncGenerator<Uint8Array> {
  const ids = new IdFinder();
  try {
    for await (const piece of body) {
      if (watch !== undefined) ids.push(piece);
      yield keeper.push(piece);
    }
    yield keeper.end();
  } finally {
    // An event with an id is where the SDK's transport goes on from by itself.
    if (watch !== undefined && !ids.found) setTimeout(() => watch.streamEnded(), SETTLE_MS).unref();
  }
}

/** Finds whether an event stream has a line `id:`. */
class IdFinder {
  found = false;
  #line = '';

  push(piece: Uint8Array): void {
    if (this.found) return;
    for (const code of piece) {
      if (code === 0x0a || code === 0x0d) this.#line = '';
      else if (this.#line.length < 3) {
        this.#line += String.fromCharCode(code);
        if (this.#line === 'id:') this.found = true;
      }
    }
  }
}
