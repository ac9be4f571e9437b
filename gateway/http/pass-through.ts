import { type ClientRequest, Agent as HttpAgent, type IncomingMessage } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import { Socket } from 'node:net';
import { ProxyServer } from 'http-proxy-3';
import type { Problem } from '../exchange.ts';
import type { EdgeExchange } from './edge-exchange.ts';
import { connectionOptions, foldHeaderName, HOP_BY_HOP, isGatewayHeader, isOfTheWay } from './headers.ts';
import { fault } from './problems.ts';
import { endRaw } from './raw-answer.ts';
import type { EdgeUpgrade } from './server.ts';

export interface PassThroughOptions {
  /** `http://host:port` or `https://…`, no path. */
  readonly origin: string;
  readonly tls?: {
    readonly ca?: string | Buffer;
    readonly cert?: string | Buffer;
    readonly key?: string | Buffer;
    readonly servername?: string;
  };
  readonly connectTimeoutMs?: number;
  /** Between two pieces of a request or an answer. Upgraded connections have no end. */
  readonly idleTimeoutMs?: number;
  /** The caller's Authorization goes on (`pass_authorization`). */
  readonly passAuthorization: boolean;
  /** Headers of every request, name and value in turn (the operator's `upstream_headers`). */
  readonly headers?: readonly string[];
}

/** How one request is passed on. */
export interface PassedRequest {
  /** Path and query for the upstream, sent as they stand; begins with a slash. */
  readonly rawPath: string;
  /** `X-Forwarded-*`, `Forwarded` and what else the gateway writes in the place of the client's, name and value in turn. */
  readonly forwarded: readonly string[];
  /** Told why a request was not passed on, or broke off, for the log. */
  readonly onError?: (error: Error) => void;
}

/** What lets the `pass:` paths of a route through unchecked: uploads, health pages, WebSockets. */
export interface PassThrough {
  /** Why a request cannot be passed on, before anything is sent. */
  faultOf(exchange: EdgeExchange, maxBytes: number): Problem | undefined;
  /**
   * Passes a request on that has no fault.
   * @param maxBytes A body of more is 413, and what was sent of it is broken off.
   */
  web(exchange: EdgeExchange, passed: PassedRequest, maxBytes: number): void;
  /** Passes an upgrade on and joins the two connections. */
  upgrade(upgrade: EdgeUpgrade, passed: PassedRequest): void;
  /** Ends every upgraded connection, and takes no other. */
  endUpgrades(): void;
  /** Ends every upgraded and idle connection. */
  close(): void;
}

const CONNECT_TIMEOUT_MS = 5_000;
const IDLE_TIMEOUT_MS = 120_000;

/** Methods whose chunked body node:http would send without framing it. */
const UNFRAMED: ReadonlySet<string> = new Set(['DELETE', 'OPTIONS']);

const FRAMING: ReadonlySet<string> = new Set(['transfer-encoding', 'content-length']);

/** Makes the pass-through of one upstream, over connections that are kept. */
export function createPassThrough(options: PassThroughOptions): PassThrough {
  return new Passage(options);
}

class Passage implements PassThrough {
  readonly #options: PassThroughOptions;
  readonly #agent: HttpAgent;
  readonly #proxy: ProxyServer;
  /** Names of the headers of every request, in lower case. */
  readonly #fixed: ReadonlySet<string>;
  readonly #upgraded = new Set<Socket>();
  #ended = false;
  /** Requests whose body became too large: what was sent of them is broken off. */
  readonly #refused = new WeakSet<IncomingMessage>();
  readonly #sending = new WeakMap<IncomingMessage, ClientRequest>();

