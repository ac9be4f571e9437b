import cluster, { type Worker } from 'node:cluster';
import { randomBytes } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { Gauge, Registry } from 'prom-client';
import { digestOf } from '../config/watch.ts';
import type { Log } from '../log.ts';
import type { PinFirstUse } from '../mcp/pin-book.ts';
import { messageOf } from '../message-of.ts';
import { ConfigMetrics } from '../metrics.ts';
import { Channel, type ChannelEnd, type Readiness } from './channel.ts';
import { leftBy, mergeMetrics } from './merge-metrics.ts';
import { Restarts } from './restarts.ts';

/** A worker that gives no answer for so long is taken for one that hangs. */
const ANSWER_MS = 60_000;
/** Reading the files may ask MCP servers for their tools. */
const PREPARE_MS = 120_000;
const METRICS_MS = 5_000;
/** A timer can be no longer. */
const LONGEST_MS: number = 2 ** 31 - 1;
/** How often a worker is asked whether it lives, and how long it may take to say so. */
const BEAT_MS = 2_000;
const BEAT_ANSWER_MS = 8_000;
/** It hangs after so many unanswered in a row: after one this process itself may have been halted, and the answer lie there. */
const BEATS_MISSED = 2;
/** By then an exit is known that has happened. */
const GONE_MS = 1_000;
/** How often a worker that may not serve what the files say is tried again. */
const DIFFERS_WAIT_MS = 5_000;
/** How often a start looks whether a reload is over. */
const SETTLES_MS = 100;

/** The configuration in force: which files it was read from, and what stood in them. */
export interface InForce {
  readonly files: readonly string[];
  readonly digest: string;
}

export interface PrimaryOptions {
  readonly count: number;
  /** That the workers listen on. */
  readonly port: number;
  readonly inForce: InForce;
  /** Writes the file of pins, for all workers: a server may list other tools to each. */
  readonly pinFirstUse: PinFirstUse;
  readonly log: Log;
  /** The workers cannot be kept up: the process is to end. */
  readonly onGivenUp: (why: string) => void;
}

/** A worker process, from its start to its end. */
interface Member {
  readonly number: number;
  readonly worker: Worker;
  readonly channel: Channel;
  readonly startedMs: number;
  ready: Readiness | undefined;
  /** Why its end is no fault: it found something else in the files than what is in force, or it was in the way. */
  excuse: 'differs' | 'in the way' | undefined;
  readonly ended: Promise<number>;
  /** Its metrics, as it last said them. */
  said: readonly object[];
}

