import type { SigningKey } from '../../receipts/crypto.ts';
import { type ApiHandler, createApi } from '../api/app.ts';
import type { Listen } from '../config/config.ts';
import type { Problem as ConfigProblem } from '../config/problem.ts';
import type { Environment } from '../config/substitute.ts';
import type { Gateway } from '../gateway.ts';
import type { EdgeExchange } from '../http/edge-exchange.ts';
import { createOriginCheck } from '../http/origin.ts';
import { fault } from '../http/problems.ts';
import { createEdgeServer, type EdgeServer } from '../http/server.ts';
import type { EdgeTls } from '../http/server-limits.ts';
import { listenFault } from './start-fault.ts';
import { Surface } from './surface.ts';
import { readTls } from './tls.ts';
import { ConfigRefused, rereadWhole } from './whole-config.ts';

export interface HostOptions {
  readonly gateway: Gateway;
  readonly surface: Surface;
  readonly signing: SigningKey;
  readonly env: Environment;
  readonly tls: EdgeTls | undefined;
}

/** The listener and the surface that it serves, which a reload swaps under it. */
export class Host {
  readonly #options: HostOptions;
  readonly #gateway: Gateway;
  readonly #api: ApiHandler = createApi();
  readonly #server: EdgeServer;
  #surface: Surface;
  #url = '';
  #closing = false;
  #reloading: Promise<unknown> = Promise.resolve();
  /** Surfaces that requests still run under, one behind the other: a request may use what its successor opened. */
  #retiring: Promise<void> = Promise.resolve();

  constructor(options: HostOptions) {
    const { gateway, surface, tls } = options;
    const { listen } = surface.whole.config;
    this.#options = options;
    this.#gateway = gateway;
    this.#surface = surface;
    gateway.metrics.setTools(surface.loaded.catalogue.tools.keys());
    this.#server = createEdgeServer({
      listen: { host: listen.host, port: listen.port },
      ...(tls === undefined ? {} : { tls }),
      checkOrigin: createOriginCheck({ loopback: listen.loopback }),
      handle: (exchange) => this.#handle(exchange),
      onError: (error) => gateway.log.error({ err: error }, 'a request failed'),
      onProblem: (code) => gateway.metrics.problem(code),
    });
  }

  get url(): string {
    return this.#url;
  }

  get surface(): Surface {
    return this.#surface;
  }

  /** Throws `StartFault` where the address cannot be had. */
  async listen(): Promise<void> {
    const { config } = this.#surface.whole;
    try {
      const { port } = await this.#server.listen();
      this.#url = urlOf(config.listen, port);
    } catch (error) {
      throw listenFault(config, error);
    }
    this.#gateway.metrics.configTaken(this.#gateway.now());
  }

  async #handle(exchange: EdgeExchange): Promise<void> {
    const surface = this.#surface;
    const gateway = this.#gateway;
    const { authenticate } = surface;
    await surface.during(async () => {
      const route = surface.routes.find(exchange.path);
      if (route !== undefined) return route.handle(exchange, { gateway, authenticate });
      if (this.#closing && !exchange.path.startsWith('/healthz') && exchange.path !== '/readyz') {
        exchange.problem(fault('shutting_down', 'the gateway is shutting down; send the call to another one'));
        return;
      }
      await this.#api({ exchange, gateway, authenticate });
    });
  }

  /** One reload at a time; each is whole or not at all. Resolves with the problems; with an error among them the old config stays. */
  reload(): Promise<readonly ConfigProblem[]> {
    const turn = this.#reloading.then(() => this.#reload());
    this.#reloading = turn.catch(() => undefined);
    return turn;
  }

  async #reload(): Promise<readonly ConfigProblem[]> {
    const { log, audit, metrics, verified, now } = this.#gateway;
    try {
      const whole = await rereadWhole(this.#surface.whole, this.#options.env);
      const tls = await readTls(whole.config);
      const next = new Surface(whole, this.#options.signing, this.#url);
      await audit.append({ event: 'config', act: 'reload', policy: next.loaded.policy });
      const before = this.#surface;
      this.#surface = next;
      this.#gateway.loaded = next.loaded;
      if (tls !== undefined) this.#server.setTls(tls);
      // What verified under keys that may have gone is looked at anew.
      verified.clear();
      metrics.setTools(next.loaded.catalogue.tools.keys());
      metrics.configTaken(now());
      log.info({ policy: next.loaded.policy, warnings: whole.warnings.length }, 'the configuration was reloaded');
      this.#retiring = this.#retiring
        .then(() => before.retire())
        .catch((error: unknown) => log.warn({ err: error }, 'connections of the old configuration did not close'));
      return whole.warnings;
    } catch (error) {
      if (!(error instanceof ConfigRefused)) throw error;
      metrics.configRefused();
      log.error({ problems: error.problems }, 'the configuration has faults; the old one stays');
      await audit.append({ event: 'config', act: 'refused', faults: error.problems.length });
      return error.problems;
    }
  }

  /** Takes no more requests and lets the accepted ones end; answers how many did not within `graceMs`. */
  async closeServer(graceMs: number): Promise<number> {
    this.#closing = true;
    const { cutOff } = await this.#server.close({ graceMs });
    return cutOff;
  }
}

/** Where a listener is reached. */
export function urlOf(listen: Listen, port: number): string {
  const host = listen.host.includes(':') ? `[${listen.host}]` : listen.host;
  return `${listen.tls === undefined ? 'http' : 'https'}://${host}:${port}`;
}
