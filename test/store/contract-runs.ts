import assert from 'node:assert/strict';
import type { Operation, RunRecord } from '../../gateway/store/port.ts';
import type { Case } from './contract.ts';
import { anUndo, aRun, fresh, NOW_MS } from './records.ts';

const OK = { ok: true };

function touch(run: RunRecord, from: readonly RunRecord['state'][] = ['open']): Operation {
  return { op: 'touch_run', run, from };
}

export const RUN_CASES: readonly Case[] = [
  {
    title: 'a run is made, touched, and lives in one session',
    run: async ({ shared }) => {
      const run = aRun();
      assert.equal(await shared.findRun(run.caller, run.run), undefined);
      assert.deepEqual(await shared.commit([touch(run)]), OK);
      assert.deepEqual(await shared.findRun(run.caller, run.run), run);
      const failed = {
        ...run,
        state: 'failed',
        why: 'refused',
        left: '[{"step":2}]',
        updatedAtMs: NOW_MS + 1,
      } as const;
      assert.deepEqual(await shared.commit([touch(failed)]), OK);
      assert.deepEqual(await shared.findRun(run.caller, run.run), failed);
      assert.deepEqual(await shared.commit([touch(run)]), { ok: false, operation: 0, conflict: 'run_state' });
      const elsewhere = { ...run, sid: fresh() };
      assert.deepEqual(await shared.commit([touch(elsewhere, ['failed'])]), {
        ok: false,
        operation: 0,
        conflict: 'run_foreign',
      });
      assert.deepEqual(await shared.commit([touch({ ...run, caller: fresh() })]), OK);
    },
  },
  {
    title: 'runs are listed by state, longest untouched first',
    run: async ({ own }) => {
      const store = await own();
      const states = ['open', 'failed', 'needs_person', 'open'] as const;
      const runs = states.map((state, i) => aRun({ state, updatedAtMs: NOW_MS - i }));
      await store.commit(runs.map((run) => touch(run)));
      const found = await store.listRuns(['open', 'needs_person'], 9);
      assert.deepEqual(found, [runs[3], runs[2], runs[0]]);
      assert.equal((await store.listRuns(['open', 'needs_person'], 2)).length, 2);
      assert.deepEqual(await store.listRuns([], 9), []);
    },
  },
  {
    title: 'undos come highest step first and move by their state',
    run: async ({ shared }) => {
      const run = aRun();
      const first = anUndo(run, 1, { arguments: '{"id":"ch_1"}' });
      const second = anUndo(run, 4, { why: 'not bound' });
      await shared.commit([touch(run), { op: 'put_undo', undo: first }, { op: 'put_undo', undo: second }]);
      assert.deepEqual(await shared.listUndos(run.caller, run.run), [second, first]);
      const begin = {
        op: 'move_undo',
        caller: run.caller,
        run: run.run,
        step: 4,
        from: ['undo_pending'],
        to: 'undoing',
      } as const;
      assert.deepEqual(await shared.commit([{ ...begin, attempts: 1, dueAtMs: NOW_MS + 7 }]), OK);
      assert.deepEqual(await shared.commit([begin]), { ok: false, operation: 0, conflict: 'undo_state' });
      assert.deepEqual(await shared.commit([{ ...begin, step: 9 }]), {
        ok: false,
        operation: 0,
        conflict: 'undo_state',
      });
      const [moved] = await shared.listUndos(run.caller, run.run);
      assert.deepEqual(
        [moved?.state, moved?.attempts, moved?.dueAtMs, moved?.why],
        ['undoing', 1, NOW_MS + 7, undefined],
      );
      await shared.commit([{ op: 'put_undo', undo: { ...second, round: 2 } }]);
      assert.equal((await shared.listUndos(run.caller, run.run))[0]?.round, 2);
    },
  },
  {
    title: 'a run with an undo due is taken once, while its owner lives',
    run: async ({ own }) => {
      const store = await own();
      const run = aRun({ state: 'failed' });
      await store.commit([touch(run), touch(aRun()), { op: 'put_undo', undo: anUndo(run, 1) }]);
      const taken = await Promise.all(['a', 'b', 'c'].map((owner) => store.takeUndoWork(owner, NOW_MS, NOW_MS + 50)));
      const [got] = taken.filter((found) => found !== undefined);
      assert.equal(taken.filter((found) => found !== undefined).length, 1);
      assert.equal(got?.run, run.run);
      assert.equal(got?.leaseUntilMs, NOW_MS + 50);
      const owner = got?.owner ?? '';
      assert.equal(await store.takeUndoWork(owner, NOW_MS + 50, NOW_MS + 90), undefined);
      const other = { ...run, state: 'undoing', owner: 'z', leaseUntilMs: NOW_MS + 99 } as const;
      assert.deepEqual(await store.commit([touch(other, ['failed'])]), {
        ok: false,
        operation: 0,
        conflict: 'run_state',
      });
      assert.deepEqual(await store.commit([touch({ ...run, state: 'undoing' }, ['failed'])]), OK);
      assert.equal(
        (await store.findRun(run.caller, run.run))?.owner,
        owner,
        'a touch without an owner keeps the one it has',
      );
      await store.renewLeases(owner, NOW_MS + 100);
      assert.equal(await store.takeUndoWork('z', NOW_MS + 100, NOW_MS + 200), undefined);
      assert.equal((await store.takeUndoWork('z', NOW_MS + 101, NOW_MS + 200))?.owner, 'z');
      assert.deepEqual(
        await store.commit([touch({ ...run, state: 'compensated', updatedAtMs: NOW_MS + 150 }, ['undoing'])]),
        OK,
      );
      assert.equal((await store.findRun(run.caller, run.run))?.owner, undefined, 'a run that is done has no owner');
    },
  },
  {
    title: 'the highest undo that is not done decides whether there is work, and a run without one waits to be closed',
    run: async ({ own }) => {
      const store = await own();
      const run = aRun({ state: 'undoing' });
      const { caller } = run;
      await store.commit([
        touch(run),
        { op: 'put_undo', undo: anUndo(run, 1) },
        { op: 'put_undo', undo: anUndo(run, 2, { dueAtMs: NOW_MS + 10 }) },
      ]);
      const take = async (nowMs: number) => (await store.takeUndoWork('me', nowMs, nowMs)) !== undefined;
      const set = (step: number, to: 'undoing' | 'needs_person' | 'compensated') =>
        store.commit([
          { op: 'move_undo', caller, run: run.run, step, from: ['undo_pending', 'undoing', 'needs_person'], to },
        ]);
      assert.equal(await take(NOW_MS + 9), false, 'step 1 waits for step 2');
      assert.equal(await take(NOW_MS + 10), true);
      await set(2, 'needs_person');
      assert.equal(await take(NOW_MS + 20), false, 'step 1 waits for the person');
      await set(2, 'compensated');
      assert.equal(await take(NOW_MS + 30), true);
      await set(1, 'undoing');
      assert.equal(await take(NOW_MS + 40), true, 'an undo that its owner left begun goes on');
      await set(1, 'compensated');
      assert.equal(await take(NOW_MS + 50), true, 'nobody closed the run yet');
      await store.commit([touch({ ...run, state: 'compensated' }, ['undoing'])]);
      assert.equal(await take(NOW_MS + 60), false);
    },
  },
];
