import { setTimeout as pause } from 'node:timers/promises';
import type { Client, ClientCapabilities, PriorDiscovery, ServerCapabilities } from '@modelcontextprotocol/client';
import { LRUCache } from 'lru-cache';
import type { JsonObject } from '../../receipts/json-value.ts';
import type { CallRelay } from '../exchange.ts';
import type { Log } from '../log.ts';
import { LinkFault } from './call-fault.ts';
import { createServerFetch, type ServerFetch } from './http-fetch.ts';
import { type Link, linkHttp, linkStdio, makeClient } from './server-links.ts';
import { ServerVoice } from './server-voice.ts';
import type { StdioCommand } from './stdio-transport.ts';
import { objectToWire } from './wire-digits.ts';

/** Where a server is: an address, or a process of the gateway's own. */
export type ServerPlace =
  | { readonly kind: 'http'; readonly url: string; readonly headers: readonly string[] }
  | { readonly kind: 'stdio'; readonly command: Omit<StdioCommand, 'onStderr'> };

export interface ConnectionOptions {
  readonly name: string;
  readonly place: ServerPlace;
  /** `annotations: trusted`: the server may ask its clients. */
  readonly trusted: boolean;
  readonly log: Log;
  /** Told when the server lists other tools than before, or is there again. */
  readonly onToolsChanged: () => void;
}

/** Sessions of a server that are kept open for clients' sessions. */
const MAX_LINKS = 5_000;
const LINK_IDLE_MS: number = 30 * 60_000;
const END_AGAIN_MS = 60_000;
const FIRST_RESTART_MS = 200;
const LONGEST_RESTART_MS = 30_000;
/** A process that lived so long is started again at once. */
const LIVED_MS = 10_000;

/**
 * One MCP server and the connections to it. Over HTTP each client's session has a session of its own there; the newer
 * era has none, so each call comes by itself. A process has one connection that all share; when it ends it is started
 * again, later each time that it ends at once.
 */
export class ServerConnection {
  readonly #options: ConnectionOptions;
  readonly #fetch: ServerFetch | undefined;
  readonly #links: LRUCache<string, Promise<Link>>;
  /** What the server says of its own accord. */
  readonly voice: ServerVoice;
  #control: Promise<Link> | undefined;
  #era: PriorDiscovery | undefined;
  /** A server of the newer era may serve clients of the older one too; it is tried with the first of them. */
  #alsoLegacy = true;
  #failures = 0;
  #isClosed = false;

