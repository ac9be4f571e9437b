import assert from 'node:assert/strict';
import { openView } from '../../policy/session.ts';
import type { Case } from './contract.ts';
import { advance, anEntry, append, aSession, fresh, NOW_MS, open } from './records.ts';

const OK = { ok: true };

export const SESSION_CASES: readonly Case[] = [
  {
    title: 'a session comes back as it was opened',
    run: async ({ shared }) => {
      const session = aSession({
        head: { step: 4, link: fresh() },
        headReport: { outcome: 'ran', result: fresh() },
        lateReports: [{ step: 1, outcome: 'compensated' }],
        view: { ...openView(), labels: ['untrusted:get_order'], barrier: 3 },
        frozen: 'forked',
        version: 7,
      });
      assert.deepEqual(await shared.commit([open(session)]), OK);
      assert.deepEqual(await shared.findSession(session), session);
      assert.equal(await shared.findSession({ ...session, caller: 'another' }), undefined);
    },
  },
  {
    title: 'a session name is taken once per issuer and caller',
    run: async ({ shared }) => {
      const session = aSession();
      await shared.commit([open(session)]);
      const again = aSession({ caller: session.caller });
      assert.deepEqual(await shared.commit([open(again)]), { ok: false, operation: 0, conflict: 'session_exists' });
      assert.deepEqual(await shared.commit([open(aSession({ sid: session.sid }))]), {
        ok: false,
        operation: 0,
        conflict: 'session_exists',
      });
      assert.deepEqual(await shared.commit([open(aSession({ ...again, issuer: 'other' }))]), OK);
    },
  },
  {
    title: 'a caller has no more live sessions than it may, and old ones do not count',
    run: async ({ shared }) => {
      const caller = fresh();
      const at = (session: string, usedAtMs: number) =>
        open(aSession({ caller, session, usedAtMs }), 2, NOW_MS - 1_000);
      assert.deepEqual(await shared.commit([at('old', NOW_MS - 1_001)]), OK);
      assert.deepEqual(await shared.commit([at('a', NOW_MS - 1_000)]), OK);
      assert.deepEqual(await shared.commit([at('b', NOW_MS)]), OK);
      assert.deepEqual(await shared.commit([at('c', NOW_MS)]), {
        ok: false,
        operation: 0,
        conflict: 'too_many_sessions',
      });
      assert.deepEqual(await shared.commit([open(aSession({ caller, session: 'd' }), 3, NOW_MS - 1_000)]), OK);
    },
  },
  {
    title: 'a session moves on from the version that was seen, and only from it',
    run: async ({ shared }) => {
      const session = aSession();
      const entry = anEntry(0);
      await shared.commit([open(session)]);
      assert.deepEqual(await shared.commit(append(session, 1, entry)), OK);
      assert.deepEqual(await shared.commit(append(session, 1, anEntry(1))), {
        ok: false,
        operation: 0,
        conflict: 'session_moved',
      });
      const view = { ...openView(), barrier: 0 };
      const next = advance(session, 2, {
        view,
        headReport: { outcome: 'ran' },
        lateReports: [{ step: 0, outcome: 'compensated', result: fresh() }],
        usedAtMs: NOW_MS + 9,
      });
      assert.deepEqual(await shared.commit([next]), OK);
      const found = await shared.findSession(session);
      assert.equal(found?.version, 3);
      assert.deepEqual(found?.head, { step: 0, link: entry.link });
      assert.deepEqual(found?.view, view);
      assert.deepEqual(found?.headReport, { outcome: 'ran' });
      assert.equal(found?.lateReports[0]?.outcome, 'compensated');
      assert.equal(found?.usedAtMs, NOW_MS + 9);
      assert.deepEqual(await shared.commit([advance(aSession(), 1)]), {
        ok: false,
        operation: 0,
        conflict: 'session_moved',
      });
    },
  },
  {
    title: 'a frozen session goes nowhere and says why',
    run: async ({ shared }) => {
      const session = aSession();
      await shared.commit([open(session)]);
      assert.deepEqual(await shared.commit([{ op: 'freeze_session', sid: session.sid, why: 'forked' }]), OK);
      const found = await shared.findSession(session);
      assert.equal(found?.frozen, 'forked');
      assert.equal(found?.version, 2);
      for (const version of [1, 2]) {
        assert.deepEqual(await shared.commit([advance(session, version)]), {
          ok: false,
          operation: 0,
          conflict: 'session_frozen',
        });
      }
      assert.deepEqual(await shared.commit([{ op: 'freeze_session', sid: fresh(), why: 'x' }]), {
        ok: false,
        operation: 0,
        conflict: 'session_moved',
      });
    },
  },
  {
    title: 'entries come back in order with everything that is known of them',
    run: async ({ shared }) => {
      const session = aSession();
      const first = anEntry(0, {
        token: fresh(),
        outcome: 'ran',
        result: fresh(),
        seen: true,
        fields: { 'order.id': fresh() },
      });
      const second = anEntry(1, { forwarded: false, undoAllowed: true, undoArguments: '{"id":"ch_1"}' });
      await shared.commit([open(session), ...append(session, 1, first), ...append(session, 2, second)]);
      const report = { outcome: 'ran', result: first.result };
      const stored = [{ ...first, reportFrozen: true, frozenReport: report }, second];
      assert.deepEqual(await shared.readEntries(session.sid), stored);
      assert.deepEqual(await shared.findSteps(session.sid, [1, 7, 0]), stored);
      assert.deepEqual(await shared.findSteps(session.sid, [1]), [second]);
      assert.deepEqual(await shared.readEntries(fresh()), []);
      assert.deepEqual(await shared.commit([{ op: 'append_entry', sid: session.sid, entry: anEntry(1) }]), {
        ok: false,
        operation: 0,
        conflict: 'session_moved',
      });
    },
  },
  {
    title: 'a report sets what it names, keeps the rest, and what was seen stays seen',
    run: async ({ shared }) => {
      const session = aSession();
      const { sid } = session;
      await shared.commit([open(session), ...append(session, 1, anEntry(0))]);
      const fields = { id: fresh() };
      await shared.commit([
        {
          op: 'report_step',
          sid,
          step: 0,
          outcome: 'outcome_unknown',
          result: 'r1',
          seen: true,
          fields,
          undoArguments: '{}',
        },
        { op: 'sign_entry', sid, step: 0, token: 'signed' },
        { op: 'mark_undo', sid, step: 0, undoAllowed: true },
      ]);
      await shared.commit([{ op: 'report_step', sid, step: 0, outcome: 'ran', seen: false }]);
      const [step] = await shared.findSteps(sid, [0]);
      assert.equal(step?.outcome, 'ran');
      assert.equal(step?.result, 'r1');
      assert.equal(step?.seen, true);
      assert.deepEqual(step?.fields, fields);
      assert.equal(step?.undoArguments, '{}');
      assert.equal(step?.token, 'signed');
      assert.equal(step?.undoAllowed, true);
      assert.equal(step?.reportFrozen, false);
      assert.equal(step?.frozenReport, undefined);
      for (const operation of [
        { op: 'report_step', sid, step: 9, outcome: 'ran', seen: true },
        { op: 'sign_entry', sid, step: 9, token: 'x' },
        { op: 'mark_undo', sid, step: 9, undoAllowed: true },
      ] as const) {
        assert.deepEqual(await shared.commit([operation]), { ok: false, operation: 0, conflict: 'session_moved' });
      }
    },
  },
  {
    title: 'what the next entry froze stays beside what was reported later',
    run: async ({ shared }) => {
      const session = aSession();
      const { sid } = session;
      await shared.commit([open(session), ...append(session, 1, anEntry(0))]);
      await shared.commit([{ op: 'report_step', sid, step: 0, outcome: 'outcome_unknown', seen: true }]);
      await shared.commit(append(session, 2, anEntry(1)));
      await shared.commit([{ op: 'report_step', sid, step: 0, outcome: 'ran', result: 'r1', seen: true }]);
      await shared.commit([{ op: 'report_step', sid, step: 0, outcome: 'compensated', seen: true }]);
      const [step] = await shared.findSteps(sid, [0]);
      assert.equal(step?.outcome, 'compensated');
      assert.equal(step?.result, 'r1');
      assert.equal(step?.reportFrozen, true);
      assert.deepEqual(step?.frozenReport, { outcome: 'outcome_unknown' });
    },
  },
  {
    title: 'a new session is told of the views that an allowed call changed of late, refusals aside',
    run: async ({ shared }) => {
      const caller = fresh();
      const allowed = aSession({ caller, session: 'allowed' });
      const refused = aSession({ caller, session: 'refused' });
      const old = aSession({ caller, session: 'old' });
      const view = { ...openView(), barrier: 0 };
      await shared.commit([open(allowed), open(refused), open(old)]);
      await shared.commit([
        advance(allowed, 1, { view, usedAtMs: NOW_MS + 100 }),
        advance(refused, 1, { usedAtMs: NOW_MS + 100 }),
        advance(old, 1, { view, usedAtMs: NOW_MS + 10 }),
        advance(old, 2, { view, usedAtMs: NOW_MS + 200 }),
      ]);
      assert.deepEqual(await shared.viewsOfCaller('shop-gateway', caller, NOW_MS + 100), [view]);
      assert.equal((await shared.viewsOfCaller('shop-gateway', caller, NOW_MS)).length, 2);
      assert.deepEqual(await shared.viewsOfCaller('other', caller, 0), []);
    },
  },
  {
    title: 'the newest watched answers of each tool are kept',
    run: async ({ shared }) => {
      const sid = fresh();
      const record = (tool: string, step: number) => ({
        tool,
        step,
        arguments: '{"order_id":"o-1"}',
        result: `{"n":${step}}`,
      });
      for (const step of [1, 2, 3]) {
        await shared.commit([{ op: 'watch', sid, record: record('shop/get_order', step), keep: 2 }]);
      }
      await shared.commit([{ op: 'watch', sid, record: record('shop/get_user', 4), keep: 2 }]);
      const tools = ['shop/get_order', 'shop/get_user', 'shop/none'];
      assert.deepEqual(await shared.findWatched(sid, tools), [
        record('shop/get_user', 4),
        record('shop/get_order', 3),
        record('shop/get_order', 2),
      ]);
      assert.equal((await shared.findWatched(sid, ['shop/get_order'])).length, 2);
      assert.deepEqual(await shared.findWatched(fresh(), tools), []);
    },
  },
  {
    title: 'of 20 that move one session on from the same version one succeeds',
    run: async ({ shared }) => {
      const session = aSession();
      await shared.commit([open(session)]);
      const results = await Promise.all(
        Array.from({ length: 20 }, () => shared.commit(append(session, 1, anEntry(0)))),
      );
      assert.equal(results.filter((result) => result.ok).length, 1);
      assert.equal((await shared.readEntries(session.sid)).length, 1);
    },
  },
  {
    title: 'what is enqueued is there for the next read and the next commit of its session',
    run: async ({ shared }) => {
      const session = aSession();
      shared.enqueue([open(session)]);
      for (let step = 0; step < 20; step += 1) shared.enqueue(append(session, step + 1, anEntry(step)));
      assert.deepEqual(await shared.commit(append(session, 21, anEntry(20))), OK);
      shared.enqueue(append(session, 22, anEntry(21)));
      assert.equal((await shared.findSession(session))?.version, 23);
      assert.equal((await shared.readEntries(session.sid)).length, 22);
    },
  },
];
