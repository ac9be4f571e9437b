import { createServer as createHttpServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createHttpsServer, Server as TlsServer } from 'node:https';
import { type AddressInfo, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { SecureContextOptions } from 'node:tls';
import { Connections } from './connections.ts';
import { type EdgeContext, EdgeExchange, internalError } from './edge-exchange.ts';
import type { OriginCheck } from './origin.ts';
import { fault } from './problems.ts';
import { PSK_OPTIONS } from './psk.ts';
import { clientFault, endRaw } from './raw-answer.ts';
import { checkRequest, type RequestRules } from './request-check.ts';
import { EDGE_LIMITS, EDGE_TIMEOUTS, type EdgeLimits, type EdgeTimeouts, type EdgeTls } from './server-limits.ts';
import { parseTarget, type Target } from './target.ts';

/** A protocol upgrade (WebSocket) that `wantsUpgrade` let through. */
export interface EdgeUpgrade {
  readonly request: IncomingMessage;
  readonly socket: Duplex;
  readonly head: Buffer;
  readonly target: Target;
  readonly secure: boolean;
}

export interface EdgeOptions {
  /**
   * `shared`: other processes of this user listen on the same port, and the system spreads connections over them
   * (SO_REUSEPORT). It is theirs alone where it is false, also for a worker of a cluster.
   */
  readonly listen: { readonly host: string; readonly port: number; readonly shared?: boolean };
  readonly tls?: EdgeTls;
  /** In the place of `tls`: only who has this key is served, and who has it not is told nothing. */
  readonly psk?: Buffer;
  readonly limits?: Partial<EdgeLimits>;
  readonly timeouts?: Partial<EdgeTimeouts>;
  /** Looks at `Host` and `Origin` before anything else does. */
  readonly checkOrigin?: OriginCheck;
  /** Whether a path may hold `;`; none may where it is absent. */
  readonly takesMatrix?: (path: string) => boolean;
  /** Answers one request. A throw or a rejection is answered 500. */
  readonly handle: (exchange: EdgeExchange) => void | Promise<void>;
  /** Whether a path may be upgraded; nothing may where it is absent. */
  readonly wantsUpgrade?: (path: string) => boolean;
  /** Passes it on, or answers on its socket. A throw or a rejection is answered 500. */
  readonly upgrade?: (upgrade: EdgeUpgrade) => void | Promise<void>;
  /** Told of every problem that was answered in place of handling a request, by its code. */
  readonly onProblem?: (code: string) => void;
  /** Told of every error that a client was answered 500 for, for the log. */
  readonly onError?: (error: unknown) => void;
}

export interface EdgeServer {
  /** Starts to listen; rejects where the address cannot be had. */
  listen(): Promise<AddressInfo>;
  /**
   * Stops to accept, lets every accepted request finish (with `Connection: close`), then ends what is left after
   * `graceMs`. Answers how many requests were cut off.
   */
  close(options: { readonly graceMs: number }): Promise<{ readonly cutOff: number }>;
  /** Requests that are not answered yet. */
  readonly active: number;
  /** Takes other certificates for connections from now on. Throws where they do not fit, or the server listens without TLS. */
  setTls(tls: EdgeTls): void;
}

/**
 * The server that every request comes in by: node:http with its strict parser, made stricter where the parser still lets
 * through what another reader could take differently. Not listening yet.
 */
export function createEdgeServer(options: EdgeOptions): EdgeServer {
  return new Edge(options);
}

/** How long, once the server closes, a request may take to arrive whole enough to be one. */
const SETTLE_MS = 1_000;

class Edge implements EdgeServer {
  readonly #options: EdgeOptions;
  readonly #limits: EdgeLimits;
  readonly #context: EdgeContext;
  readonly #rules: RequestRules;
  readonly #server: Server | TlsServer;
  readonly #connections = new Connections();
  #closing = false;

  constructor(options: EdgeOptions) {
    const limits = { ...EDGE_LIMITS, ...options.limits };
    const timeouts = { ...EDGE_TIMEOUTS, ...options.timeouts };
    this.#options = options;
    this.#limits = limits;
    this.#rules = {
      headers: limits.headers,
      targetLength: limits.targetLength,
      ...(options.checkOrigin === undefined ? {} : { checkOrigin: options.checkOrigin }),
      ...(options.takesMatrix === undefined ? {} : { takesMatrix: options.takesMatrix }),
    };
    this.#context = {
      secure: options.tls !== undefined,
      drainBytes: limits.drainBytes,
      lingerMs: timeouts.lingerMs,
      ...(options.onProblem === undefined ? {} : { onProblem: options.onProblem }),
      takeMs: timeouts.takeMs,
    };
    const settings = {
      insecureHTTPParser: false,
      joinDuplicateHeaders: false,
      // The check below answers a request without Host in the gateway's own words.
      requireHostHeader: false,
      maxHeaderSize: limits.headerBytes,
      headersTimeout: timeouts.headersMs,
      requestTimeout: timeouts.requestMs,
      keepAliveTimeout: timeouts.keepAliveMs,
      connectionsCheckingInterval: Math.max(50, Math.min(1_000, timeouts.headersMs / 4, timeouts.requestMs / 4)),
      noDelay: true,
      shouldUpgradeCallback: (request: IncomingMessage) => this.#mayUpgrade(request),
    };
    const { psk } = options;
    this.#server =
      psk !== undefined
        ? createHttpsServer({
            ...settings,
            ...PSK_OPTIONS,
            handshakeTimeout: timeouts.tlsHandshakeMs,
            pskCallback: () => psk,
          })
        : options.tls === undefined
          ? createHttpServer(settings)
          : createHttpsServer({
              ...settings,
              ...secureContext(options.tls),
              handshakeTimeout: timeouts.tlsHandshakeMs,
              ALPNProtocols: ['http/1.1'],
              ...(options.tls.clientCa === undefined ? {} : { requestCert: true, rejectUnauthorized: true }),
            });
    // node:http drops what is beyond its count without a word; `checkRawHeaders` counts instead.
    this.#server.maxHeadersCount = 0;
    this.#server.maxConnections = limits.connections;
    this.#server
      .on(this.#server instanceof TlsServer ? 'secureConnection' : 'connection', (socket: Socket) => {
        this.#connections.add(socket);
      })
      .on('request', (request, response) => this.#take(request, response, false))
      .on('checkContinue', (request, response) => this.#take(request, response, true))
      .on('checkExpectation', (request, response) => this.#take(request, response, false))
      .on('upgrade', (request, socket, head) => this.#upgrade(request, socket, head))
      .on('connect', (_request, socket) => endRaw(socket, fault('method_not_allowed', 'CONNECT is not served here')))
      .on('clientError', (error, socket) => this.#clientError(error, socket));
  }

  get active(): number {
    return this.#connections.active;
  }

  setTls(tls: EdgeTls): void {
    if (!(this.#server instanceof TlsServer)) throw new TypeError('the server listens without TLS');
    this.#server.setSecureContext(secureContext(tls));
  }

  listen(): Promise<AddressInfo> {
    const { host, port, shared = false } = this.#options.listen;
    return new Promise((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen({ host, port, exclusive: true, reusePort: shared, backlog: 1024 }, () => {
        this.#server.off('error', reject);
        this.#server.on('error', (error) => this.#options.onError?.(error));
        const address = this.#server.address();
        if (address === null || typeof address === 'string') reject(new TypeError('the server listens on no port'));
        else resolve(address);
      });
    });
  }

  async close({ graceMs }: { readonly graceMs: number }): Promise<{ readonly cutOff: number }> {
    this.#closing = true;
    // What the kernel has already received is parsed before idle connections are ended: two turns of the event loop.
    await new Promise((resolve) => setImmediate(resolve));
    await new Promise((resolve) => setImmediate(resolve));
    let cutOff = 0;
    await new Promise<void>((resolve) => {
      const grace = setTimeout(() => {
        cutOff = this.#connections.active;
        this.#connections.endAll();
      }, graceMs);
      // node:http takes a connection that never sent a byte for a busy one, and looks after no timeout once it is closed.
      const settle = setTimeout(() => this.#connections.endSilent(() => true), Math.min(graceMs, SETTLE_MS));
      const sweep = setInterval(() => this.#server.closeIdleConnections(), 50);
      this.#server.close(() => {
        clearTimeout(grace);
        clearTimeout(settle);
        clearInterval(sweep);
        resolve();
      });
      this.#connections.endSilent((socket) => socket instanceof Socket && socket.bytesRead === 0);
      this.#connections.announceClose();
    });
    return { cutOff };
  }

  #take(request: IncomingMessage, response: ServerResponse, awaitsContinue: boolean): void {
    const waiting = this.#connections.begin(request, response);
    if (this.#closing) response.shouldKeepAlive = false;
    const target = checkRequest(request, this.#rules, { awaitsContinue, upgrades: false });
    if ('problem' in target) {
      // What follows a request that was refused for its form may be the rest of a trick: it is not read as a request.
      response.shouldKeepAlive = false;
      new EdgeExchange(request, response, { path: '', query: '' }, this.#context, awaitsContinue).problem(
        target.problem,
      );
      return;
    }
    const exchange = new EdgeExchange(request, response, target, this.#context, awaitsContinue);
    if (waiting > this.#limits.pipelined) {
      response.shouldKeepAlive = false;
      exchange.problem(
        fault('too_many_requests', 'too many requests wait on this connection; wait for answers', {
          retryAfterSeconds: 1,
        }),
      );
      return;
    }
    try {
      const handled = this.#options.handle(exchange);
      if (handled !== undefined) handled.catch((error: unknown) => this.#failed(exchange, error));
    } catch (error) {
      this.#failed(exchange, error);
    }
  }

  #failed(exchange: EdgeExchange, error: unknown): void {
    this.#options.onError?.(error);
    const { response } = exchange;
    if (!response.headersSent) exchange.problem(internalError());
    else if (!response.writableEnded) response.destroy();
  }

  #mayUpgrade(request: IncomingMessage): boolean {
    const { wantsUpgrade, upgrade } = this.#options;
    if (wantsUpgrade === undefined || upgrade === undefined) return false;
    const target = parseTarget(request.url ?? '', this.#limits.targetLength);
    return 'path' in target && request.method === 'GET' && wantsUpgrade(target.path);
  }

  #upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    socket.on('error', () => socket.destroy());
    const target = checkRequest(request, this.#rules, { awaitsContinue: false, upgrades: true });
    if ('problem' in target) {
      endRaw(socket, target.problem);
      return;
    }
    this.#connections.upgraded(socket);
    const failed = (error: unknown): void => {
      this.#options.onError?.(error);
      endRaw(socket, internalError());
    };
    try {
      const passed = this.#options.upgrade?.({ request, socket, head, target, secure: this.#context.secure });
      if (passed !== undefined) passed.catch(failed);
    } catch (error) {
      failed(error);
    }
  }

  /**
   * Bytes that are no HTTP, or that came too slowly. Where an earlier request of the connection still waits for its answer
   * the connection ends with that answer; a second answer in between would be taken for the first.
   */
  #clientError(error: Error, socket: Duplex): void {
    const code = 'code' in error && typeof error.code === 'string' ? error.code : '';
    if (code === 'ECONNRESET' || !socket.writable) {
      socket.destroy();
      return;
    }
    const waiting = this.#connections.waitingOn(socket);
    const first = waiting[0];
    const last = waiting.at(-1);
    if (first !== undefined && last !== undefined && (first !== last || first.req.complete)) {
      if (last.headersSent) last.once('close', () => socket.destroy());
      for (const response of waiting) if (!response.headersSent) response.shouldKeepAlive = false;
      return;
    }
    // An answer that has begun goes out as far as it is written; that it is cut off shows, where it is.
    if (first?.headersSent === true) socket.end(() => socket.destroy());
    else endRaw(socket, clientFault(code));
  }
}

/** What a listener takes of its certificates, at its start and when they are replaced. */
function secureContext({ cert, key, clientCa }: EdgeTls): SecureContextOptions {
  return { cert, key, minVersion: 'TLSv1.2', ...(clientCa === undefined ? {} : { ca: clientCa }) };
}
