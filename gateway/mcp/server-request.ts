import { isInputRequiredResult, SdkError, SdkErrorCode } from '@modelcontextprotocol/client';
import type { JsonObject } from '../../receipts/json-value.ts';
import type { AskedOfClient, CallRelay, Ending } from '../exchange.ts';
import { ANY_RESULT } from './any-result.ts';
import { AskFault, isSessionLost } from './call-fault.ts';
import { FETCH_WATCH } from './http-fetch.ts';
import { IdleTimer } from './idle-timer.ts';
import type { ServerConnection } from './server-connection.ts';
import type { ActiveCall, Link } from './server-links.ts';
import { objectFromWire, objectToWire } from './wire-digits.ts';

/** One request to a server. */
export interface ServerRequest {
  readonly method: string;
  readonly params: JsonObject;
  readonly relay?: CallRelay;
  /** Ends it when nothing was heard of it for so long. */
  readonly timeoutMs: number;
  /** Ends it (a read whose client went away). */
  readonly abort?: Ending;
  /** Awaited once there is a connection and before the first byte leaves. */
  readonly onSending?: () => Promise<void>;
  /** In the place of the client's, in `_meta` and as a header. */
  readonly traceparent?: string;
  /** Whether the server may ask the client for more (`input_required`). */
  readonly mayAsk: boolean;
}

/** Rounds in which a server may ask for more before it has to answer. */
const MAX_ROUNDS = 16;

/**
 * Sends one request, once, and resolves with its result. Rejects with `LinkFault` where it was not sent, with the SDK's
 * errors otherwise. A server that knows the session no more has refused the request: it is sent again, in a new one.
 */
export async function requestServer(connection: ServerConnection, request: ServerRequest): Promise<JsonObject> {
  const { relay } = request;
  const first = await connection.link(relay);
  await request.onSending?.();
  try {
    return await finish(first, request);
  } catch (error) {
    if (!isSessionLost(error)) throw error;
    connection.forget(relay);
    return finish(await connection.link(relay), request);
  }
}

async function finish(
  { link, once }: { readonly link: Link; readonly once: boolean },
  request: ServerRequest,
): Promise<JsonObject> {
  try {
    return await rounds(link, request);
  } finally {
    if (once) await link.end();
  }
}

async function rounds(link: Link, request: ServerRequest): Promise<JsonObject> {
  const { relay, mayAsk } = request;
  // Answers that came unasked are for a server that may ask, and that knows how to read them.
  const unasked = mayAsk && link.client.getProtocolEra() === 'modern' ? relay?.answers : undefined;
  let params: JsonObject = unasked === undefined ? request.params : { ...request.params, inputResponses: unasked };
  for (let round = 0; round < MAX_ROUNDS; round += 1) {
    const result = await send(link, request, params);
    if (!isInputRequiredResult(result)) return result;
    if (relay === undefined || !mayAsk) {
      throw new AskFault('not_trusted', 'the server asks its client for more, which this route does not let it');
    }
    const questions = readQuestions(result['inputRequests']);
    const answers = Object.keys(questions).length === 0 ? {} : await relay.ask(questions);
    const state = result['requestState'];
    params = {
      ...request.params,
      ...(Object.keys(answers).length === 0 ? {} : { inputResponses: answers }),
      ...(typeof state === 'string' ? { requestState: state } : {}),
    };
  }
  throw new AskFault('no_answer', `the server asked its client ${MAX_ROUNDS} times and did not answer`);
}

/** Longest time that the SDK's own timer can be set to: the one here ends the request before. */
const NEVER_MS = 2_147_483_647;

async function send(link: Link, request: ServerRequest, params: JsonObject): Promise<JsonObject> {
  const { relay, timeoutMs, method, abort, traceparent } = request;
  const ending = new AbortController();
  const end = (error: SdkError): void => ending.abort(error);
  const idle = new IdleTimer(timeoutMs, () =>
    end(new SdkError(SdkErrorCode.RequestTimeout, 'nothing was heard of the request in time')),
  );
  const cancel = (): void => end(new SdkError(SdkErrorCode.RequestTimeout, 'cancelled'));
  const signals = [abort, relay?.cancelled].filter((signal) => signal !== undefined);
  for (const signal of signals) {
    if (signal.aborted) cancel();
    else signal.addEventListener('abort', cancel, { once: true });
  }
  const ended = relay === undefined ? undefined : begin(link, relay, idle);
  const watch = {
    streamEnded: () => end(new SdkError(SdkErrorCode.ConnectionClosed, 'the stream of the answer ended without one')),
    traceparent,
  };
  const passed = relay?.meta ?? {};
  const meta = traceparent === undefined ? passed : { ...passed, traceparent };
  const sent = Object.keys(meta).length === 0 ? params : { ...params, _meta: { ...meta } };
  try {
    const result = await FETCH_WATCH.run(watch, () =>
      link.client.request({ method, params: objectToWire(sent) }, ANY_RESULT, {
        timeout: NEVER_MS,
        signal: ending.signal,
        allowInputRequired: true,
        ...(relay?.progress === undefined
          ? {}
          : {
              onprogress: (progress) => {
                idle.heard();
                relay.progress?.(objectFromWire(progress));
              },
            }),
      }),
    );
    return objectFromWire(result);
  } finally {
    idle.stop();
    ended?.();
    for (const signal of signals) signal.removeEventListener('abort', cancel);
  }
}

/** Makes the call one that is on its way: what the server says of it is heard, and while its client is asked its time stands still. */
function begin(link: Link, relay: CallRelay, idle: IdleTimer): () => void {
  const timed: ActiveCall = {
    ...relay,
    heard: () => idle.heard(),
    notify: (method, params) => {
      idle.heard();
      relay.notify(method, params);
    },
    ask: (questions) => idle.pausedFor(() => relay.ask(questions)),
  };
  link.active.add(timed);
  if (relay.quiet === true) link.filtered = true;
  return () => {
    link.active.delete(timed);
  };
}

function readQuestions(value: unknown): Readonly<Record<string, AskedOfClient>> {
  const questions: Record<string, AskedOfClient> = {};
  if (typeof value !== 'object' || value === null) return questions;
  for (const [name, asked] of Object.entries(value)) {
    if (typeof asked !== 'object' || asked === null || Array.isArray(asked)) continue;
    const { method, params } = asked as JsonObject;
    if (typeof method !== 'string') continue;
    const isObject = typeof params === 'object' && params !== null && !Array.isArray(params);
    questions[name] = { method, ...(isObject ? { params: params as JsonObject } : {}) };
  }
  return questions;
}
