import type { Caller } from '../../policy/call.ts';
import type { JsonObject } from '../../receipts/json-value.ts';
import type { AskedOfClient, CallRelay } from '../exchange.ts';
import type { Gateway } from '../gateway.ts';
import type { TraceCarrier } from '../tracing/span.ts';
import type { ServerRegistry } from './server-registry.ts';

/** What every request of an endpoint has at hand. */
export interface EndpointContext {
  readonly gateway: Gateway;
  readonly registry: ServerRegistry;
  readonly caller: Caller;
  /** The server of `/mcp/{server}`; absent for `/mcp`. */
  readonly server: string | undefined;
  /** Name of the history that its calls stand in where they name none. */
  readonly session: string;
  /** What the client says that it can be asked. */
  readonly capabilities: JsonObject;
  /** Names the client's session to servers. */
  readonly link: string;
  readonly era: 'legacy' | 'modern';
  /** Members of the newer era's envelope that are for the server: the level from which on it may log. */
  readonly envelope: JsonObject;
}

/** One request of a client, and how it is talked to while the request runs. */
export interface ClientRequest {
  readonly method: string;
  readonly params: JsonObject;
  readonly notify: (method: string, params: JsonObject) => void;
  readonly ask: (questions: Readonly<Record<string, AskedOfClient>>) => Promise<Readonly<Record<string, JsonObject>>>;
  /** Answers that came with the request though nobody had asked (the newer era). */
  readonly answers?: Readonly<Record<string, JsonObject>>;
  readonly cancelled: AbortSignal;
  /** Trace context of the HTTP request that it came by. */
  readonly trace?: TraceCarrier;
}

/** What a server hears of the client behind a request. Its `_meta` goes along, without what is the gateway's or the connection's own. */
export function relayOf(context: EndpointContext, request: ClientRequest): CallRelay {
  const meta = metaOf(request.params);
  const { progressToken } = meta;
  const asksForProgress = typeof progressToken === 'string' || typeof progressToken === 'number';
  const passed = Object.entries(meta).filter(
    ([name]) =>
      name !== 'progressToken' &&
      !name.toLowerCase().startsWith('toolgate/') &&
      !name.startsWith('io.modelcontextprotocol/'),
  );
  return {
    link: context.link,
    era: context.era,
    meta: { ...Object.fromEntries(passed), ...context.envelope },
    capabilities: context.capabilities,
    notify: request.notify,
    ask: request.ask,
    ...(request.answers === undefined ? {} : { answers: request.answers }),
    cancelled: request.cancelled,
    ...(asksForProgress
      ? { progress: (params) => request.notify('notifications/progress', { ...params, progressToken }) }
      : {}),
  };
}

/** `_meta` of a request; empty where it has none. */
export function metaOf(params: JsonObject): JsonObject {
  const meta = params['_meta'];
  return typeof meta === 'object' && meta !== null && !Array.isArray(meta) ? (meta as JsonObject) : {};
}
