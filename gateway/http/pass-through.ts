import { Agent as HttpAgent, type IncomingMessage } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import { Socket } from 'node:net';
import { ProxyServer } from 'http-proxy-3';
import type { EdgeExchange } from './edge-exchange.ts';
import { connectionOptions, HOP_BY_HOP, isGatewayHeader } from './headers.ts';
import { fault } from './problems.ts';
import { endRaw } from './raw-answer.ts';
import type { EdgeUpgrade } from './server.ts';

export interface PassThroughOptions {
  /** `http://host:port` or `https://…`, no path. */
  readonly origin: string;
  readonly tls?: { readonly ca?: string | Buffer; readonly cert?: string | Buffer; readonly key?: string | Buffer };
  readonly connectTimeoutMs?: number;
  /** Between two pieces of a request or an answer. Upgraded connections have no end. */
  readonly idleTimeoutMs?: number;
  /** The caller's Authorization goes on (`pass_authorization`). */
  readonly passAuthorization: boolean;
  /** Headers of every request, name and value in turn (the operator's `upstream_headers`). */
  readonly headers?: readonly string[];
  /** Told why a request was not passed on, or broke off, for the log. */
  readonly onError?: (error: Error) => void;
}

/** What lets the `pass:` paths of a route through unchecked: uploads, health pages, WebSockets. */
export interface PassThrough {
  /**
   * Passes a request on.
   * @param rawPath Path and query for the upstream; begins with a slash.
   * @param forwarded `X-Forwarded-*` and `Forwarded`, name and value in turn.
   */
  web(exchange: EdgeExchange, rawPath: string, forwarded: readonly string[]): void;
  /** Passes an upgrade on and joins the two connections. */
  upgrade(upgrade: EdgeUpgrade, rawPath: string, forwarded: readonly string[]): void;
  /** Ends idle connections. */
  close(): void;
}

const CONNECT_TIMEOUT_MS = 5_000;
const IDLE_TIMEOUT_MS = 120_000;

/** Methods whose chunked body node:http would send without framing it. */
const UNFRAMED: ReadonlySet<string> = new Set(['DELETE', 'OPTIONS']);

/** Makes the pass-through of one upstream, over connections that are kept. */
export function createPassThrough(options: PassThroughOptions): PassThrough {
  return new Passage(options);
}

class Passage implements PassThrough {
  readonly #options: PassThroughOptions;
  readonly #agent: HttpAgent;
  readonly #proxy: ProxyServer;

  constructor(options: PassThroughOptions) {
    this.#options = options;
    this.#agent = options.origin.startsWith('https:')
      ? new HttpsAgent({ keepAlive: true, ...options.tls })
      : new HttpAgent({ keepAlive: true });
    this.#proxy = new ProxyServer({
      target: options.origin,
      agent: this.#agent,
      changeOrigin: true,
      xfwd: false,
      followRedirects: false,
      connectTimeout: options.connectTimeoutMs ?? CONNECT_TIMEOUT_MS,
      proxyTimeout: options.idleTimeoutMs ?? IDLE_TIMEOUT_MS,
    });
    this.#proxy.on('proxyRes', (answer) => dropHeaders(answer));
    this.#proxy.on('proxyReqWs', (request, _incoming, client) => {
      // Stands before the proxy's own listener, which writes the headers of the answer to the client.
      request.on('upgrade', (answer, server) => {
        dropHeaders(answer);
        // The proxy only half-closes the other side, which a peer may never notice.
        client.once('close', () => server.destroy());
        server.once('close', () => client.destroySoon());
      });
    });
  }

  web(exchange: EdgeExchange, rawPath: string, forwarded: readonly string[]): void {
    const { request, response } = exchange;
    if (UNFRAMED.has(exchange.method) && request.headers['transfer-encoding'] !== undefined) {
      exchange.problem(
        fault('body_not_expected', `a ${exchange.method} request is passed on with a Content-Length alone`),
      );
      return;
    }
    this.#prepare(request, rawPath, forwarded);
    if (exchange.awaitsContinue) response.writeContinue();
    this.#proxy.web(request, response, {}, (error) => {
      this.#options.onError?.(error);
      if (response.headersSent) response.destroy();
      else exchange.problem(fault('upstream_unreachable', 'the upstream did not answer the request'));
    });
  }

  upgrade({ request, socket, head }: EdgeUpgrade, rawPath: string, forwarded: readonly string[]): void {
    if (request.headers.upgrade?.toLowerCase() !== 'websocket' || !(socket instanceof Socket)) {
      endRaw(socket, fault('upgrade_refused', 'only WebSocket upgrades are passed on'));
      return;
    }
    this.#prepare(request, rawPath, forwarded);
    request.headers.connection = 'Upgrade';
    request.headers.upgrade = 'websocket';
    const before = socket.bytesWritten;
    this.#proxy.ws(request, socket, head, {}, (error) => {
      this.#options.onError?.(error);
      // Once the upgrade was answered there is nothing left to say: the connection just ends.
      if (socket.bytesWritten === before && !socket.destroyed)
        endRaw(socket, fault('upstream_unreachable', 'the upstream did not take the upgrade'));
    });
  }

  close(): void {
    this.#agent.destroy();
  }

  /** Leaves in the request what the upstream may see. The proxy copies the rest as it stands. */
  #prepare(request: IncomingMessage, rawPath: string, forwarded: readonly string[]): void {
    const listed = connectionOptions(request.headers.connection);
    const kept: IncomingMessage['headers'] = {};
    for (const [name, value] of Object.entries(request.headers)) {
      if (value !== undefined && this.#passes(name, listed)) kept[name] = value;
    }
    for (const list of [forwarded, this.#options.headers ?? []]) {
      for (let at = 0; at + 1 < list.length; at += 2) kept[(list[at] ?? '').toLowerCase()] = list[at + 1] ?? '';
    }
    request.headers = kept;
    request.url = rawPath;
  }

  #passes(name: string, listed: ReadonlySet<string> | undefined): boolean {
    // Framing cannot be listed away.
    if (name === 'transfer-encoding' || name === 'content-length') return true;
    if (HOP_BY_HOP.has(name) || isGatewayHeader(name) || listed?.has(name) === true) return false;
    if (name === 'authorization') return this.#options.passAuthorization;
    return name !== 'idempotency-key' && name !== 'expect' && name !== 'forwarded' && !name.startsWith('x-forwarded-');
  }
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
