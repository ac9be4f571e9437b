import { createHash } from 'node:crypto';
import { type IncomingMessage, request } from 'node:http';
import { connect, type TLSSocket } from 'node:tls';
import type { EdgeExchange } from '../http/edge-exchange.ts';
import { pskContext } from '../http/psk.ts';
import type { Peers, Place } from './channel.ts';

/** A worker that hangs, or a stranger at the port of one that is gone, is waited for so long. Nothing was sent by then. */
const HANDSHAKE_MS = 10_000;
/** Headers of one connection alone (RFC 9110 section 7.6.1). */
const NOT_PASSED: ReadonlySet<string> = new Set([
  ...['connection', 'keep-alive', 'proxy-connection', 'te', 'trailer', 'transfer-encoding', 'upgrade'],
  'expect',
]);

/**
 * Which worker a conversation that lives in a process lives in: the streams of an MCP session and the calls that wait for
 * their client's answer. Its id says so by its digest, so that each worker knows without asking; connections come to any
 * worker, and what belongs to another is passed on to it over loopback, under a key that the workers alone have (TLS-PSK, RFC
 * 4279): who has it not is neither heard nor told anything, whoever has taken the port of a worker that died.
 */
export class Homes {
  readonly #place: Place;
  readonly #context = pskContext();
  readonly #arrived = new WeakSet<IncomingMessage>();
  #ports: ReadonlyMap<number, number> = new Map();

  constructor(place: Place) {
    this.#place = place;
  }

  /** The port that all workers listen on. */
  get port(): number {
    return this.#place.port;
  }

  /** Where the workers are reached from now on. */
  setPeers(peers: Peers): void {
    this.#ports = new Map(peers);
  }

  /** Whether a conversation of this id lives here. */
  isHere(id: string): boolean {
    return this.#homeOf(id) === this.#place.number;
  }

  /** The first of the ids that `make` makes that lives here. */
  idOfHere(make: () => string): string {
    for (;;) {
      const id = make();
      if (this.isHere(id)) return id;
    }
  }

  /** What a worker proves to another that it has, and the other to it. */
  get key(): Buffer {
    return Buffer.from(this.#place.secret, 'base64url');
  }

  /** A request on the workers' own listener: it is answered here, whoever's it is. */
  arrives({ request: arrived }: EdgeExchange): void {
    this.#arrived.add(arrived);
  }

  /**
   * Passes a request on to the worker where the conversation lives; resolves when it is answered. False where it is to be
   * answered here: it lives here, or its worker cannot be reached, since it died and another is being started. A worker
   * that is gone before its answer was whole ends the connection, as it would have ended its own.
   * @param body Its body, where that has been read.
   */
  async passOn(exchange: EdgeExchange, id: string, body?: string): Promise<boolean> {
    if (this.isHere(id) || this.#arrived.has(exchange.request)) return false;
    const port = this.#ports.get(this.#homeOf(id));
    return port === undefined ? false : this.#send(exchange, port, body);
  }

  #send(exchange: EdgeExchange, port: number, body: string | undefined): Promise<boolean> {
    const { response, method, path, query } = exchange;
    const headers = passed(exchange.request.rawHeaders, 'content-length');
    // A body that was not read is none that matters: only a POST's is.
    if (body !== undefined) headers.push('content-length', String(Buffer.byteLength(body)));
    const target = query === '' ? path : `${path}?${query}`;
    return new Promise((resolve) => {
      const socket = this.#connect(port);
      const sent = request({ createConnection: () => socket, method, path: target, headers });
      let connected = false;
      const gone = (): void => void sent.destroy();
      response.once('close', gone);
      const end = (answered: boolean): void => {
        response.off('close', gone);
        resolve(answered);
      };
      const timer = setTimeout(() => socket.destroy(new Error('no handshake in time')), HANDSHAKE_MS);
      socket.once('secureConnect', () => {
        clearTimeout(timer);
        connected = true;
      });
      socket.once('close', () => clearTimeout(timer));
      sent.once('error', () => {
        if (connected) response.destroy();
        end(connected);
      });
      sent.once('response', (answer) => {
        response.writeHead(answer.statusCode ?? 502, passed(answer.rawHeaders));
        response.flushHeaders();
        answer.pipe(response);
        answer.once('error', () => response.destroy());
        answer.once('close', () => end(true));
      });
      sent.end(body);
    });
  }

  #connect(port: number): TLSSocket {
    return connect({
      host: '127.0.0.1',
      port,
      secureContext: this.#context,
      pskCallback: () => ({ identity: 'worker', psk: this.key }),
      // The key is the proof: there are no certificates.
      checkServerIdentity: () => undefined,
    });
  }

  /** From 1 on, spread evenly: ids are random. */
  #homeOf(id: string): number {
    return (createHash('sha256').update(id).digest().readUInt32BE(0) % this.#place.count) + 1;
  }
}

/** Raw headers without those of the connection, nor one more. */
function passed(raw: readonly string[], without?: string): string[] {
  const kept: string[] = [];
  for (let at = 0; at + 1 < raw.length; at += 2) {
    const name = raw[at] ?? '';
    const lower = name.toLowerCase();
    if (!NOT_PASSED.has(lower) && lower !== without) kept.push(name, raw[at + 1] ?? '');
  }
  return kept;
}
