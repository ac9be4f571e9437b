import assert from 'node:assert/strict';
import type { Store } from '../../gateway/store/port.ts';
import type { Case } from './contract.ts';
import { fresh, hold, NOW_MS } from './records.ts';

const OK = { ok: true };
const REACHED = { ok: false, operation: 0, conflict: 'limit_reached' };

/** Amounts compare as decimals: one store may write 12.5 where another keeps 12.50. */
async function counter(store: Store, bucket: string): Promise<{ settled: number; held: number } | undefined> {
  const found = (await store.readCounters([bucket])).get(bucket);
  return found === undefined ? undefined : { settled: Number(found.settled), held: Number(found.held) };
}

export const LIMIT_CASES: readonly Case[] = [
  {
    title: 'holds count up to the maximum and not past it',
    run: async ({ shared }) => {
      const bucket = fresh();
      assert.deepEqual(await shared.commit([hold(bucket, '11', '10')]), REACHED);
      assert.equal(await counter(shared, bucket), undefined);
      assert.deepEqual(await shared.commit([hold(bucket, '4', '10')]), OK);
      assert.deepEqual(await shared.commit([hold(bucket, '6', '10')]), OK);
      assert.deepEqual(await shared.commit([hold(bucket, '1', '10')]), REACHED);
      assert.deepEqual(await shared.commit([hold(bucket, '0', '10')]), OK);
      assert.deepEqual(await counter(shared, bucket), { settled: 0, held: 10 });
    },
  },
  {
    title: 'amounts are exact decimals',
    run: async ({ shared }) => {
      const bucket = fresh();
      for (const amount of ['0.1', '0.2']) assert.deepEqual(await shared.commit([hold(bucket, amount, '0.3')]), OK);
      assert.deepEqual(await shared.commit([hold(bucket, '0.000000000000000001', '0.3')]), REACHED);
      const large = fresh();
      const max = '9007199254740993.01';
      assert.deepEqual(await shared.commit([hold(large, '9007199254740993', max)]), OK);
      assert.deepEqual(await shared.commit([hold(large, '0.02', max)]), REACHED);
      assert.deepEqual(await shared.commit([hold(large, '0.01', max)]), OK);
    },
  },
  {
    title: 'a window counts only what was held in it, exactly',
    run: async ({ shared }) => {
      const bucket = fresh();
      const at = (atMs: number, amount: string, max = '0.3') =>
        hold(bucket, amount, max, { atMs, sinceMs: atMs - 1_000 });
      assert.deepEqual(await shared.commit([at(NOW_MS, '0.1')]), OK);
      assert.deepEqual(await shared.commit([at(NOW_MS + 10, '0.2')]), OK);
      assert.deepEqual(await shared.commit([at(NOW_MS + 1_000, '0.01')]), REACHED);
      assert.deepEqual(await shared.commit([at(NOW_MS + 1_001, '0.1')]), OK);
      assert.deepEqual(await shared.commit([at(NOW_MS + 1_001, '0.0000001')]), REACHED);
      assert.deepEqual(await shared.commit([at(NOW_MS + 1_011, '0.19999999')]), OK);
      assert.deepEqual(await shared.commit([at(NOW_MS + 1_011, '0.00000002')]), REACHED);
      const holds = await shared.readHolds(bucket, NOW_MS + 10);
      assert.deepEqual(
        holds.map((found) => [found.atMs - NOW_MS, Number(found.amount), found.state]),
        [
          [10, 0.2, 'held'],
          [1_001, 0.1, 'held'],
          [1_011, 0.19999999, 'held'],
        ],
      );
      assert.equal((await shared.readCounters([bucket])).size, 0);
    },
  },
  {
    title: 'what is held is settled for good or released, each link its own',
    run: async ({ shared }) => {
      const [bucket, other, sliding] = [fresh(), fresh(), fresh()];
      const [ran, failed] = [fresh(), fresh()];
      for (const link of [ran, failed]) {
        await shared.commit([
          hold(bucket, '2.50', '10', { link }),
          hold(other, '1', '10', { link }),
          hold(sliding, '1', '2', { link, sinceMs: NOW_MS - 1_000 }),
        ]);
      }
      assert.deepEqual(await counter(shared, bucket), { settled: 0, held: 5 });
      await shared.commit([
        { op: 'settle_holds', link: ran },
        { op: 'release_holds', link: failed },
      ]);
      assert.deepEqual(await counter(shared, bucket), { settled: 2.5, held: 0 });
      assert.deepEqual(await counter(shared, other), { settled: 1, held: 0 });
      const settled = (await shared.readHolds(sliding, 0)).map((found) => [found.link, found.state]);
      assert.deepEqual(settled, [[ran, 'settled']]);
      await shared.commit([
        { op: 'release_holds', link: ran },
        { op: 'settle_holds', link: ran },
        { op: 'settle_holds', link: fresh() },
      ]);
      assert.deepEqual(await counter(shared, bucket), { settled: 2.5, held: 0 });
      assert.equal((await shared.readHolds(sliding, 0)).length, 1);
    },
  },
  {
    title: 'a link that holds in one bucket twice holds both amounts',
    run: async ({ shared }) => {
      const [bucket, link] = [fresh(), fresh()];
      await shared.commit([hold(bucket, '2', '10', { link }), hold(bucket, '0.5', '10', { link })]);
      assert.deepEqual(await counter(shared, bucket), { settled: 0, held: 2.5 });
      await shared.commit([{ op: 'settle_holds', link }]);
      assert.deepEqual(await counter(shared, bucket), { settled: 2.5, held: 0 });
    },
  },
  {
    title: 'of 100 at once ten take the ten places',
    run: async ({ shared }) => {
      for (const window of [{}, { sinceMs: NOW_MS - 1_000 }]) {
        const bucket = fresh();
        const results = await Promise.all(
          Array.from({ length: 100 }, () => shared.commit([hold(bucket, '1', '10', window)])),
        );
        assert.equal(results.filter((result) => result.ok).length, 10);
      }
    },
  },
  {
    title: 'a hold that is no number is refused and the rest of its group is not',
    run: async ({ shared }) => {
      const bucket = fresh();
      const [refused, good] = await Promise.all([
        shared.commit([hold(bucket, 'twelve', '10')]).catch((error: unknown) => error),
        shared.commit([hold(bucket, '3', '10')]),
      ]);
      assert.ok(refused instanceof Error && 'maybe' in refused && refused.maybe === false);
      assert.deepEqual(good, OK);
      assert.deepEqual(await counter(shared, bucket), { settled: 0, held: 3 });
    },
  },
  {
    title: 'a window that moves on, back, loses holds and meets conflicts counts as if it were added up each time',
    run: async ({ shared }) => {
      const bucket = fresh();
      const held: { atMs: number; amount: number; link: string }[] = [];
      let atMs = NOW_MS;
      for (let i = 0; i < 60; i += 1) {
        // Mostly forward; now and then a clock that is behind.
        atMs += i % 7 === 6 ? -90 : 40;
        const sinceMs = atMs - 500;
        const amount = (i % 4) + 1;
        const link = fresh();
        const counted = held.filter((one) => one.atMs >= sinceMs).reduce((sum, one) => sum + one.amount, 0);
        const result = await shared.commit([
          hold(bucket, String(amount), '20', { atMs, sinceMs, link }),
          ...(i % 11 === 10 ? [{ op: 'freeze_session', sid: fresh(), why: 'x' } as const] : []),
        ]);
        const fits = counted + amount <= 20;
        if (!fits) assert.deepEqual(result, REACHED, `hold ${i} beside ${counted}`);
        else if (i % 11 === 10) assert.deepEqual(result, { ok: false, operation: 1, conflict: 'session_moved' });
        else {
          assert.deepEqual(result, OK, `hold ${i} beside ${counted}`);
          held.push({ atMs, amount, link });
        }
        if (i % 9 === 8) {
          const gone = held.splice(-2, 1)[0];
          await shared.commit([{ op: 'release_holds', link: gone?.link ?? '' }]);
        }
      }
      assert.ok(held.length > 20);
    },
  },
];
