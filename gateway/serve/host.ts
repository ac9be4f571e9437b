import type { SigningKey } from '../../receipts/crypto.ts';
import { type ApiHandler, createApi } from '../api/app.ts';
import type { ToolProvider } from '../catalogue/tool-source.ts';
import type { Listen } from '../config/config.ts';
import type { Problem as ConfigProblem } from '../config/problem.ts';
import type { Environment } from '../config/substitute.ts';
import type { Gateway } from '../gateway.ts';
import type { EdgeExchange } from '../http/edge-exchange.ts';
import { createOriginCheck } from '../http/origin.ts';
import { fault, renderJson } from '../http/problems.ts';
import { endRaw } from '../http/raw-answer.ts';
import { createEdgeServer, type EdgeServer, type EdgeUpgrade } from '../http/server.ts';
import type { EdgeTls } from '../http/server-limits.ts';
import type { Log } from '../log.ts';
import { McpService } from '../mcp/mcp-service.ts';
import type { ServerRegistry } from '../mcp/server-registry.ts';
import type { Homes } from '../workers/homes.ts';
import { listenFault } from './start-fault.ts';
import { Surface } from './surface.ts';
import { readTls } from './tls.ts';
import { ConfigRefused, relistWhole, rereadWhole, type WholeConfig } from './whole-config.ts';

/** How long further changes of a server's tools are waited for. */
const RELIST_MS = 300;

export interface HostOptions {
  readonly gateway: Gateway;
  readonly surface: Surface;
  readonly signing: SigningKey;
  readonly env: Environment;
  readonly tls: EdgeTls | undefined;
  /** The MCP servers of the process. */
  readonly servers: ServerRegistry;
  /** Asks them for their tools. */
  readonly provider: ToolProvider;
  readonly mcpKeepAliveMs?: number;
  /** Which conversations live in which process, where this is one of several workers. */
  readonly homes?: Homes;
}

/** A configuration that was read and compiled, and is not in use yet: it is either taken or let go. */
export interface Prepared {
  readonly surface: Surface;
  readonly tls: EdgeTls | undefined;
}

/** The listener and the surface that it serves, which a reload swaps under it. */
export class Host {
  readonly #options: HostOptions;
  readonly #gateway: Gateway;
  readonly #api: ApiHandler = createApi();
  readonly #mcp: McpService;
  readonly #server: EdgeServer;
  /** Where the other workers reach this one. */
  readonly #hops: EdgeServer | undefined;
  #surface: Surface;
  #url = '';
  #closing = false;
  #relisting: NodeJS.Timeout | undefined;
  #reloading: Promise<unknown> = Promise.resolve();
  /** Surfaces that requests still run under, one behind the other: a request may use what its successor opened. */
  #retiring: Promise<void> = Promise.resolve();

