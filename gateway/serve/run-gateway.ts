import { mkdir, readFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { RulebookRecord } from '../../policy/rulebook/record.ts';
import type { SigningKey } from '../../receipts/crypto.ts';
import { nodeCrypto } from '../../receipts/crypto-node.ts';
import { type ApiHandler, createApi } from '../api/app.ts';
import type { BuiltCatalogue } from '../catalogue/build.ts';
import { loadGateway } from '../catalogue/load-gateway.ts';
import type { Config, Listen } from '../config/config.ts';
import type { Problem as ConfigProblem } from '../config/problem.ts';
import type { Upstream } from '../exchange.ts';
import type { Gateway } from '../gateway.ts';
import { type Authenticator, createAuthenticator } from '../http/authenticate.ts';
import type { EdgeExchange } from '../http/edge-exchange.ts';
import { createOriginCheck } from '../http/origin.ts';
import { fault } from '../http/problems.ts';
import { createEdgeServer, type EdgeOptions, type EdgeServer } from '../http/server.ts';
import { catalogueDeps } from '../load/catalogue-deps.ts';
import { makeLoaded } from '../load/make-loaded.ts';
import { loadRulebook } from '../load/rulebook.ts';
import { readOrMakeSigningKey } from '../load/signing-key.ts';
import type { Loaded } from '../loaded.ts';
import type { Log } from '../log.ts';
import { openRoutes } from '../routes/open-routes.ts';
import type { RouteTable } from '../routes/route-table.ts';
import { OutcomeFollower } from '../runs/outcome-follower.ts';
import { openStore } from '../store/open.ts';
import type { Store } from '../store/port.ts';
import { makeGateway, openAudit, StoreHealth } from './services.ts';

/** A gateway that takes calls. */
export interface RunningGateway {
  /** Where it listens: `http://127.0.0.1:8080`. */
  readonly url: string;
  readonly gateway: Gateway;
  /** Loads the config anew and swaps it in as a whole; with errors among the problems the old one stays. */
  reload(): Promise<readonly ConfigProblem[]>;
  /** Takes no more requests, lets the accepted ones end, and closes all that it opened. */
  close(): Promise<void>;
}

/** Thrown where a gateway cannot start because of its config; `problems` say where and why. */
export class ConfigRefused extends Error {
  readonly code = 'config_refused';
  readonly problems: readonly ConfigProblem[];

  constructor(problems: readonly ConfigProblem[]) {
    super('the configuration has faults');
    this.name = 'ConfigRefused';
    this.problems = problems;
  }
}

export interface RunOptions {
  readonly configFile: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly log: Log;
  /** Told of the config's warnings. */
  readonly onProblems?: (problems: readonly ConfigProblem[]) => void;
}

/** All that one load of the config makes; a reload makes another and closes this one. */
interface Surface {
  readonly config: Config;
  readonly loaded: Loaded;
  readonly authenticate: Authenticator;
  readonly routes: RouteTable;
  readonly upstreams: ReadonlyMap<string, Upstream>;
}

const DRAIN_MS = 30_000;

/** Starts a gateway from its config file. Throws `ConfigRefused`, `StoreSetupError`, `StoreFault`, `AuditFault` or `KeyFault`. */
export async function runGateway(options: RunOptions): Promise<RunningGateway> {
  const { log } = options;
  const first = await load(options);
  const { config } = first;
  const { key: signing, made } = await readOrMakeSigningKey(nodeCrypto, config.keys.signingFile);
  if (made) log.info({ file: config.keys.signingFile }, 'a signing key was made');
  const health = new StoreHealth(log);
  const store = await openStoreOf(config, health);
  const stopping = new AbortController();
  const closing: (() => Promise<void>)[] = [() => store.close()];
  try {
    const audit = await openAudit(config, store, signing, log);
    closing.unshift(() => audit.close());
    const surface = makeSurface(first, signing, urlOf(config.listen, config.listen.port));
    const gateway = makeGateway(surface.loaded, { store, audit }, log, health, stopping.signal);
    const host = new Host(options, gateway, surface, signing, stopping);
    closing.unshift(() => host.closeUpstreams());
    await host.listen();
    await audit.append({ event: 'config', act: 'start', policy: surface.loaded.policy });
    const upkeep = startUpkeep(gateway, store, log);
    const follower = new OutcomeFollower(gateway);
    follower.start();
    return {
      url: host.url,
      gateway,
      reload: () => host.reload(),
      close: async () => {
        stopping.abort();
        await host.closeServer();
        clearInterval(upkeep);
        await follower.stop();
        await audit
          .append({ event: 'config', act: 'stop' })
          .catch((error: unknown) => log.error({ err: error }, 'the end is not logged'));
        for (const close of closing) await close();
      },
    };
  } catch (error) {
    for (const close of closing) await close().catch((why: unknown) => log.error({ err: why }, 'closing failed'));
    throw error;
  }
}

async function openStoreOf({ store }: Config, health: StoreHealth): Promise<Store> {
  const { target, encryptionKey } = store;
  if (target.kind === 'sqlite') await mkdir(dirname(target.file), { recursive: true });
  return openStore(target.kind === 'sqlite' ? target.file : target.url.reveal(), {
    onLost: (why, operations) => health.lost(why, operations),
    ...(encryptionKey === undefined ? {} : { encryptionKey }),
  });
}

interface Read {
  readonly config: Config;
  readonly built: BuiltCatalogue;
  readonly rulebook: RulebookRecord | undefined;
}

async function load(options: RunOptions): Promise<Read> {
  const { loaded, problems } = await loadGateway(options.configFile, { env: options.env }, catalogueDeps());
  if (loaded === undefined) throw new ConfigRefused(problems);
  const rulebook = await loadRulebook(loaded.config, loaded.built);
  const all = [...problems, ...rulebook.problems];
  if (rulebook.problems.some(({ severity }) => severity === 'error')) throw new ConfigRefused(all);
  options.onProblems?.(all);
  return { ...loaded, rulebook: rulebook.record };
}

function makeSurface({ config, built, rulebook }: Read, signing: SigningKey, url: string): Surface {
  const { table: routes, upstreams } = openRoutes(config, built);
  const approveAt = `${config.console.url ?? url}/console/confirmations`;
  const loaded = makeLoaded(config, built, { crypto: nodeCrypto, signing, upstreams, approveAt, rulebook });
  const authenticate = createAuthenticator({
    credentials: config.credentials,
    approvers: config.approvers,
    agents: new Set(config.agents.keys()),
  });
  return { config, loaded, authenticate, upstreams, routes };
}

/** The listener and the surface that it serves, which a reload swaps under it. */
class Host {
  readonly #options: RunOptions;
  readonly #gateway: Gateway;
  readonly #signing: SigningKey;
  readonly #stopping: AbortController;
  readonly #api: ApiHandler = createApi();
  #surface: Surface;
  #server: EdgeServer | undefined;
  #url = '';
  #reloading: Promise<unknown> = Promise.resolve();

  constructor(options: RunOptions, gateway: Gateway, surface: Surface, signing: SigningKey, stopping: AbortController) {
    this.#options = options;
    this.#gateway = gateway;
    this.#surface = surface;
    this.#signing = signing;
    this.#stopping = stopping;
  }

  get url(): string {
    return this.#url;
  }

  async listen(): Promise<void> {
    const { listen } = this.#surface.config;
    this.#server = createEdgeServer(await this.#edgeOptions(listen));
    const { port } = await this.#server.listen();
    this.#url = urlOf(listen, port);
  }

  async #edgeOptions(listen: Listen): Promise<EdgeOptions> {
    const { log } = this.#options;
    const tls = listen.tls === undefined ? {} : { tls: await readTls(listen.tls) };
    return {
      listen: { host: listen.host, port: listen.port },
      ...tls,
      checkOrigin: createOriginCheck({ loopback: listen.loopback }),
      handle: (exchange) => this.#handle(exchange),
      onError: (error) => log.error({ err: error }, 'a request failed'),
    };
  }

  async #handle(exchange: EdgeExchange): Promise<void> {
    const { authenticate, routes } = this.#surface;
    const gateway = this.#gateway;
    const route = routes.find(exchange.path);
    if (route !== undefined) {
      await route.handle(exchange, { gateway, authenticate });
      return;
    }
    if (this.#stopping.signal.aborted && !exchange.path.startsWith('/healthz') && exchange.path !== '/readyz') {
      exchange.problem(fault('shutting_down', 'the gateway is shutting down; send the call to another one'));
      return;
    }
    await this.#api({ exchange, gateway, authenticate });
  }

  /** One reload at a time; each is whole or not at all. */
  reload(): Promise<readonly ConfigProblem[]> {
    const turn = this.#reloading.then(() => this.#reload());
    this.#reloading = turn.catch(() => undefined);
    return turn;
  }

  async #reload(): Promise<readonly ConfigProblem[]> {
    const { log } = this.#options;
    const problems: ConfigProblem[] = [];
    try {
      const read = await load({ ...this.#options, onProblems: (all) => problems.push(...all) });
      const next = makeSurface(read, this.#signing, this.#url);
      await this.#gateway.audit.append({ event: 'config', act: 'reload', policy: next.loaded.policy });
      const before = this.#surface;
      this.#surface = next;
      this.#gateway.loaded = next.loaded;
      log.info({ policy: next.loaded.policy }, 'the configuration was reloaded');
      await closeAll(before.upstreams);
      return problems;
    } catch (error) {
      if (!(error instanceof ConfigRefused)) throw error;
      log.error({ problems: error.problems }, 'the configuration has faults; the old one stays');
      await this.#gateway.audit.append({ event: 'config', act: 'refused', faults: error.problems.length });
      return error.problems;
    }
  }

  async closeServer(): Promise<void> {
    const ended = await this.#server?.close({ graceMs: DRAIN_MS });
    if (ended !== undefined && ended.cutOff > 0) {
      this.#options.log.warn({ requests: ended.cutOff }, 'requests were cut off at the end of the grace time');
    }
  }

  closeUpstreams(): Promise<void> {
    return closeAll(this.#surface.upstreams);
  }
}

async function closeAll(upstreams: ReadonlyMap<string, Upstream>): Promise<void> {
  await Promise.all([...upstreams.values()].map((upstream) => upstream.close()));
}

async function readTls(tls: NonNullable<Listen['tls']>): Promise<NonNullable<EdgeOptions['tls']>> {
  const [cert, key] = await Promise.all([readFile(tls.certFile), readFile(tls.keyFile)]);
  return tls.clientCaFile === undefined ? { cert, key } : { cert, key, clientCa: await readFile(tls.clientCaFile) };
}

function urlOf(listen: Listen, port: number): string {
  const host = listen.host.includes(':') ? `[${listen.host}]` : listen.host;
  return `${listen.tls === undefined ? 'http' : 'https'}://${host}:${port}`;
}

const UPKEEP_MS = 10_000;

/** Leases are renewed, written outbox rows marked, and what is past its keeping deleted, a little at a time. */
function startUpkeep(gateway: Gateway, store: Store, log: Log): NodeJS.Timeout {
  const timer = setInterval(() => {
    upkeep(gateway, store).catch((error: unknown) => log.warn({ err: error }, 'the upkeep of the store failed'));
  }, UPKEEP_MS);
  timer.unref();
  return timer;
}

async function upkeep(gateway: Gateway, store: Store): Promise<void> {
  const now = gateway.now();
  await store.renewLeases(gateway.replica, now + 3 * UPKEEP_MS);
  await gateway.commit([{ op: 'outbox_written', replica: gateway.replica, n: gateway.audit.durableUpTo }]);
  const { idempotencyKeepMs, sessions } = gateway.loaded;
  await store.sweep(now, { claimsMs: idempotencyKeepMs, sessionsMs: Math.max(sessions.carryMs, idempotencyKeepMs) });
}
