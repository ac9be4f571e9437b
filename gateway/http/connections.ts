import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';

/** The connections of a server, and the responses on each that are not finished. */
export class Connections {
  /** Oldest response first, as they go out. */
  readonly #open = new Map<Duplex, ServerResponse[]>();
  /** Connections that were upgraded: node:http itself no longer knows them. */
  readonly #upgraded = new Set<Duplex>();
  #active = 0;
  /** One function for all responses, called on the response that closed. */
  readonly #ended: (this: ServerResponse) => void;

  constructor() {
    const end = (response: ServerResponse): void => this.#end(response);
    this.#ended = function ended(this: ServerResponse): void {
      end(this);
    };
  }

  /** Responses that are not finished. */
  get active(): number {
    return this.#active;
  }

  /** A connection was taken. */
  add(socket: Duplex): void {
    this.#open.set(socket, []);
    socket.once('close', () => this.#open.delete(socket));
  }

  /** A connection was upgraded, and is no longer HTTP. */
  upgraded(socket: Duplex): void {
    this.#upgraded.add(socket);
    socket.once('close', () => this.#upgraded.delete(socket));
  }

  /** A request begins; answers how many now wait on its connection. */
  begin(request: IncomingMessage, response: ServerResponse): number {
    this.#active += 1;
    response.on('close', this.#ended);
    return this.#open.get(request.socket)?.push(response) ?? 1;
  }

  /** The responses of a connection that are not finished, oldest first. */
  waitingOn(socket: Duplex): readonly ServerResponse[] {
    return this.#open.get(socket) ?? [];
  }

  /** Every answer whose head is not written tells its client that the connection closes. */
  announceClose(): void {
    for (const responses of this.#open.values()) {
      for (const response of responses) if (!response.headersSent) response.shouldKeepAlive = false;
    }
  }

  /** Ends connections on which no request waits for its answer. */
  endSilent(which: (socket: Duplex) => boolean): void {
    for (const [socket, responses] of this.#open) {
      if (responses.length === 0 && !this.#upgraded.has(socket) && which(socket)) socket.destroy();
    }
  }

  endAll(): void {
    for (const socket of this.#open.keys()) socket.destroy();
    for (const socket of this.#upgraded) socket.destroy();
  }

  #end(response: ServerResponse): void {
    this.#active -= 1;
    const open = this.#open.get(response.req.socket);
    if (open === undefined) return;
    if (open[0] === response) open.shift();
    else if (open.includes(response)) open.splice(open.indexOf(response), 1);
  }
}