  constructor(options: PassThroughOptions) {
    const idleTimeoutMs = options.idleTimeoutMs ?? IDLE_TIMEOUT_MS;
    this.#options = options;
    this.#fixed = new Set(
      (options.headers ?? []).filter((_, at) => at % 2 === 0).map((name) => foldHeaderName(name.toLowerCase())),
    );
    this.#agent = options.origin.startsWith('https:')
      ? new HttpsAgent({ keepAlive: true, ...options.tls })
      : new HttpAgent({ keepAlive: true });
    this.#proxy = new ProxyServer({
      target: options.origin,
      agent: this.#agent,
      changeOrigin: true,
      // The target is sent as it came, which the edge has held to one reading, and not as a URL parser would tidy it.
      toProxy: true,
      xfwd: false,
      followRedirects: false,
      connectTimeout: options.connectTimeoutMs ?? CONNECT_TIMEOUT_MS,
      proxyTimeout: idleTimeoutMs,
    });
    this.#proxy.on('proxyRes', (answer) => dropHeaders(answer));
    this.#proxy.on('proxyReq', (sent, request) => {
      if (this.#refused.has(request)) sent.destroy();
      else this.#sending.set(request, sent);
    });
    this.#proxy.on('proxyReqWs', (request, _incoming, client) => {
      // For the answer alone: the proxy takes the limit off a connection that was upgraded.
      request.setTimeout(idleTimeoutMs, () => request.destroy(new Error('the upgrade was not answered in time')));
      // These stand before the proxy's own listeners, which write the headers of the answer to the client.
      request.on('response', (answer) => dropHeaders(answer));
      request.on('upgrade', (answer, server) => {
        dropHeaders(answer);
        // The proxy only half-closes the other side, which a peer may never notice.
        client.once('close', () => server.destroy());
        server.once('close', () => client.destroySoon());
      });
    });
  }

  faultOf({ method, request }: EdgeExchange, maxBytes: number): Problem | undefined {
    if (UNFRAMED.has(method) && request.headers['transfer-encoding'] !== undefined) {
      return fault('body_not_expected', `a ${method} request is passed on with a Content-Length alone`);
    }
    return Number(request.headers['content-length'] ?? 0) > maxBytes ? tooLarge(maxBytes) : undefined;
  }

  web(exchange: EdgeExchange, passed: PassedRequest, maxBytes: number): void {
    const { request, response } = exchange;
    this.#prepare(request, passed);
    if (exchange.awaitsContinue) response.writeContinue();
    if (request.headers['transfer-encoding'] !== undefined) this.#limit(exchange, maxBytes);
    this.#proxy.web(request, response, {}, (error) => {
      if (this.#refused.has(request)) return;
      passed.onError?.(error);
      if (response.headersSent) response.destroy();
      else exchange.problem(fault('upstream_unreachable', 'the upstream did not answer the request'));
    });
  }

  /** Counts a body of unknown length while it is sent. */
  #limit(exchange: EdgeExchange, maxBytes: number): void {
    const { request, response } = exchange;
    let left = maxBytes;
    const count = (chunk: Buffer): void => {
      left -= chunk.length;
      if (left >= 0) return;
      request.off('data', count).unpipe();
      this.#refused.add(request);
      this.#sending.get(request)?.destroy();
      if (response.headersSent) response.destroy();
      else exchange.problem(tooLarge(maxBytes));
    };
    // The proxy pipes the request in this same turn, so no chunk comes before it does.
    request.on('data', count);
  }

  upgrade({ request, socket, head }: EdgeUpgrade, passed: PassedRequest): void {
    if (!isWebSocket(request) || !(socket instanceof Socket)) {
      endRaw(socket, NO_WEBSOCKET);
      return;
    }
    if (this.#ended) {
      endRaw(socket, fault('shutting_down', 'the configuration has just changed; open the connection again'));
      return;
    }
    this.#prepare(request, passed);
    request.headers.connection = 'Upgrade';
    request.headers.upgrade = 'websocket';
    this.#upgraded.add(socket);
    socket.once('close', () => this.#upgraded.delete(socket));
    const before = socket.bytesWritten;
    this.#proxy.ws(request, socket, head, {}, (error) => {
      passed.onError?.(error);
      // Once the upgrade was answered there is nothing left to say: the connection just ends.
      if (socket.bytesWritten === before && !socket.destroyed)
        endRaw(socket, fault('upstream_unreachable', 'the upstream did not take the upgrade'));
    });
  }

  endUpgrades(): void {
    this.#ended = true;
    for (const socket of this.#upgraded) socket.destroy();
  }

  close(): void {
    this.endUpgrades();
    this.#agent.destroy();
  }

  /** Leaves in the request what the upstream may see. The proxy copies the rest as it stands. */
  #prepare(request: IncomingMessage, { rawPath, forwarded }: PassedRequest): void {
    const { headers } = request;
    const listed = connectionOptions(headers.connection);
    const kept: IncomingMessage['headers'] = {};
    for (const [name, value] of Object.entries(headers)) {
      if (value !== undefined && this.#passes(name, listed) && !this.#isTwin(name, headers)) kept[name] = value;
    }
    for (const list of [forwarded, this.#options.headers ?? []]) {
      for (let at = 0; at + 1 < list.length; at += 2) kept[(list[at] ?? '').toLowerCase()] = list[at + 1] ?? '';
    }
    request.headers = kept;
    request.url = rawPath;
  }

  #passes(name: string, listed: ReadonlySet<string> | undefined): boolean {
    // Framing cannot be listed away.
    if (FRAMING.has(name)) return true;
    if (HOP_BY_HOP.has(name) || isGatewayHeader(name) || listed?.has(name) === true) return false;
    if (name === 'authorization') return this.#options.passAuthorization;
    return name !== 'idempotency-key' && name !== 'expect' && !isOfTheWay(name);
  }

  /** Whether a header is spelled with an underscore where a backend may read one that is set, or held back, here. */
  #isTwin(name: string, headers: IncomingMessage['headers']): boolean {
    const twin = foldHeaderName(name);
    return (
      twin !== name &&
      (headers[twin] !== undefined || FRAMING.has(twin) || this.#fixed.has(twin) || !this.#passes(twin, undefined))
    );
  }
}

/** What an upgrade to anything else is answered. */
export const NO_WEBSOCKET: Problem = fault('upgrade_refused', 'only WebSocket upgrades are passed on');

export function isWebSocket({ headers }: IncomingMessage): boolean {
  return headers.upgrade?.toLowerCase() === 'websocket';
}

function tooLarge(maxBytes: number): Problem {
  return fault('too_large', `the body is larger than the limit of ${maxBytes} bytes; send a smaller one`);
}

/** Takes out of an answer what belongs to the connection or speaks for the gateway. */
function dropHeaders(answer: IncomingMessage): void {
  const { headers } = answer;
  const listed = connectionOptions(headers.connection);
  for (const name of Object.keys(headers)) {
    const isOurs = isGatewayHeader(name) || (listed?.has(name) === true && name !== 'upgrade');
    if (isOurs || (HOP_BY_HOP.has(name) && answer.statusCode !== 101)) delete headers[name];
  }
}
