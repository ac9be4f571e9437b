import assert from 'node:assert/strict';
import type { Store } from '../../gateway/store/port.ts';
import type { Case } from './contract.ts';
import {
  aClaim,
  aConfirmation,
  anEntry,
  anUndo,
  append,
  aRun,
  aSession,
  fresh,
  hold,
  NOW_MS,
  open,
} from './records.ts';

const DAY_MS = 86_400_000;
const KEEP = { claimsMs: DAY_MS, sessionsMs: 30 * DAY_MS };

async function sweepAll(store: Store, nowMs: number): Promise<number> {
  let rounds = 0;
  while ((await store.sweep(nowMs, KEEP)) > 0) rounds += 1;
  return rounds;
}

export const SWEEP_CASES: readonly Case[] = [
  {
    title: 'settled claims go after their keeping, open and unknown ones never',
    run: async ({ own }) => {
      const store = await own();
      const settled = aClaim({ state: 'ran', settledAtMs: NOW_MS });
      const unknown = aClaim({ state: 'outcome_unknown' });
      await store.commit([settled, unknown].map((claim) => ({ op: 'claim', claim })));
      await sweepAll(store, NOW_MS + DAY_MS);
      assert.notEqual(await store.findClaim(settled), undefined);
      await sweepAll(store, NOW_MS + DAY_MS + 1);
      assert.equal(await store.findClaim(settled), undefined);
      await sweepAll(store, NOW_MS + 1_000 * DAY_MS);
      assert.notEqual(await store.findClaim(unknown), undefined);
    },
  },
  {
    title: 'receipts, confirmations and what was counted go once they count for nothing',
    run: async ({ own }) => {
      const store = await own();
      const key = { issuer: 'i', caller: 'c', session: 's', step: 1 };
      const confirmation = aConfirmation({ expiresMs: NOW_MS });
      const [period, yearly, sliding, unsettled] = [fresh(), fresh(), fresh(), fresh()];
      const link = fresh();
      await store.commit([
        { op: 'spend_receipt', key, link, untilMs: NOW_MS },
        { op: 'put_confirmation', confirmation },
        hold(period, '1', '9', { link, untilMs: NOW_MS }),
        hold(yearly, '1', '9', { link }),
        hold(sliding, '1', '9', { link, sinceMs: NOW_MS - 1_000 }),
        hold(unsettled, '1', '9', { untilMs: NOW_MS }),
        { op: 'settle_holds', link },
      ]);
      await sweepAll(store, NOW_MS);
      assert.equal((await store.findReceipts(key, { upTo: key.step, limit: 9 })).length, 1);
      assert.equal((await store.readHolds(sliding, 0)).length, 1);
      assert.equal((await store.readCounters([period, yearly, unsettled])).size, 3);
      await sweepAll(store, NOW_MS + 2_000);
      assert.deepEqual(await store.findReceipts(key, { upTo: key.step, limit: 9 }), []);
      assert.notEqual(await store.findConfirmation(confirmation.id), undefined);
      assert.equal((await store.readHolds(sliding, 0)).length, 0);
      await sweepAll(store, NOW_MS + 300 * DAY_MS);
      assert.equal(await store.findConfirmation(confirmation.id), undefined);
      assert.deepEqual(
        new Set((await store.readCounters([period, yearly, unsettled])).keys()),
        new Set([yearly, unsettled]),
      );
      await sweepAll(store, NOW_MS + 402 * DAY_MS);
      assert.deepEqual([...(await store.readCounters([yearly, unsettled])).keys()], [unsettled]);
    },
  },
  {
    title: 'an idle session goes with all that is its own, unless something in it still waits',
    run: async ({ own }) => {
      const store = await own();
      const [idle, unknown, undoing, used] = [
        aSession(),
        aSession(),
        aSession(),
        aSession({ usedAtMs: NOW_MS + 9 * DAY_MS }),
      ];
      const [ended, failed] = [aRun({ sid: idle.sid, state: 'ended' }), aRun({ sid: undoing.sid, state: 'failed' })];
      await store.commit([
        ...[idle, unknown, undoing, used].map((session) => open(session)),
        ...append(idle, 1, anEntry(0)),
        { op: 'watch', sid: idle.sid, record: { tool: 't', step: 0, arguments: '{}', result: '{}' }, keep: 1 },
        { op: 'claim', claim: aClaim({ sid: unknown.sid, state: 'outcome_unknown' }) },
        ...[ended, failed].map((run) => ({ op: 'touch_run', run, from: ['open'] }) as const),
        { op: 'put_undo', undo: anUndo(ended, 0) },
      ]);
      await sweepAll(store, NOW_MS + 30 * DAY_MS);
      assert.notEqual(await store.findSession(idle), undefined);
      await sweepAll(store, NOW_MS + 31 * DAY_MS);
      assert.equal(await store.findSession(idle), undefined);
      assert.deepEqual(await store.readEntries(idle.sid), []);
      assert.deepEqual(await store.findWatched(idle.sid, ['t']), []);
      assert.equal(await store.findRun(ended.caller, ended.run), undefined);
      assert.deepEqual(await store.listUndos(ended.caller, ended.run), []);
      for (const session of [unknown, undoing, used]) assert.notEqual(await store.findSession(session), undefined);
      assert.notEqual(await store.findRun(failed.caller, failed.run), undefined);
    },
  },
  {
    title: 'a sweep deletes a bounded amount at a time',
    run: async ({ own }) => {
      const store = await own();
      const session = aSession();
      const steps = Array.from(
        { length: 1_200 },
        (_, step) => ({ op: 'append_entry', sid: session.sid, entry: anEntry(step) }) as const,
      );
      await store.commit([open(session), ...steps]);
      const first = await store.sweep(NOW_MS + 31 * DAY_MS, KEEP);
      assert.ok(first > 400 && first < 700, `${first} rows went`);
      assert.equal(await store.findSession(session), undefined, 'nobody goes on in half a session');
      assert.ok((await sweepAll(store, NOW_MS + 31 * DAY_MS)) >= 2);
      assert.deepEqual(await store.readEntries(session.sid), []);
    },
  },
];
