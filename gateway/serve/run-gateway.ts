import { mkdir } from 'node:fs/promises';
import { dirname } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { SigningKey } from '../../receipts/crypto.ts';
import { nodeCrypto } from '../../receipts/crypto-node.ts';
import type { Config } from '../config/config.ts';
import type { Problem as ConfigProblem } from '../config/problem.ts';
import type { Environment } from '../config/substitute.ts';
import { refuseFaultPoints } from '../fault-points.ts';
import type { Gateway } from '../gateway.ts';
import { readOrMakeSigningKey } from '../load/signing-key.ts';
import type { Log } from '../log.ts';
import { createPinWriter, type PinFirstUse, pinFileOf } from '../mcp/pin-book.ts';
import { ServerRegistry } from '../mcp/server-registry.ts';
import { createMcpProvider } from '../mcp/tool-provider.ts';
import { OutcomeFollower } from '../runs/outcome-follower.ts';
import { Recovery } from '../runs/recovery.ts';
import { UndoEngine } from '../runs/undo-engine.ts';
import { openStore } from '../store/open.ts';
import type { Store } from '../store/port.ts';
import { openTracing } from '../tracing/open.ts';
import { SpanCounts } from '../tracing/span-counts.ts';
import type { Homes } from '../workers/homes.ts';
import { Host, passesOf, tellUnchecked, urlOf } from './host.ts';
import { makeGateway, openAudit, StoreHealth } from './services.ts';
import { auditFault, signingFault, storeFault } from './start-fault.ts';
import { Surface } from './surface.ts';
import { readTls } from './tls.ts';
import { filesOf, readWhole, type WholeConfig } from './whole-config.ts';

/** A gateway that takes calls. */
export interface RunningGateway {
  /** Where it listens: `http://127.0.0.1:8080`. */
  readonly url: string;
  readonly gateway: Gateway;
  /** The listener and what it serves; a worker's primary tells it what to take. */
  readonly host: Host;
  /** Where other workers reach this one; 0 for a gateway of one process. */
  readonly hopPort: number;
  /** The config in use. */
  readonly whole: () => WholeConfig;
  /** Loads the config and the TLS files anew and swaps them in as a whole; with errors among the problems the old ones stay. */
  reload(): Promise<readonly ConfigProblem[]>;
  /** Takes no more requests, lets the accepted ones end, and closes all that it opened. */
  close(options?: CloseOptions): Promise<void>;
}

interface CloseOptions {
  /** How long new requests are still taken while `/readyz` already says 503, for a load balancer to notice. Default: 0. */
  readonly lameDuckMs?: number;
}

export interface RunOptions {
  readonly configFile: string;
  readonly env: Environment;
  readonly log: Log;
  /** How long this process may be silent before another replica ends what it was at work on. Default: 30 s. */
  readonly leaseMs?: number;
  /** How often a comment keeps an idle stream of an MCP client open. Default: 15 s. */
  readonly mcpKeepAliveMs?: number;
  /** Of a gateway that is one of several workers of a primary. */
  readonly worker?: WorkerPart;
}

/** What a gateway that is one of several workers is told, and asks. */
interface WorkerPart {
  /** From 1 on. */
  readonly number: number;
  readonly homes: Homes;
  /** Whether what was loaded from these files is the configuration in force. */
  readonly mayServe: (files: readonly string[]) => Promise<boolean>;
  /** Writes the file of pins, for all workers. */
  readonly pinFirstUse: PinFirstUse;
  /** The metrics of all workers, as Prometheus reads them. */
  readonly allMetrics: () => Promise<string>;
}

/** The files say something else than the configuration that the other workers serve. */
export class ConfigDiffers extends Error {
  readonly code = 'config_differs';
}

/** How long accepted calls may take to end. */
const DRAIN_MS = 30_000;

/** Starts a gateway from its config file. Throws `ConfigRefused`, or `StartFault` where what the config names cannot be used. */
export async function runGateway(options: RunOptions): Promise<RunningGateway> {
  const { log, env } = options;
  refuseFaultPoints(env);
  const servers = new ServerRegistry(log);
  // What was opened, the newest first.
  const closing: (() => Promise<void>)[] = [() => servers.close()];
  try {
    return await start(options, servers, closing);
  } catch (error) {
    for (const close of closing) await close().catch((why: unknown) => log.error({ err: why }, 'closing failed'));
    throw error;
  }
}