/** The workers of a gateway: keeps as many as are wanted, and tells all of them what one process would be told. */
export class Primary {
  readonly #options: PrimaryOptions;
  readonly #log: Log;
  readonly #secret = randomBytes(32).toString('base64url');
  readonly #members = new Map<number, Member>();
  readonly #restarts = new Restarts();
  readonly #registry = new Registry();
  readonly metrics: ConfigMetrics = new ConfigMetrics(this.#registry);
  readonly #waiting = new Map<number, NodeJS.Timeout>();
  /** What workers that ended had counted. */
  #left: readonly object[] = [];
  #leaving: Promise<void> = Promise.resolve();
  #inForce: InForce;
  #ending = false;
  #reloading = false;
  #toldDiffers = '';

  constructor(options: PrimaryOptions) {
    this.#options = options;
    this.#log = options.log;
    this.#inForce = options.inForce;
    const live = (): number => this.#live().length;
    new Gauge({
      name: 'toolgate_workers',
      help: 'Workers that take calls, of those that `workers` wants.',
      registers: [this.#registry],
      collect(): void {
        this.set(live());
      },
    });
    cluster.setupPrimary({ serialization: 'advanced' });
  }

  /**
   * Starts the first worker, then the others, and resolves with where they listen. Resolves with nothing where one ends
   * before it takes calls; it has said why, and all are ended.
   */
  async start(): Promise<string | undefined> {
    const first = this.#fork(1);
    const rest = Array.from({ length: this.#options.count - 1 }, (_, at) => at + 2);
    const members = [first];
    let up = await this.#comesUp(first);
    if (up) {
      members.push(...rest.map((number) => this.#fork(number)));
      up = await this.#allComeUp(members);
    }
    if (!up) {
      await this.kill();
      return undefined;
    }
    // Also one that is gone again by now.
    for (const member of members) this.#keep(member);
    return first.ready?.url;
  }

  get inForce(): InForce {
    return this.#inForce;
  }

  /** Every worker that takes calls. */
  #live(): readonly Member[] {
    return [...this.#members.values()].filter(({ ready }) => ready !== undefined);
  }

  async #allComeUp(members: readonly Member[]): Promise<boolean> {
    return (await Promise.all(members.map((member) => this.#comesUp(member)))).every((up) => up);
  }

  async #comesUp(member: Member): Promise<boolean> {
    while (member.ready === undefined) {
      const ended = await Promise.race([member.ended.then(() => true), this.#changed().then(() => false)]);
      if (ended) return false;
    }
    return true;
  }

  #change = Promise.withResolvers<void>();

  /** Resolves when a worker takes calls. */
  #changed(): Promise<void> {
    return this.#change.promise;
  }

  #fork(number: number): Member {
    const worker = cluster.fork();
    const ended = new Promise<number>((resolve) => {
      worker.once('exit', (code, signal) => resolve(signal === null ? code : 1));
    });
    const channel = new Channel(worker satisfies ChannelEnd, {
      place: () => {
        void this.#watch(member);
        return { number, count: this.#options.count, port: this.#options.port, secret: this.#secret };
      },
      loaded: async (files) => {
        const inForce = await this.#isInForce(files);
        if (!inForce) member.excuse = 'differs';
        return inForce;
      },
      ready: (ready) => {
        member.ready = ready;
        this.#tellPeers();
        this.#change.resolve();
        this.#change = Promise.withResolvers();
        return null;
      },
      pin_first_use: (added) => this.#options.pinFirstUse(added),
      all_metrics: () => this.#allMetrics(),
    });
    const member: Member = {
      number,
      worker,
      channel,
      startedMs: performance.now(),
      ready: undefined,
      excuse: undefined,
      ended,
      said: [],
    };
    this.#members.set(number, member);
    void ended.then(() => {
      channel.close();
      this.#leaving = this.#leaving
        .then(async () => {
          this.#left = await leftBy(this.#left, member.said);
          member.said = [];
        })
        .catch((error: unknown) => this.#log.warn({ err: error }, 'what an ended worker had counted is lost'));
      if (this.#members.get(number) === member) this.#members.delete(number);
      this.#tellPeers();
    });
    return member;
  }

  /** Ends a worker that hangs: its part of the connections would wait for ever, and so would a reload and the end. */
  async #watch({ channel, worker, number, ended }: Member): Promise<void> {
    const over = ended.then(() => true);
    for (let missed = 0; !(await Promise.race([over, pause(BEAT_MS, false, { ref: false })])); ) {
      const answered = await channel.ask('alive', null, BEAT_ANSWER_MS).then(
        () => true,
        () => false,
      );
      missed = answered ? 0 : missed + 1;
      if (missed < BEATS_MISSED || worker.isDead()) continue;
      this.#log.error({ worker: number, pid: worker.process.pid }, 'a worker hangs; it is ended');
      worker.process.kill('SIGKILL');
      return;
    }
  }

  /** Starts another in its place when it ends, for as long as the gateway runs. */
  #keep(member: Member): void {
    void member.ended.then((code) => {
      if (this.#ending) return;
      const { number, worker, startedMs, excuse } = member;
      if (excuse === 'differs') return this.#waitForFiles(number);
      if (excuse === 'in the way') return this.#startLater(number, 0);
      const waitMs = this.#restarts.next(performance.now() - startedMs);
      this.#log.error({ worker: number, pid: worker.process.pid, code, waitMs }, 'a worker ended; another is started');
      if (waitMs === undefined) this.#options.onGivenUp('workers end again and again right after their start');
      else this.#startLater(number, waitMs);
    });
  }

  #startLater(number: number, waitMs: number): void {
    clearTimeout(this.#waiting.get(number));
    this.#waiting.set(
      number,
      setTimeout(() => this.#startNow(number), waitMs),
    );
  }

  #startNow(number: number): void {
    clearTimeout(this.#waiting.get(number));
    this.#waiting.delete(number);
    if (this.#ending || this.#members.has(number)) return;
    // What a worker would load while the others are changing over is one thing or the other.
    if (this.#reloading) this.#startLater(number, SETTLES_MS);
    else this.#keep(this.#fork(number));
  }

  /** All workers serve one configuration: one that would serve another is not started until the files are taken. */
  #waitForFiles(number: number): void {
    if (this.#live().length === 0) {
      this.#options.onGivenUp('no worker is left, and the files say something else than what was in force');
      return;
    }
    if (this.#toldDiffers !== this.#inForce.digest) {
      this.#toldDiffers = this.#inForce.digest;
      const remedy = 'reload the configuration (SIGHUP), or put the files back';
      this.#log.error(
        { worker: number },
        `a worker is missing: the files say something else than the configuration in force; ${remedy}`,
      );
    }
    this.#startLater(number, DIFFERS_WAIT_MS);
  }

  async #isInForce(files: readonly string[]): Promise<boolean> {
    const { files: known, digest } = this.#inForce;
    return sameFiles(files, known) && (await digestOf(known)) === digest;
  }

  #tellPeers(): void {
    if (this.#ending) return;
    const live = this.#live();
    const ports = live.map(({ number, ready }) => [number, ready?.hopPort ?? 0] as const);
    for (const { channel, number } of live) {
      channel.ask('peers', ports, ANSWER_MS).catch((error: unknown) => {
        this.#log.debug({ err: error, worker: number }, 'a worker was not told where the others are');
      });
    }
  }

  async #allMetrics(): Promise<string> {
    const asked = this.#live().map(async (member) => {
      member.said = await member.channel.ask('metrics', null, METRICS_MS);
    });
    // A worker that hangs or has just died must not take the metrics of the others with it: what it said last stands.
    await Promise.allSettled(asked);
    await this.#leaving;
    const said = [...this.#members.values()].map((member) => member.said);
    return mergeMetrics(this.#registry, [...said, this.#left]);
  }

  /**
   * Has every worker read the files, and then every worker take them, or none. Nothing else is served meanwhile than
   * before. Resolves with the text of the faults that one found, for people, or nothing where all took it.
   * @param expected What the files hold, as the primary has just found them good.
   */
  async reload(expected: InForce): Promise<string | undefined> {
    this.#reloading = true;
    try {
      return await this.#reload(expected);
    } finally {
      this.#reloading = false;
    }
  }

  async #reload(expected: InForce): Promise<string | undefined> {
    for (const member of this.#members.values()) {
      if (member.ready !== undefined) continue;
      member.excuse = 'in the way';
      member.worker.process.kill('SIGKILL');
    }
    const live = this.#live();
    const found = await Promise.all(live.map((member) => this.#prepare(member, expected)));
    const fault = found.find((one) => one !== undefined);
    const changed = (await digestOf(expected.files)) !== expected.digest;
    if (fault !== undefined || changed) {
      await Promise.all(live.map(({ channel }) => channel.ask('drop', null, ANSWER_MS).catch(() => undefined)));
      return fault ?? 'the files changed while they were read; send SIGHUP when they are all written\n';
    }
    this.#inForce = expected;
    await Promise.all(live.map((member) => this.#take(member)));
    for (const number of this.#waiting.keys()) this.#startLater(number, 0);
    return undefined;
  }

  /** Resolves with the faults that the worker found, or nothing: also where it is gone, since another takes its place. */
  async #prepare({ channel, worker }: Member, expected: InForce): Promise<string | undefined> {
    try {
      const found = await channel.ask('prepare', null, PREPARE_MS);
      if ('faults' in found) return found.text;
      return sameFiles(found.files, expected.files) ? undefined : 'the files changed while they were read\n';
    } catch (error) {
      if (worker.isDead()) return undefined;
      return `a worker could not read the configuration: ${messageOf(error)}\n`;
    }
  }

  /** A worker that does not take what all take is ended; the one in its place starts with it. */
  async #take({ channel, worker, number }: Member): Promise<void> {
    try {
      await channel.ask('take', null, ANSWER_MS);
    } catch (error) {
      this.#log.error({ err: error, worker: number }, 'a worker did not take the configuration; it is replaced');
      worker.process.kill('SIGKILL');
    }
  }

  /** A configuration with so many faults was not taken: one worker's audit log says so for all. */
  async refused(faults: number): Promise<void> {
    this.metrics.refused();
    for (const { channel, number } of this.#live()) {
      try {
        await channel.ask('refused', faults, ANSWER_MS);
        return;
      } catch (error) {
        this.#log.warn({ err: error, worker: number }, 'a worker did not log that a configuration was refused');
      }
    }
  }

  /** Has every worker open its audit log again. Rejects where one could not. */
  async reopen(): Promise<void> {
    await Promise.all(this.#live().map(({ channel }) => channel.ask('reopen', null, ANSWER_MS)));
  }

  /**
   * Has every worker take calls for `lameDuckMs` more, finish those that it accepted, and end. Resolves with whether all
   * ended cleanly.
   */
  async end(lameDuckMs: number): Promise<boolean> {
    this.#stopStarting();
    const members = [...this.#members.values()];
    for (const { ready, worker } of members) if (ready === undefined) worker.process.kill('SIGKILL');
    const clean = await Promise.all(
      members.filter(({ ready }) => ready !== undefined).map((m) => this.#drain(m, lameDuckMs)),
    );
    await Promise.all(members.map(({ ended }) => ended));
    return clean.every((one) => one);
  }

  async #drain({ channel, worker, ended, number }: Member, lameDuckMs: number): Promise<boolean> {
    try {
      // It takes as long as its calls do: the worker itself sets the bounds.
      await channel.ask('drain', lameDuckMs, LONGEST_MS);
      if (worker.isConnected()) worker.process.disconnect();
      return (await ended) === 0;
    } catch (error) {
      // It may have been told to end by the signal, too, and be gone by now.
      if ((await Promise.race([ended, pause(GONE_MS)])) === 0) return true;
      this.#log.error({ err: error, worker: number }, 'a worker did not end cleanly');
      worker.process.kill('SIGKILL');
      return false;
    }
  }

  /** Ends every worker at once. */
  async kill(): Promise<void> {
    this.#stopStarting();
    const members = [...this.#members.values()];
    for (const { worker } of members) worker.process.kill('SIGKILL');
    await Promise.all(members.map(({ ended }) => ended));
  }

  #stopStarting(): void {
    this.#ending = true;
    for (const timer of this.#waiting.values()) clearTimeout(timer);
    this.#waiting.clear();
  }
}

function sameFiles(one: readonly string[], other: readonly string[]): boolean {
  return one.toSorted().join('\0') === other.toSorted().join('\0');
}
