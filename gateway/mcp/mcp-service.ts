import {
  CLIENT_CAPABILITIES_META_KEY,
  CLIENT_INFO_META_KEY,
  classifyInboundRequest,
  createMcpHandler,
  LOG_LEVEL_META_KEY,
  type McpHttpHandler,
} from '@modelcontextprotocol/server';
import type { Caller } from '../../policy/call.ts';
import { canonicalize } from '../../receipts/canonical.ts';
import { isObject, type JsonObject } from '../../receipts/json-value.ts';
import type { Gateway } from '../gateway.ts';
import { type Authenticator, callerOf } from '../http/authenticate.ts';
import { readJsonBody } from '../http/body.ts';
import type { EdgeExchange } from '../http/edge-exchange.ts';
import { fault, renderJson } from '../http/problems.ts';
import type { Homes } from '../workers/homes.ts';
import { ModernAnswerer } from './answer-modern.ts';
import { type EndpointContext, metaOf } from './client-call.ts';
import { makeServer } from './endpoint-server.ts';
import { LegacySessions } from './legacy-sessions.ts';
import type { ServerRegistry } from './server-registry.ts';
import { verifySessionId } from './session-id.ts';
import { toWebRequest, writeRpcProblem, writeWebResponse } from './web-exchange.ts';

export interface McpServiceOptions {
  readonly gateway: Gateway;
  readonly registry: ServerRegistry;
  /** How often an idle stream is kept open by a comment, in milliseconds. */
  readonly keepAliveMs?: number;
  /** Where sessions and waiting calls live, where this process is one of several workers. */
  readonly homes?: Homes;
}

const KEEP_ALIVE_MS = 15_000;
const PURGE_MS = 60_000;
/** The largest message of the endpoint over all routes where no route says more, in bytes. */
const LEAST_LIMIT_BYTES: number = 1 << 20;

/** The MCP endpoints of a process: `/mcp` over all routes, `/mcp/{server}` for one. */
export class McpService {
  readonly #options: McpServiceOptions;
  readonly #legacy: LegacySessions;
  readonly #modern: ModernAnswerer;
  readonly #handlers = new Map<string, McpHttpHandler>();
  readonly #contexts = new WeakMap<Request, EndpointContext>();
  readonly #purging: NodeJS.Timeout;

  constructor(options: McpServiceOptions) {
    const { gateway, registry, keepAliveMs = KEEP_ALIVE_MS, homes } = options;
    const random = (): string => Buffer.from(gateway.random(16)).toString('base64url');
    // What begins in this process is answered in it.
    const newId = homes === undefined ? random : () => homes.idOfHere(random);
    this.#options = options;
    this.#legacy = new LegacySessions({ gateway, registry, keepAliveMs, newId });
    this.#modern = new ModernAnswerer(gateway, newId);
    this.#purging = setInterval(() => this.#legacy.purge(), PURGE_MS);
    this.#purging.unref();
    gateway.stopping.addEventListener('abort', () => this.close(), { once: true });
  }

