import { CASES, type Case } from './cases.ts';
import { type LoadOptions, type LoadResult, runLoad } from './load.ts';
import { median } from './median.ts';
import type { Started } from './processes.ts';

/** The two servers that are compared. */
export interface Servers {
  readonly bare: Started;
  readonly gateway: Started;
}

/** One case over all rounds. */
export interface Measured {
  readonly name: string;
  readonly goal: string;
  readonly perSecond: number;
  readonly ofBare: number;
  /** CPU time of the server a call, all threads, in microseconds: tells more than rates do on a busy machine. */
  readonly cpuUs: number;
  readonly cpuOfBare: number;
  readonly spread: number;
  readonly p99Ms: number;
}

/** One case at half of the rate that it was measured at, and the bare forwarder at the same rate. */
export interface AtHalf {
  readonly name: string;
  readonly goal: string;
  readonly perSecond: number;
  readonly p50AddedMs: number;
  readonly p99AddedMs: number;
}

export const CONNECTIONS = 64;
export const ROUNDS = 5;
/** Nothing is measured before each case was called so often, or for so long: the compiler works on for thousands of calls. */
const WARM_CALLS = 10_000;
const WARM_MS = 20_000;

type Round = LoadResult & { readonly cpuUs: number };

/** Rounds of all cases in turn, medians of each. @param seconds of one round */
export async function measureCalls(servers: Servers, seconds: number): Promise<readonly Measured[]> {
  for (const one of CASES) await warm(servers, one);
  const runs = new Map<string, Round[]>();
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const one of CASES) {
      const server = servers[one.target];
      const before = server.cpuUs();
      const load = await run(servers, one, seconds);
      const result = { ...load, cpuUs: (server.cpuUs() - before) / load.calls };
      runs.set(one.name, [...(runs.get(one.name) ?? []), result]);
    }
  }
  const first = runs.get(CASES[0]?.name ?? '') ?? [];
  const bare = median(first.map(({ perSecond }) => perSecond));
  const bareCpu = median(first.map(({ cpuUs }) => cpuUs));
  return CASES.map(({ name, goal }) => {
    const results = runs.get(name) ?? [];
    const rates = results.map(({ perSecond }) => perSecond);
    const perSecond = median(rates);
    const spread = (Math.max(...rates) - Math.min(...rates)) / perSecond;
    const cpuUs = median(results.map((result) => result.cpuUs));
    const p99Ms = median(results.map((result) => result.p99Ms));
    return { name, goal, perSecond, ofBare: perSecond / bare, cpuUs, cpuOfBare: bareCpu / cpuUs, spread, p99Ms };
  });
}

/** What a call takes longer than through the bare forwarder, both at half of what the case can do at most. */
export async function measureAtHalf(
  servers: Servers,
  measured: readonly Measured[],
  seconds: number,
): Promise<readonly AtHalf[]> {
  const [bare] = CASES;
  const figures: AtHalf[] = [];
  for (const one of CASES) {
    const goal = one.addedGoal;
    const full = measured.find(({ name }) => name === one.name)?.perSecond ?? Number.NaN;
    if (goal === undefined || bare === undefined) continue;
    const perSecond = full / 2;
    const own = await run(servers, one, seconds, perSecond);
    const without = await run(servers, bare, seconds, perSecond);
    const p50AddedMs = own.p50Ms - without.p50Ms;
    figures.push({ name: one.name, goal, perSecond, p50AddedMs, p99AddedMs: own.p99Ms - without.p99Ms });
  }
  return figures;
}

async function warm(servers: Servers, one: Case): Promise<void> {
  const endsAtMs = performance.now() + WARM_MS;
  for (let calls = 0; calls < WARM_CALLS && performance.now() < endsAtMs; ) calls += (await run(servers, one, 1)).calls;
}

/** @param ratePerSecond as fast as answers come where absent */
async function run(servers: Servers, one: Case, seconds: number, ratePerSecond?: number): Promise<LoadResult> {
  const { port } = servers[one.target];
  const options: LoadOptions = { port, connections: CONNECTIONS, durationMs: seconds * 1000, request: one.request };
  const load = await runLoad(ratePerSecond === undefined ? options : { ...options, ratePerSecond });
  const wrong = Object.keys(load.statuses).filter((status) => status !== one.expect);
  if (wrong.length > 0) throw new Error(`${one.name}: answered ${JSON.stringify(load.statuses)}`);
  return load;
}