  constructor(options: ConnectionOptions) {
    this.#options = options;
    this.voice = new ServerVoice(options.trusted);
    this.#fetch = options.place.kind === 'http' ? createServerFetch(options.place.headers) : undefined;
    this.#links = new LRUCache({
      max: MAX_LINKS,
      ttl: LINK_IDLE_MS,
      updateAgeOnGet: true,
      dispose: (link) => {
        link.then((made) => this.#endIdle(made)).catch((error: unknown) => this.#note(error));
      },
    });
  }

  /** Where it is reached, for a trace; nothing of a process. */
  get address(): { readonly host?: string; readonly port?: number } {
    const { place } = this.#options;
    if (place.kind !== 'http') return {};
    const { hostname, port, protocol } = new URL(place.url);
    return { host: hostname, port: Number(port === '' ? (protocol === 'https:' ? 443 : 80) : port) };
  }

  /** What the server says that it offers. Rejects with `LinkFault` where it cannot be reached. */
  async capabilities(): Promise<ServerCapabilities> {
    return (await this.control()).client.getServerCapabilities() ?? {};
  }

  /** What the server tells models of itself; as untrusted as its descriptions. */
  async instructions(): Promise<string | undefined> {
    return (await this.control()).client.getInstructions();
  }

  /** The connection that lists are read over, and for a process everything. Rejects with `LinkFault`. */
  control(): Promise<Link> {
    this.#control ??= this.#openControl();
    return this.#control;
  }

  /** The connection for a call. Rejects with `LinkFault` where none comes about. */
  async link(relay: CallRelay | undefined): Promise<{ readonly link: Link; readonly once: boolean }> {
    const control = await this.control();
    const { place, trusted } = this.#options;
    if (place.kind === 'stdio' || relay === undefined) return { link: control, once: false };
    const capabilities = trusted ? clientCapabilities(relay.capabilities) : {};
    if (this.#era?.kind === 'modern' && (relay.era === 'modern' || !this.#alsoLegacy)) {
      return { link: await this.#openOnce(place.url, relay, capabilities, this.#era), once: true };
    }
    try {
      return { link: await this.#openSession(place.url, relay, capabilities), once: false };
    } catch (error) {
      // A server of the newer era alone has no sessions: what a client of the older one asks is bridged from then on.
      if (this.#era?.kind !== 'modern' || !(error instanceof LinkFault)) throw error;
      this.#alsoLegacy = false;
      return { link: await this.#openOnce(place.url, relay, capabilities, this.#era), once: true };
    }
  }

  #openOnce(url: string, relay: CallRelay, capabilities: ClientCapabilities, prior: PriorDiscovery): Promise<Link> {
    return this.#openHttp(url, this.#watch(makeClient(capabilities, 'auto'), relay.link), prior);
  }

  #openSession(url: string, relay: CallRelay, capabilities: ClientCapabilities): Promise<Link> {
    const known = this.#links.get(relay.link);
    if (known !== undefined) return known;
    const client = this.#watch(makeClient(capabilities, 'legacy'), relay.link);
    const made = this.#openHttp(url, client, { kind: 'legacy' });
    this.#links.set(relay.link, made);
    made.catch(() => this.#drop(relay.link, made));
    return made;
  }

  /** Forgets a client's session at the server, which has forgotten it too. */
  forget(relay: CallRelay | undefined): void {
    if (relay !== undefined && this.#links.has(relay.link)) this.#links.delete(relay.link);
    else if (this.#options.place.kind === 'http') this.#control = undefined;
  }

  /** Ends what the server keeps for a client's session. */
  endLink(name: string): void {
    this.#links.delete(name);
    this.voice.forget(name);
  }

  /** Passes on what a client says of its own accord, where its session has come to the server at all. */
  async tellServer(name: string, method: string, params: JsonObject): Promise<void> {
    const link = await this.#links.peek(name);
    await link?.client.notification({ method, params: objectToWire(params) });
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#links.clear();
    const control = this.#control;
    if (control !== undefined) {
      await control.then((link) => link.end()).catch((error: unknown) => this.#note(error));
    }
    await this.#fetch?.close();
  }

  #openControl(): Promise<Link> {
    const { place } = this.#options;
    const opened = place.kind === 'http' ? this.#openHttpControl(place.url) : this.#openProcess(place.command);
    opened.catch(() => {
      if (this.#control === opened) this.#control = undefined;
    });
    return opened;
  }

  async #openHttpControl(url: string): Promise<Link> {
    const client = this.#watch(makeClient({}, 'auto', this.#options.onToolsChanged), '');
    const link = await this.#openHttp(url, client, undefined);
    const discover = client.getDiscoverResult();
    this.#era = discover === undefined ? { kind: 'legacy' } : { kind: 'modern', discover };
    return link;
  }

  async #openHttp(url: string, client: Client, prior: PriorDiscovery | undefined): Promise<Link> {
    if (this.#fetch === undefined) throw new Error('no server is reached over HTTP here');
    try {
      return this.voice.own(await linkHttp(url, this.#fetch, client, prior));
    } catch (error) {
      throw new LinkFault(this.#options.name, error);
    }
  }

  async #openProcess(command: Omit<StdioCommand, 'onStderr'>): Promise<Link> {
    const { name, log, trusted, onToolsChanged } = this.#options;
    const capabilities = trusted ? { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} } : {};
    const started = performance.now();
    try {
      const link = await linkStdio(
        {
          ...command,
          onStderr: (line) => log.info({ server: name, stderr: line }, 'an MCP server wrote to its standard error'),
        },
        (mode) => this.#watch(makeClient(capabilities, mode, onToolsChanged), ''),
      );
      link.client.onclose = () => this.#processEnded(started);
      if (link.client.transport === undefined) throw new Error('the process ended at once');
      return this.voice.own(link);
    } catch (error) {
      throw new LinkFault(name, error);
    }
  }

  #processEnded(started: number): void {
    if (this.#isClosed) return;
    const { name, log, onToolsChanged } = this.#options;
    this.#failures = performance.now() - started > LIVED_MS ? 0 : this.#failures + 1;
    const waitMs = Math.min(FIRST_RESTART_MS * 2 ** Math.min(this.#failures, 10), LONGEST_RESTART_MS);
    log.warn({ server: name, waitMs }, 'an MCP server process ended; it is started again');
    const again = pause(waitMs, undefined, { ref: false }).then(() => {
      const { place } = this.#options;
      if (this.#isClosed || place.kind !== 'stdio') throw new LinkFault(name, new Error('the gateway is ending'));
      return this.#openProcess(place.command);
    });
    this.#control = again;
    again.then(onToolsChanged, (error: unknown) => {
      this.#note(error);
      if (this.#control === again) {
        this.#control = undefined;
        this.#processEnded(performance.now());
      }
    });
  }

  #watch(client: Client, name: string): Client {
    const { log, name: server } = this.#options;
    client.onerror = (error) => log.debug({ err: error, server }, 'an MCP connection');
    return this.voice.hear(client, name);
  }

  /** A session that nobody uses ends; one with a call on its way when that has ended. */
  #endIdle(link: Link): void {
    if (link.active.size > 0) setTimeout(() => this.#endIdle(link), END_AGAIN_MS).unref();
    else link.end().catch((error: unknown) => this.#note(error));
  }

  #drop(name: string, made: Promise<Link>): void {
    if (this.#links.peek(name) === made) this.#links.delete(name);
  }

  #note(error: unknown): void {
    this.#options.log.debug({ err: error, server: this.#options.name }, 'a connection to an MCP server ended');
  }
}

/** What a client says of itself, as the SDK types it: passed on as it is. */
function clientCapabilities(value: JsonObject): ClientCapabilities {
  return value as ClientCapabilities;
}