  /**
   * Answers one request of an endpoint.
   * @param server The server of `/mcp/{server}`; absent for `/mcp`.
   */
  async handle(exchange: EdgeExchange, authenticate: Authenticator, server: string | undefined): Promise<void> {
    const identity = authenticate(exchange.header('authorization'), exchange.request.socket);
    if ('problem' in identity) return exchange.problem(identity.problem);
    const caller = callerOf(identity);
    if ('problem' in caller) return exchange.problem(caller.problem);
    if (!this.#reaches(caller, server))
      return exchange.problem(fault('no_route', 'there is no MCP endpoint of that name'));
    const unread = unreadHeader(exchange);
    if (unread !== undefined) {
      const detail = `the header \`${unread}\` is not read here; members of a call go in \`_meta\` of its message`;
      return writeRpcProblem(exchange, fault('bad_member', detail), -32600);
    }
    if (exchange.method === 'POST') return this.#post(exchange, caller, server);
    if (exchange.method === 'GET' || exchange.method === 'DELETE') return this.#legacyOnly(exchange, caller, server);
    exchange.problem(fault('method_not_allowed', 'this path takes POST, GET, DELETE'), ['POST', 'GET', 'DELETE']);
  }

  /** The catalogue has other tools than before: clients are told. */
  toolsChanged(): void {
    this.#legacy.toolsChanged();
    for (const { notify } of this.#handlers.values()) notify.toolsChanged();
  }

  /** Ends every stream, so that no client keeps the process from ending. */
  close(): void {
    clearInterval(this.#purging);
    this.#legacy.close();
    this.#modern.close();
    for (const handler of this.#handlers.values()) {
      handler
        .close()
        .catch((error: unknown) => this.#options.gateway.log.debug({ err: error }, 'an MCP endpoint did not close'));
    }
    this.#handlers.clear();
  }

  /** What a caller cannot reach is not there for it. */
  #reaches(caller: Caller, server: string | undefined): boolean {
    if (server === undefined) return true;
    const route = this.#options.gateway.loaded.mcp.routes.get(server);
    return route !== undefined && [...caller.agents].some((agent) => route.agents.has(agent));
  }

  async #post(exchange: EdgeExchange, caller: Caller, server: string | undefined): Promise<void> {
    const read = await readJsonBody(exchange, this.#limitOf(server));
    if ('problem' in read) {
      const isParsing = read.problem.code === 'bad_json';
      return writeRpcProblem(exchange, read.problem, isParsing ? -32700 : -32600);
    }
    const { value } = read;
    if (!isObject(value)) {
      const detail = 'one message goes in one POST, as a JSON object; batches are not taken';
      return writeRpcProblem(exchange, fault('bad_request', detail), -32600);
    }
    const route = classifyInboundRequest({ httpMethod: 'POST', body: value, ...standardHeaders(exchange) });
    if (route.kind === 'legacy') return this.#postLegacy(exchange, caller, server, value);
    if (await this.#passOn(exchange, await this.#waitingCall(value), value)) return;
    const request = toWebRequest(exchange, exchange.gone);
    this.#contexts.set(request, this.#modernContext(caller, server, value));
    const answer = await this.#handler(server).fetch(request, { parsedBody: value });
    await writeWebResponse(exchange, answer);
  }

  async #postLegacy(
    exchange: EdgeExchange,
    caller: Caller,
    server: string | undefined,
    value: JsonObject,
  ): Promise<void> {
    const request = toWebRequest(exchange);
    if (value['method'] === 'initialize') {
      return writeWebResponse(exchange, await this.#legacy.open(caller, server, request, value));
    }
    await this.#passLegacy(exchange, caller, server, request, value);
  }

  /** GET and DELETE belong to sessions, which the newer era has none of. */
  #legacyOnly(exchange: EdgeExchange, caller: Caller, server: string | undefined): Promise<void> {
    return this.#passLegacy(exchange, caller, server, toWebRequest(exchange), undefined);
  }

  async #passLegacy(
    exchange: EdgeExchange,
    caller: Caller,
    server: string | undefined,
    request: Request,
    body: JsonObject | undefined,
  ): Promise<void> {
    const id = idOf(body);
    if (exchange.header('mcp-session-id') === undefined) {
      const detail =
        'the request names no session; begin with `initialize`, and send the `Mcp-Session-Id` that it answers';
      return writeRpcProblem(exchange, fault('bad_request', detail), -32000, id);
    }
    if (await this.#passOn(exchange, this.#sessionOf(exchange), body)) return;
    const answer = await this.#legacy.handle(caller, server, request, body);
    if (answer === undefined) {
      return writeRpcProblem(
        exchange,
        fault('not_found', 'the session is not known here; begin with `initialize`'),
        -32001,
        id,
      );
    }
    await writeWebResponse(exchange, answer);
  }

  /** Whether the worker where the conversation of this id lives answers in this one's place. */
  async #passOn(exchange: EdgeExchange, id: string | undefined, body: JsonObject | undefined): Promise<boolean> {
    const { homes } = this.#options;
    if (homes === undefined || id === undefined) return false;
    return homes.passOn(exchange, id, body === undefined ? undefined : renderJson(body));
  }

  #sessionOf(exchange: EdgeExchange): string | undefined {
    if (this.#options.homes === undefined) return undefined;
    return verifySessionId(this.#options.gateway, exchange.header('mcp-session-id') ?? '')?.id;
  }

  async #waitingCall(message: JsonObject): Promise<string | undefined> {
    const params = message['params'];
    return this.#options.homes !== undefined && isObject(params) ? this.#modern.callOf(params) : undefined;
  }

  #handler(server: string | undefined): McpHttpHandler {
    const key = server ?? '';
    const known = this.#handlers.get(key);
    if (known !== undefined) return known;
    const { gateway, keepAliveMs = KEEP_ALIVE_MS } = this.#options;
    const handler = createMcpHandler(
      ({ requestInfo }) => {
        const context = requestInfo === undefined ? undefined : this.#contexts.get(requestInfo);
        if (requestInfo === undefined || context === undefined) throw new Error('an MCP request has no caller');
        return makeServer(
          () => context,
          (now, request, params) => this.#modern.answer(now, request, params),
          requestInfo.headers.get('mcp-method') ?? '',
        );
      },
      {
        legacy: 'reject',
        keepAliveMs,
        onerror: (error) => gateway.log.debug({ err: error }, 'a request of an MCP client'),
      },
    );
    this.#handlers.set(key, handler);
    return handler;
  }

  /** The newer era has no sessions: one is derived from who calls with what client, unless the call names one. */
  #modernContext(caller: Caller, server: string | undefined, message: JsonObject): EndpointContext {
    const { gateway, registry } = this.#options;
    const params = message['params'];
    const meta = isObject(params) ? metaOf(params) : {};
    const info = meta[CLIENT_INFO_META_KEY];
    const capabilities = meta[CLIENT_CAPABILITIES_META_KEY];
    const level = meta[LOG_LEVEL_META_KEY];
    const client = isObject(info) && typeof info['name'] === 'string' ? info['name'] : '';
    const derived = gateway.keyed(canonicalize(['mcp session', caller.name, client])).slice(0, 22);
    return {
      gateway,
      registry,
      caller,
      server,
      session: `mcp-${derived}`,
      capabilities: isObject(capabilities) ? capabilities : {},
      link: derived,
      era: 'modern',
      envelope: level === undefined ? {} : { [LOG_LEVEL_META_KEY]: level },
    };
  }

