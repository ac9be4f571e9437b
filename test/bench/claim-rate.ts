import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { openStore } from '../../gateway/store/open.ts';
import type { Operation, Store } from '../../gateway/store/port.ts';
import { startPostgres } from '../postgres.ts';
import { aClaim, anEntry, append, aSession, open } from '../store/records.ts';

export interface ClaimRate {
  readonly store: string;
  /** Claims per second where each waits for the commit of the one before it: every commit holds one. */
  readonly single: number;
  /** The same of 64 callers at once: commits are grouped. */
  readonly grouped: number;
}

const CALLERS = 64;
const ROUNDS = 3;

/**
 * Durable claims per second (an entry, the session's head and the claim of a write, as every allowed write commits them)
 * on SQLite with `synchronous=FULL` and on a PostgreSQL that syncs. A store that cannot be had here is told as a text.
 */
export async function measureClaims(seconds: number): Promise<readonly (ClaimRate | string)[]> {
  const dir = await mkdtemp(join(tmpdir(), 'toolgate-bench-'));
  const postgres = await startPostgres({ durable: true });
  try {
    const sqlite = await measureStore('SQLite, synchronous=FULL', join(dir, 'claims.db'), seconds);
    if (typeof postgres === 'string') return [sqlite, postgres];
    return [sqlite, await measureStore('PostgreSQL', await postgres.database(), seconds)];
  } finally {
    if (typeof postgres !== 'string') await postgres.close();
    await rm(dir, { recursive: true, force: true });
  }
}

async function measureStore(name: string, place: string, seconds: number): Promise<ClaimRate> {
  const store = await openStore(place);
  try {
    const single: number[] = [];
    const grouped: number[] = [];
    // The first round warms everything up.
    for (let round = 0; round <= ROUNDS; round++) {
      const rates = [await claimFor(store, 1, seconds), await claimFor(store, CALLERS, seconds)] as const;
      if (round === 0) continue;
      single.push(rates[0]);
      grouped.push(rates[1]);
    }
    return { store: name, single: median(single), grouped: median(grouped) };
  } finally {
    await store.close();
  }
}

async function claimFor(store: Store, callers: number, seconds: number): Promise<number> {
  const until = performance.now() + seconds * 1000;
  const before = performance.now();
  const counts = await Promise.all(
    Array.from({ length: callers }, async () => {
      const session = aSession();
      await committed(store, [open(session)]);
      let step = 0;
      for (; performance.now() < until; step++) {
        const entry = anEntry(step);
        const claim = aClaim({ sid: session.sid, step, link: entry.link });
        await committed(store, [...append(session, step + 1, entry), { op: 'claim', claim }]);
      }
      return step;
    }),
  );
  return (counts.reduce((sum, count) => sum + count, 0) * 1000) / (performance.now() - before);
}

async function committed(store: Store, operations: readonly Operation[]): Promise<void> {
  const result = await store.commit(operations);
  if (!result.ok) throw new Error(`a claim was not committed: ${JSON.stringify(result)}`);
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}
