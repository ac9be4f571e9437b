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
  move,
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
      assert.deepEqual([...(await store.readCounters([period, yearly, unsettled])).keys()], [yearly]);
      await sweepAll(store, NOW_MS + 402 * DAY_MS);
      assert.equal((await store.readCounters([yearly])).size, 0);
    },
  },
  {
    title:
      'a period that is past goes with what was never settled in it, a bounded amount at a time, and no other count moves',
    run: async ({ own }) => {
      const store = await own();
      const [past, running, unfinished] = [fresh(), fresh(), fresh()];
      const both = fresh();
      const many = Array.from({ length: 1_198 }, () => hold(past, '0.5', '9999', { untilMs: NOW_MS }));
      await store.commit([
        ...many,
        hold(past, '1', '9999', { link: both, untilMs: NOW_MS }),
        hold(past, '1', '9999', { link: unfinished, untilMs: NOW_MS }),
        hold(running, '2.5', '10', { link: both, untilMs: NOW_MS + DAY_MS }),
        hold(running, '1', '10', { link: unfinished, untilMs: NOW_MS + DAY_MS }),
      ]);
      assert.equal(await store.sweep(NOW_MS, KEEP), 0, 'its last moment belongs to it');
      const first = await store.sweep(NOW_MS + 1, KEEP);
      assert.ok(first > 400 && first < 700, `${first} rows went`);
      const between = (await store.readCounters([past])).get(past);
      assert.ok(between !== undefined && Number(between.held) > 0 && Number(between.held) < 601, between?.held);
      // The call is settled while the sweep is halfway, and after it.
      await store.commit([{ op: 'settle_holds', link: both }]);
      let rows = first;
      for (let gone = 1; gone > 0; rows += gone) gone = await store.sweep(NOW_MS + 1, KEEP);
      assert.ok(rows === 1_201 || rows === 1_200, `${rows} rows went: the holds and their counter`);
      assert.equal((await store.readCounters([past])).size, 0);
      await store.commit([{ op: 'release_holds', link: unfinished }]);
      const counted = (await store.readCounters([running])).get(running);
      assert.deepEqual([Number(counted?.settled), Number(counted?.held)], [2.5, 0]);
      assert.deepEqual(await store.commit([hold(running, '7.5', '10', { untilMs: NOW_MS + DAY_MS })]), { ok: true });
      assert.equal((await store.commit([hold(running, '0.1', '10', { untilMs: NOW_MS + DAY_MS })])).ok, false);
    },
  },
  {
    title: 'what is counted of a session, and held in it, goes with the session and not before',
    run: async ({ own }) => {
      const store = await own();
      const [waits, idle] = [aSession(), aSession()];
      const [kept, gone] = [fresh(), fresh()];
      const claim = aClaim({ sid: waits.sid, state: 'outcome_unknown' });
      const ran = fresh();
      await store.commit([
        open(waits),
        open(idle),
        { op: 'claim', claim },
        hold(kept, '4', '5', { link: claim.link, ofSession: waits.sid }),
        ...Array.from({ length: 700 }, () => hold(gone, '1', '9999', { ofSession: idle.sid })),
        hold(gone, '1', '9999', { link: ran, ofSession: idle.sid }),
        { op: 'settle_holds', link: ran },
      ]);
      await sweepAll(store, NOW_MS + 30 * DAY_MS);
      assert.equal((await store.readCounters([kept, gone])).size, 2);
      // A session of which an outcome is unknown stays, and its count with it, past every other keeping.
      await sweepAll(store, NOW_MS + 500 * DAY_MS);
      assert.deepEqual([...(await store.readCounters([kept, gone])).keys()], [kept]);
      assert.equal((await store.commit([hold(kept, '2', '5', { ofSession: waits.sid })])).ok, false);
      await store.commit([move(claim, 'failed'), { op: 'release_holds', link: claim.link }]);
      assert.deepEqual(await store.commit([hold(kept, '5', '5', { ofSession: waits.sid })]), { ok: true });
      await sweepAll(store, NOW_MS + 500 * DAY_MS);
      assert.equal((await store.readCounters([kept])).size, 0);
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
