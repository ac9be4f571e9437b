import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { buffer } from 'node:stream/consumers';

/** What a backend was sent. */
export interface Seen {
  readonly method: string;
  readonly target: string;
  readonly headers: readonly string[];
  readonly body: Buffer;
}

export type Behaviour = (response: ServerResponse, request: IncomingMessage, seen: Seen) => void;

/** A backend that does what a test tells it to, by method and path. */
export class Moody {
  readonly seen: Seen[] = [];
  readonly #behaviours = new Map<string, Behaviour>();
  readonly #sockets = new Set<Socket>();
  readonly #server: Server;

  private constructor() {
    this.#server = createServer((request, response) => {
      void this.#serve(request, response);
    });
    this.#server.on('connection', (socket) => {
      this.#sockets.add(socket);
      socket.once('close', () => this.#sockets.delete(socket));
    });
  }

  static async start(port = 0): Promise<Moody> {
    const moody = new Moody();
    await new Promise<void>((resolve) => moody.#server.listen(port, '127.0.0.1', resolve));
    return moody;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** `on('POST /do', …)`: what the next requests of that method and path get. */
  on(what: string, behaviour: Behaviour): void {
    this.#behaviours.set(what, behaviour);
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await buffer(request);
    const seen: Seen = { method: request.method ?? '', target: request.url ?? '', headers: request.rawHeaders, body };
    this.seen.push(seen);
    const path = seen.target.split('?')[0] ?? '';
    const behaviour = this.#behaviours.get(`${seen.method} ${path}`);
    if (behaviour !== undefined) behaviour(response, request, seen);
    else json(response, 200, { ok: true });
  }

  close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    return new Promise((resolve) => this.#server.close(() => resolve()));
  }
}

export function json(response: ServerResponse, status: number, body: unknown): void {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) });
  response.end(text);
}

/** Names and values in turn, as a map with lower-case names. */
export function headerMap(headers: readonly string[]): Map<string, string> {
  const map = new Map<string, string>();
  for (let at = 0; at + 1 < headers.length; at += 2) map.set((headers[at] ?? '').toLowerCase(), headers[at + 1] ?? '');
  return map;
}
