import { type Server, WebStandardStreamableHTTPServerTransport } from '@modelcontextprotocol/server';
import { LRUCache } from 'lru-cache';
import type { Caller } from '../../policy/call.ts';
import { type JsonObject, objectOf } from '../../receipts/json-value.ts';
import type { Gateway } from '../gateway.ts';
import { answerLegacy } from './answer-legacy.ts';
import type { EndpointContext } from './client-call.ts';
import { makeServer } from './endpoint-server.ts';
import { EventLog } from './event-log.ts';
import { allowsMethod, isNotification } from './methods.ts';
import type { ServerRegistry } from './server-registry.ts';
import { makeClaims, renderSessionId, type SessionClaims, verifySessionId } from './session-id.ts';
import { objectFromWire, objectToWire } from './wire-digits.ts';

/** A session of the older era in this process. */
interface LegacySession {
  readonly claims: SessionClaims;
  readonly server: Server;
  readonly transport: WebStandardStreamableHTTPServerTransport;
  readonly stopListening: () => void;
  /** What the credential may do now, which a reload may have changed. */
  readonly callAs: (caller: Caller) => void;
}

export interface LegacyOptions {
  readonly gateway: Gateway;
  readonly registry: ServerRegistry;
  readonly keepAliveMs: number;
  /** Makes an id that nobody has. */
  readonly newId: () => string;
}

const MAX_SESSIONS = 20_000;
const IDLE_MS: number = 60 * 60_000;

/**
 * Sessions of the older era. A session is what its signed id says: a process that has not seen it before goes on with it,
 * so that it does not matter which process of a store a request reaches.
 */
export class LegacySessions {
  readonly #options: LegacyOptions;
  readonly #sessions: LRUCache<string, Promise<LegacySession>>;
  /** Ids that their clients ended. */
  readonly #ended = new LRUCache<string, true>({ max: MAX_SESSIONS, ttl: 24 * IDLE_MS });

  constructor(options: LegacyOptions) {
    this.#options = options;
    this.#sessions = new LRUCache({
      max: MAX_SESSIONS,
      ttl: IDLE_MS,
      updateAgeOnGet: true,
      dispose: (session) => {
        session.then(
          (made) => this.#close(made),
          () => undefined,
        );
      },
    });
  }

  /** Begins a session for an `initialize` request; resolves with the answer. */
  async open(caller: Caller, server: string | undefined, request: Request, body: JsonObject): Promise<Response> {
    const { gateway, newId } = this.#options;
    const { protocolVersion, capabilities, clientInfo } = objectOf(body['params']);
    const claims = makeClaims(newId(), {
      caller: caller.name,
      ...(server === undefined ? {} : { server }),
      protocolVersion: typeof protocolVersion === 'string' ? protocolVersion.slice(0, 32) : '',
      capabilities: objectOf(capabilities),
      clientInfo: objectOf(clientInfo),
    });
    const id = renderSessionId(gateway, claims);
    const session = await this.#make(claims, caller, id);
    this.#sessions.set(claims.id, Promise.resolve(session));
    return session.transport.handleRequest(request, { parsedBody: body });
  }

  /** Passes a request on to the session that it names; `undefined` where this caller has none of that id at this endpoint. */
  async handle(
    caller: Caller,
    server: string | undefined,
    request: Request,
    body: JsonObject | undefined,
  ): Promise<Response | undefined> {
    const id = request.headers.get('mcp-session-id') ?? '';
    const claims = verifySessionId(this.#options.gateway, id);
    if (claims === undefined || claims.caller !== caller.name || claims.server !== server) return undefined;
    if (this.#ended.has(claims.id)) return undefined;
    let session = this.#sessions.get(claims.id);
    if (session === undefined) {
      const adopted = this.#adopt(claims, caller, id, request.url);
      session = adopted;
      this.#sessions.set(claims.id, adopted);
      adopted.catch(() => this.#sessions.delete(claims.id));
    }
    const { transport, callAs } = await session;
    callAs(caller);
    return transport.handleRequest(request, body === undefined ? {} : { parsedBody: body });
  }

  /** Tells every client that its tools may be others now. */
  toolsChanged(): void {
    for (const session of this.#sessions.values()) {
      session.then(({ server }) => server.sendToolListChanged()).catch((error: unknown) => this.#note(error));
    }
  }

  /** Ends sessions that were idle for too long. */
  purge(): void {
    this.#sessions.purgeStale();
    this.#ended.purgeStale();
  }

  /** Ends every stream. */
  close(): void {
    this.#sessions.clear();
  }

  async #make(claims: SessionClaims, caller: Caller, id: string): Promise<LegacySession> {
    const { gateway, registry, keepAliveMs } = this.#options;
    let context: EndpointContext = {
      gateway,
      registry,
      caller,
      server: claims.server,
      session: `mcp-${claims.id}`,
      capabilities: claims.capabilities,
      link: claims.id,
      era: 'legacy',
      envelope: {},
    };
    const server = await makeServer(() => context, answerLegacy);
    server.onerror = (error) => this.#note(error);
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: () => id,
      eventStore: new EventLog(),
      keepAliveMs,
      onsessionclosed: () => {
        this.#ended.set(claims.id, true);
        this.#sessions.delete(claims.id);
      },
    });
    await server.connect(transport);
    const route = claims.server === undefined ? undefined : gateway.loaded.mcp.routes.get(claims.server);
    const stopListening =
      route?.source.kind === 'mcp'
        ? registry.get(route).voice.listen(claims.id, (method, params) => {
            // That tools are others is told when the catalogue has them.
            if (method === 'notifications/tools/list_changed') return;
            server.notification({ method, params: objectToWire(params) }).catch((error: unknown) => this.#note(error));
          })
        : () => undefined;
    server.fallbackNotificationHandler = async ({ method, params }) => {
      if (route?.source.kind !== 'mcp' || !isNotification(method) || !allowsMethod(route.methods, method)) return;
      await registry.get(route).tellServer(claims.id, method, objectFromWire(params ?? {}));
    };
    const callAs = (now: Caller): void => {
      if (now !== context.caller) context = { ...context, caller: now };
    };
    return { claims, server, transport, stopListening, callAs };
  }

  /** Goes on with a session of another process, or of this one before it was started again: the handshake is repeated within. */
  async #adopt(claims: SessionClaims, caller: Caller, id: string, url: string): Promise<LegacySession> {
    const session = await this.#make(claims, caller, id);
    const { protocolVersion, capabilities, clientInfo } = claims;
    const handshake = new Request(url, {
      method: 'POST',
      headers: { accept: 'application/json, text/event-stream', 'content-type': 'application/json' },
    });
    const parsedBody = {
      jsonrpc: '2.0',
      id: 'adopted',
      method: 'initialize',
      params: { protocolVersion, capabilities, clientInfo },
    };
    const answer = await session.transport.handleRequest(handshake, { parsedBody });
    await answer.text();
    return session;
  }

  async #close({ claims, server, stopListening }: LegacySession): Promise<void> {
    stopListening();
    this.#options.registry.endLink(claims.id);
    await server.close().catch((error: unknown) => this.#note(error));
  }

  #note(error: unknown): void {
    this.#options.gateway.log.debug({ err: error }, 'a session of an MCP client');
  }
}
