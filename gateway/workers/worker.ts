import cluster from 'node:cluster';
import { renderProblems } from '../config/problem.ts';
import type { Log } from '../log.ts';
import type { Prepared } from '../serve/host.ts';
import { type RunningGateway, runGateway } from '../serve/run-gateway.ts';
import { ConfigRefused, filesOf } from '../serve/whole-config.ts';
import { Channel, type ChannelEnd, type Preparation } from './channel.ts';
import { Homes } from './homes.ts';

/** The primary answers at once, or is gone. */
const ASK_MS = 60_000;
/** Longer than accepted calls and all that has to be closed may take: then a worker without a primary ends, come what may. */
const ORPHAN_MS = 90_000;

/**
 * Runs one worker of a primary: a gateway like any other of several on one store, told by its primary what to do.
 * Resolves when it takes calls. `lameDuckMs` is for a signal that reaches it past its primary. Throws what `runGateway` does, and `ChannelFault` where the primary is gone.
 */
export async function runWorker(configFile: string, log: Log, lameDuckMs: number): Promise<void> {
  // Without this Node ends a worker at once when its primary is gone; calls under way are to end first.
  if (cluster.worker !== undefined) cluster.worker.exitedAfterDisconnect = true;
  const worker = new Worker(log, lameDuckMs);
  const place = await worker.primary.ask('place', null, ASK_MS);
  const { number } = place;
  const homes = new Homes(place);
  worker.homes = homes;
  const running = await runGateway({
    configFile,
    env: process.env,
    log: log.child({ worker: number }),
    worker: {
      number,
      homes,
      mayServe: (files) => worker.primary.ask('loaded', files, ASK_MS),
      pinFirstUse: (added) => worker.primary.ask('pin_first_use', added, ASK_MS),
      allMetrics: () => worker.primary.ask('all_metrics', null, ASK_MS),
    },
  }).catch(async (error: unknown) => {
    worker.fails();
    // The primary found the files good before it started workers: they have changed since, which is no fault of a worker.
    if (error instanceof ConfigRefused) await worker.primary.ask('loaded', [], ASK_MS);
    throw error;
  });
  await worker.begin(running);
}

class Worker {
  readonly primary: Channel;
  homes: Homes | undefined;
  readonly #log: Log;
  #running: RunningGateway | undefined;
  readonly #lameDuckMs: number;
  #prepared: Prepared | undefined;
  #ending: Promise<void> | undefined;
  #failed = false;

  constructor(log: Log, lameDuckMs: number) {
    this.#log = log;
    this.#lameDuckMs = lameDuckMs;
    this.primary = new Channel(process satisfies ChannelEnd, {
      alive: () => null,
      peers: (ports) => {
        this.homes?.setPeers(ports);
        return null;
      },
      prepare: () => this.#prepare(),
      take: async () => {
        const prepared = this.#prepared;
        if (prepared === undefined) throw new Error('nothing is prepared');
        this.#prepared = undefined;
        await this.#gateway().host.take(prepared);
        return null;
      },
      drop: async () => {
        await this.#drop();
        return null;
      },
      refused: async (faults) => {
        await this.#gateway().host.refused(faults);
        return null;
      },
      metrics: () => this.#gateway().gateway.metrics.ownAsJson(),
      reopen: async () => {
        await this.#gateway().gateway.audit.reopen();
        return null;
      },
      drain: async (lameDuckMs) => {
        await this.#end(lameDuckMs);
        return null;
      },
    });
    // From the first: nobody would ever tell a worker to end whose primary went while it started.
    process.once('disconnect', () => this.#primaryGone());
  }

  /** It does not come to take calls, and says why: that it lets its primary go is no news then. */
  fails(): void {
    this.#failed = true;
  }

  #primaryGone(): void {
    if (this.#failed) return;
    if (this.#running === undefined) {
      this.#log.error('the primary is gone while this worker starts: it ends');
      process.exit(1);
    }
    if (this.#ending === undefined)
      this.#log.error('the primary is gone: accepted calls are finished, then this worker ends');
    setTimeout(() => {
      this.#log.fatal('the worker did not end in time, and has no primary that could end it');
      process.exit(1);
    }, ORPHAN_MS + this.#lameDuckMs);
    void this.#endAndExit(0);
  }

  /** Follows signals and the primary from now on, and says that calls are taken. */
  async begin(running: RunningGateway): Promise<void> {
    this.#running = running;
    // A supervisor may tell every process, and not the primary alone: either way it is the same end. A second signal ends
    // it at once.
    for (const signal of ['SIGTERM', 'SIGINT'] as const) {
      process.once(signal, () => {
        process.once(signal, () => process.exit(1));
        void this.#endAndExit(this.#lameDuckMs);
      });
    }
    // Those are for the primary, which tells all its workers; a terminal or a supervisor may send them to every process.
    for (const signal of ['SIGHUP', 'SIGUSR2'] as const) process.on(signal, () => undefined);
    await this.primary.ask('ready', { url: running.url, hopPort: running.hopPort }, ASK_MS);
  }

  #gateway(): RunningGateway {
    if (this.#running === undefined) throw new Error('the worker does not take calls yet');
    return this.#running;
  }

  async #prepare(): Promise<Preparation> {
    await this.#drop();
    try {
      const prepared = await this.#gateway().host.prepare();
      this.#prepared = prepared;
      return { files: filesOf(prepared.surface.whole) };
    } catch (error) {
      if (!(error instanceof ConfigRefused)) throw error;
      return { faults: error.problems.length, text: renderProblems(error.problems) };
    }
  }

  async #drop(): Promise<void> {
    const prepared = this.#prepared;
    this.#prepared = undefined;
    await prepared?.surface.close();
  }

  #end(lameDuckMs: number): Promise<void> {
    this.#ending ??= this.#gateway().close({ lameDuckMs });
    return this.#ending;
  }

  async #endAndExit(lameDuckMs: number): Promise<void> {
    try {
      await this.#end(lameDuckMs);
      process.exit(0);
    } catch (error) {
      this.#log.fatal({ err: error }, 'the worker did not end cleanly');
      process.exit(1);
    }
  }
}