  constructor(options: HostOptions) {
    const { gateway, surface, tls, homes } = options;
    const { listen } = surface.whole.config;
    this.#options = options;
    this.#gateway = gateway;
    this.#surface = surface;
    this.#mcp = new McpService({
      gateway,
      registry: options.servers,
      ...(options.mcpKeepAliveMs === undefined ? {} : { keepAliveMs: options.mcpKeepAliveMs }),
      ...(homes === undefined ? {} : { homes }),
    });
    options.servers.onToolsChanged = () => this.#relistSoon();
    gateway.metrics.setTools(surface.loaded.catalogue.tools.keys());
    const edge = {
      checkOrigin: createOriginCheck({ loopback: listen.loopback }),
      takesMatrix: (path: string) => this.#surface.routes.find(path)?.takesMatrix === true,
      onError: (error: unknown) => gateway.log.error({ err: error }, 'a request failed'),
      onProblem: (code: string) => gateway.metrics.problem(code),
    };
    this.#server = createEdgeServer({
      ...edge,
      listen: { host: listen.host, port: homes?.port ?? listen.port, shared: homes !== undefined },
      ...(tls === undefined ? {} : { tls }),
      handle: (exchange) => this.#handle(exchange),
      wantsUpgrade: (path) => this.#surface.routes.find(path)?.takesUpgrade?.(path) === true,
      upgrade: (upgrade) => this.#upgrade(upgrade),
    });
    if (homes === undefined) return;
    this.#hops = createEdgeServer({
      ...edge,
      listen: { host: '127.0.0.1', port: 0 },
      psk: homes.key,
      handle: (exchange) => {
        homes.arrives(exchange);
        return this.#handle(exchange);
      },
    });
  }

  get url(): string {
    return this.#url;
  }

  get surface(): Surface {
    return this.#surface;
  }

  /** Throws `StartFault` where the address cannot be had. Resolves with the port for other workers, 0 without any. */
  async listen(): Promise<number> {
    const { config } = this.#surface.whole;
    const hops = await this.#hops?.listen();
    try {
      const { port } = await this.#server.listen();
      this.#url = urlOf(config.listen, port);
    } catch (error) {
      throw listenFault(config, error);
    }
    this.#gateway.metrics.configTaken(this.#gateway.now());
    return hops?.port ?? 0;
  }

  async #handle(exchange: EdgeExchange): Promise<void> {
    const surface = this.#surface;
    const gateway = this.#gateway;
    const { authenticate } = surface;
    surface.begin();
    try {
      const route = surface.routes.find(exchange.path);
      if (route !== undefined) {
        await route.handle(exchange, { gateway, authenticate, mcp: this.#mcp });
        return;
      }
      if (this.#closing && !exchange.path.startsWith('/healthz') && exchange.path !== '/readyz') {
        exchange.problem(fault('shutting_down', 'the gateway is shutting down; send the call to another one'));
        return;
      }
      const { enabled } = surface.whole.config.console;
      await this.#api({ exchange, gateway, authenticate, console: enabled });
    } finally {
      surface.end();
    }
  }

  async #upgrade(upgrade: EdgeUpgrade): Promise<void> {
    const surface = this.#surface;
    const { routes, authenticate } = surface;
    const route = routes.find(upgrade.target.path);
    if (this.#closing || route?.upgrade === undefined) {
      const detail = 'the gateway is shutting down; open the connection to another one';
      endRaw(upgrade.socket, fault('shutting_down', detail));
      return;
    }
    await route.upgrade(upgrade, { gateway: this.#gateway, authenticate, mcp: this.#mcp });
  }

  /** One reload at a time; each is whole or not at all. Resolves with the problems; with an error among them the old config stays. */
  reload(): Promise<readonly ConfigProblem[]> {
    const turn = this.#reloading.then(() => this.#reload());
    this.#reloading = turn.catch(() => undefined);
    return turn;
  }

  async #reload(): Promise<readonly ConfigProblem[]> {
    try {
      const prepared = await this.prepare();
      await this.#take(prepared);
      return prepared.surface.whole.warnings;
    } catch (error) {
      if (!(error instanceof ConfigRefused)) throw error;
      this.#gateway.log.error({ problems: error.problems }, 'the configuration has faults; the old one stays');
      await this.refused(error.problems.length);
      return error.problems;
    }
  }

  /** Reads the configuration anew, as far as it can go without being in use. Throws `ConfigRefused`. */
  async prepare(): Promise<Prepared> {
    const whole = await rereadWhole(this.#surface.whole, this.#options.env, this.#options.provider);
    const tls = await readTls(whole.config);
    return { surface: this.#surfaceOf(whole), tls };
  }

  /** Takes what was prepared, behind a reload that is under way. */
  take(prepared: Prepared): Promise<void> {
    const turn = this.#reloading.then(() => this.#take(prepared));
    this.#reloading = turn.catch(() => undefined);
    return turn;
  }

  /** A configuration with so many faults was not taken. */
  async refused(faults: number): Promise<void> {
    this.#gateway.metrics.configRefused();
    await this.#gateway.audit.append({ event: 'config', act: 'refused', faults });
  }

  async #take({ surface, tls }: Prepared): Promise<void> {
    await this.#swap(surface);
    if (tls !== undefined) this.#server.setTls(tls);
  }

  #surfaceOf(whole: WholeConfig): Surface {
    return new Surface(whole, this.#options.signing, this.#url, this.#options.servers);
  }

  /** Makes a configuration the one in use; what began under the one before ends under it. */
  async #swap(next: Surface): Promise<void> {
    const { log, audit, metrics, verified, now } = this.#gateway;
    const { whole, unchecked } = next;
    const { servers } = this.#options;
    await audit.append({ event: 'config', act: 'reload', policy: next.loaded.policy, ...passesOf(unchecked) });
    const before = this.#surface;
    this.#surface = next;
    this.#gateway.loaded = next.loaded;
    // What verified under keys that may have gone is looked at anew.
    verified.clear();
    metrics.setTools(next.loaded.catalogue.tools.keys());
    metrics.configTaken(now());
    log.info({ policy: next.loaded.policy, warnings: whole.warnings.length }, 'the configuration was reloaded');
    tellUnchecked(log, unchecked);
    before.endUpgrades();
    servers.keepOnly(whole.config.routes.filter(({ source }) => source.kind === 'mcp'));
    this.#mcp.toolsChanged();
    this.#retiring = this.#retiring
      .then(() => before.retire())
      .catch((error: unknown) => log.warn({ err: error }, 'connections of the old configuration did not close'));
  }

  /** A server lists other tools: the catalogue is made anew, once for all that change within a moment. */
  #relistSoon(): void {
    if (this.#relisting !== undefined || this.#closing) return;
    this.#relisting = setTimeout(() => {
      this.#relisting = undefined;
      this.#reloading = this.#reloading
        .then(() => this.#relist())
        .catch((error: unknown) =>
          this.#gateway.log.error({ err: error }, 'the tools of MCP servers could not be taken over'),
        );
    }, RELIST_MS);
    this.#relisting.unref();
  }

  async #relist(): Promise<void> {
    if (this.#closing) return;
    const { log } = this.#gateway;
    const before = this.#surface.whole;
    try {
      const whole = await relistWhole(this.#surface.whole, this.#options.provider);
      // A server that is asked again and again for what it does not say must not make a new policy each time.
      if (sameListing(before, whole)) return;
      await this.#swap(this.#surfaceOf(whole));
      log.info('MCP servers list other tools than before');
    } catch (error) {
      if (!(error instanceof ConfigRefused)) throw error;
      log.error(
        { problems: error.problems },
        'what MCP servers list now makes the configuration faulty; the old catalogue stays',
      );
    }
  }

  /** Takes no more requests and lets the accepted ones end; answers how many did not within `graceMs`. */
  async closeServer(graceMs: number): Promise<number> {
    this.#closing = true;
    clearTimeout(this.#relisting);
    this.#mcp.close();
    this.#surface.endUpgrades();
    const { cutOff } = await this.#server.close({ graceMs });
    // What the other workers passed on is theirs to wait for, and they wait as long.
    const hops = await this.#hops?.close({ graceMs });
    return cutOff + (hops?.cutOff ?? 0);
  }
}

/** What the audit log says of paths that are let through unchecked; nothing where there are none. */
export function passesOf(unchecked: readonly string[]): { readonly passes?: readonly string[] } {
  return unchecked.length === 0 ? {} : { passes: unchecked };
}

/** Lists, at each start and reload, what is let through unchecked. */
export function tellUnchecked(log: Log, unchecked: readonly string[]): void {
  if (unchecked.length > 0) log.warn({ paths: unchecked }, 'requests to these paths are passed on unchecked (`pass`)');
}

/** Whether two catalogues have the same tools, in the same words of their servers. */
function sameListing(one: WholeConfig, other: WholeConfig): boolean {
  const textOf = ({ built }: WholeConfig): string =>
    renderJson(
      [...built.catalogue.tools.values()].map(({ id, pin }) => [id, pin ?? null, built.listed.get(id) ?? null]),
    );
  return textOf(one) === textOf(other);
}

/** Where a listener is reached. */
export function urlOf(listen: Listen, port: number): string {
  const host = listen.host.includes(':') ? `[${listen.host}]` : listen.host;
  return `${listen.tls === undefined ? 'http' : 'https'}://${host}:${port}`;
}