async function start(
  { configFile, env, log, leaseMs, mcpKeepAliveMs, worker }: RunOptions,
  servers: ServerRegistry,
  closing: (() => Promise<void>)[],
): Promise<RunningGateway> {
  const provider = createMcpProvider({
    registry: servers,
    pinFirstUse: worker?.pinFirstUse ?? createPinWriter(pinFileOf(configFile)),
    onUnreachable: () => servers.askAgainLater(),
  });
  const whole = await readWhole(configFile, env, provider);
  const { config } = whole;
  const tls = await readTls(config);
  if (worker !== undefined && !(await worker.mayServe(filesOf(whole))))
    throw new ConfigDiffers('the files say something else than the configuration in force');
  const signing = await openSigningKey(config, log);
  const health = new StoreHealth(log);
  const store = await openStoreOf(config, health);
  const stopping = new AbortController();
  closing.unshift(() => store.close());
  const number = worker?.number ?? 1;
  const audit = await openAudit(config, store, signing, log, number).catch((error: unknown) => {
    throw auditFault(config, number, error);
  });
  closing.unshift(() => audit.close());
  const surface = new Surface(whole, signing, urlOf(config.listen, config.listen.port), servers);
  const spans = new SpanCounts();
  const tracing = await openTracing({ env, counts: spans, log, replica: audit.replica });
  // Last of all, so that a collector that does not answer holds up nothing that counts.
  if (tracing !== undefined) closing.push(() => tracing.close());
  const gateway = makeGateway(
    surface.loaded,
    { store, audit, leaseMs, ofAllWorkers: worker?.allMetrics, tracing, spans },
    log,
    health,
    stopping.signal,
  );
  const host = new Host({
    gateway,
    surface,
    signing,
    env,
    tls,
    servers,
    provider,
    ...(mcpKeepAliveMs === undefined ? {} : { mcpKeepAliveMs }),
    ...(worker === undefined ? {} : { homes: worker.homes }),
  });
  closing.unshift(() => host.surface.close());
  const hopPort = await host.listen();
  const { unchecked } = surface;
  await audit.append({ event: 'config', act: 'start', policy: surface.loaded.policy, ...passesOf(unchecked) });
  tellUnchecked(log, unchecked);
  const beside = [new Recovery(gateway), new UndoEngine(gateway), new OutcomeFollower(gateway)];
  for (const work of beside) work.start();
  return {
    url: host.url,
    gateway,
    host,
    hopPort,
    whole: () => host.surface.whole,
    reload: () => host.reload(),
    close: async ({ lameDuckMs = 0 } = {}) => {
      stopping.abort();
      if (lameDuckMs > 0) await pause(lameDuckMs);
      const cutOff = await host.closeServer(DRAIN_MS);
      gateway.sessions.flushAll();
      if (cutOff > 0) log.warn({ requests: cutOff }, 'requests were cut off at the end of the grace time');
      // What a client hung up on is under way all the same, and its outcome has to be stored.
      const left = await gateway.underWay.idle(DRAIN_MS);
      if (left > 0) log.warn({ calls: left }, 'calls were still under way at the end of the grace time');
      await Promise.all(beside.map((work) => work.stop()));
      await audit
        .append({ event: 'config', act: 'stop' })
        .catch((error: unknown) => log.error({ err: error }, 'the end is not logged'));
      for (const close of closing) await close();
    },
  };
}

/** Reads the signing key, or makes it where there is none. Throws `StartFault`. */
export async function openSigningKey(config: Config, log: Log): Promise<SigningKey> {
  try {
    const { key, made } = await readOrMakeSigningKey(nodeCrypto, config.keys.signingFile);
    if (made) log.info({ file: config.keys.signingFile }, 'a signing key was made');
    return key;
  } catch (error) {
    throw signingFault(config, error);
  }
}

async function openStoreOf(config: Config, health: StoreHealth): Promise<Store> {
  const { target, encryptionKey } = config.store;
  try {
    if (target.kind === 'sqlite') await mkdir(dirname(target.file), { recursive: true });
    return await openStore(target.kind === 'sqlite' ? target.file : target.url.reveal(), {
      onLost: (why, operations) => health.lost(why, operations),
      ...(encryptionKey === undefined ? {} : { encryptionKey }),
    });
  } catch (error) {
    throw storeFault(config, error);
  }
}
