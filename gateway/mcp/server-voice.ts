import { type Client, ProtocolError, ProtocolErrorCode } from '@modelcontextprotocol/client';
import type { JsonObject } from '../../receipts/json-value.ts';
import type { AskedOfClient, CallRelay } from '../exchange.ts';
import { isNotification } from './methods.ts';
import type { ActiveCall, Link } from './server-links.ts';
import { objectFromWire, objectToWire } from './wire-digits.ts';

/** What a server says outside of any call. */
export type ServerNotice = (method: string, params: JsonObject) => void;

interface Listener {
  readonly notices: Set<ServerNotice>;
  /** Resources that the client's session watches. */
  readonly watched: Set<string>;
}

const UPDATED = 'notifications/resources/updated';
const LOGGED = 'notifications/message';

/** What a server says of its own accord, and to whom it goes. */
export class ServerVoice {
  readonly #trusted: boolean;
  readonly #links = new WeakMap<Client, Link>();
  readonly #listeners = new Map<string, Listener>();

  /** @param trusted The server may ask its clients. */
  constructor(trusted: boolean) {
    this.#trusted = trusted;
  }

  /**
   * Hears what comes over a connection.
   * @param name The client's session that the connection is of; empty where all share it.
   */
  hear(client: Client, name: string): Client {
    client.fallbackNotificationHandler = ({ method, params }) => {
      this.#tell(client, name, method, objectFromWire(params ?? {}));
      return Promise.resolve();
    };
    client.fallbackRequestHandler = async ({ method, params }) => {
      const asked: AskedOfClient = { method, ...(params === undefined ? {} : { params: objectFromWire(params) }) };
      const { question } = await this.#asker(client).ask({ question: asked });
      if (question === undefined) throw new ProtocolError(ProtocolErrorCode.InternalError, 'the client gave no answer');
      return objectToWire(question);
    };
    return client;
  }

  /** A connection that came about: its calls are those that the server can speak of. */
  own(link: Link): Link {
    this.#links.set(link.client, link);
    return link;
  }

  /** Tells a client's session what the server says outside of its calls, until the returned function is called. */
  listen(name: string, notice: ServerNotice): () => void {
    const listener = this.#listenerOf(name);
    listener.notices.add(notice);
    return () => {
      listener.notices.delete(notice);
      if (listener.notices.size === 0 && this.#listeners.get(name) === listener) this.#listeners.delete(name);
    };
  }

  /** Notes that a client's session watches a resource, or does so no more. */
  watch(name: string, uri: string, isWatched: boolean): void {
    const listener = this.#listeners.get(name);
    if (isWatched) listener?.watched.add(uri);
    else listener?.watched.delete(uri);
  }

  forget(name: string): void {
    this.#listeners.delete(name);
  }

  #listenerOf(name: string): Listener {
    const known = this.#listeners.get(name) ?? { notices: new Set(), watched: new Set() };
    this.#listeners.set(name, known);
    return known;
  }

  /** The call that a question of the server is about. */
  #asker(client: Client): CallRelay {
    const relay = this.#soleRelay(client);
    if (!this.#trusted || relay === undefined || this.#quiet(client).length > 0) {
      throw new ProtocolError(ProtocolErrorCode.MethodNotFound, 'the gateway lets this server ask its clients nothing');
    }
    return relay;
  }

  /** Calls on their way over a connection whose answers are filtered. */
  #quiet(client: Client): readonly ActiveCall[] {
    return [...(this.#links.get(client)?.active ?? [])].filter(({ quiet }) => quiet === true);
  }

  /** The newest call on its way over a connection, where all that are on their way are one session's. */
  #soleRelay(client: Client): ActiveCall | undefined {
    const active = [...(this.#links.get(client)?.active ?? [])];
    const newest = active.at(-1);
    return newest !== undefined && active.every(({ link }) => link === newest.link) ? newest : undefined;
  }

  #tell(client: Client, name: string, method: string, params: JsonObject): void {
    if (!isNotification(method)) return;
    const relay = this.#soleRelay(client);
    const isOfNoCall = method.endsWith('/list_changed') || method === UPDATED;
    const quiet = isOfNoCall ? [] : this.#quiet(client);
    if (quiet.length > 0) {
      // It may show records that a filter holds back, and of which call it is cannot be told: their clocks alone hear it.
      for (const call of quiet) call.heard();
      return;
    }
    if (method === LOGGED && this.#links.get(client)?.filtered === true) {
      // A log message has a way of its own, and may come when the answer that it is of has long been passed on.
      relay?.heard();
      return;
    }
    if (relay !== undefined && !isOfNoCall) {
      relay.notify(method, params);
      return;
    }
    for (const listener of this.#heardBy(name, method, params)) {
      for (const notice of listener.notices) notice(method, params);
    }
  }

  /** What a process says of its lists goes to all, of a resource to who watches it, and what may be of one call of many to nobody. */
  #heardBy(name: string, method: string, params: JsonObject): readonly Listener[] {
    if (name !== '') return [this.#listenerOf(name)];
    const all = [...this.#listeners.values()];
    if (method.endsWith('/list_changed')) return all;
    const { uri } = params;
    return method === UPDATED && typeof uri === 'string' ? all.filter(({ watched }) => watched.has(uri)) : [];
  }
}