  #limitOf(server: string | undefined): number {
    const { routes } = this.#options.gateway.loaded.mcp;
    if (server !== undefined) return routes.get(server)?.limitBytes ?? LEAST_LIMIT_BYTES;
    return Math.max(LEAST_LIMIT_BYTES, ...[...routes.values()].map(({ limitBytes }) => limitBytes));
  }
}

function standardHeaders(exchange: EdgeExchange): {
  readonly protocolVersionHeader?: string;
  readonly mcpMethodHeader?: string;
  readonly mcpNameHeader?: string;
} {
  const version = exchange.header('mcp-protocol-version');
  const method = exchange.header('mcp-method');
  const name = exchange.header('mcp-name');
  return {
    ...(version === undefined ? {} : { protocolVersionHeader: version }),
    ...(method === undefined ? {} : { mcpMethodHeader: method }),
    ...(name === undefined ? {} : { mcpNameHeader: name }),
  };
}

/**
 * A header that means something on the routes: whoever sends one counts on it (on an agent, a receipt, a key under which
 * a write is made once), and would not learn that it was passed over.
 */
function unreadHeader({ request }: EdgeExchange): string | undefined {
  return Object.keys(request.headers).find((name) => name.startsWith('toolgate-') || name === 'idempotency-key');
}

function idOf(message: JsonObject | undefined): string | number | null {
  const id = message?.['id'];
  return typeof id === 'string' || typeof id === 'number' ? id : null;
}
