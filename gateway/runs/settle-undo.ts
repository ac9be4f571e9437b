import type { Gateway } from '../gateway.ts';
import type { Operation, RunRecord, SessionRecord, UndoRecord } from '../store/port.ts';
import type { LeftStep } from './fail-run.ts';

/** What a person can say of an undo that stopped: it was done by hand, the step stays done, or it is to be tried again. */
export const UNDO_SETTLEMENTS = ['undone', 'left', 'retry'] as const;

export type UndoSettlement = (typeof UNDO_SETTLEMENTS)[number];

export interface UndoSaid {
  readonly step: number;
  readonly as: UndoSettlement;
  readonly reason: string;
  readonly approver: string;
}

const STOPPED = ['needs_person', 'undo_unknown'] as const;

/**
 * Settles an undo that needs a person, and lets the run go on with the earlier ones. A run that only waits for a person's
 * word on what stays is closed by settling those steps as `left`. Resolves with whether there was something to settle.
 */
export async function settleUndo(
  gateway: Gateway,
  run: RunRecord,
  session: SessionRecord,
  said: UndoSaid,
): Promise<boolean> {
  const { step, as, reason, approver } = said;
  const row = (await gateway.store.listUndos(run.caller, run.run)).find((undo) => undo.step === step);
  const left = leftOf(run);
  const isUnsaid = row === undefined && as === 'left' && left.some((stays) => stays.step === step);
  if (run.state !== 'needs_person' || (row === undefined && !isUnsaid)) return false;
  const line = gateway.audit.prepare({
    event: 'approval',
    act: 'release',
    approver,
    caller: run.caller,
    agent: run.agent,
    session: session.session,
    run: run.run,
    step,
    ...(row === undefined ? {} : { tool: row.tool }),
  });
  const stays: LeftStep = { step, tool: row?.tool ?? '', why: `left by ${approver}: ${reason}` };
  const nowLeft = as === 'left' ? withLeft(left, stays) : left;
  const { why: _why, owner: _owner, leaseUntilMs: _lease, ...free } = run;
  const goesOn: RunRecord = { ...free, state: 'failed', left: JSON.stringify(nowLeft), updatedAtMs: gateway.now() };
  const result = await gateway.commit([
    ...(row === undefined ? [] : moveOf(gateway, session, row, said)),
    { op: 'touch_run', run: goesOn, from: ['needs_person'] },
    { op: 'outbox', replica: gateway.audit.replica, n: line.n, line: line.line },
  ]);
  if (!result.ok) {
    gateway.audit.abandon(line);
    return false;
  }
  gateway.undoWork.ring();
  await gateway.audit.write(line);
  return true;
}

function moveOf(
  gateway: Gateway,
  session: SessionRecord,
  row: UndoRecord,
  { as, reason, approver }: UndoSaid,
): readonly Operation[] {
  const { caller, run, step } = row;
  const named = { caller, run, step, from: STOPPED } as const;
  if (as === 'retry') {
    const due = session.mode === 'carried' ? {} : { dueAtMs: gateway.now() };
    return [{ op: 'move_undo', ...named, to: 'undo_pending', attempts: 0, ...due }];
  }
  // What a person undid by hand is undone: nobody sends another undo of it.
  const spent: Operation[] = as === 'undone' ? [{ op: 'mark_undo', sid: session.sid, step, undoAllowed: true }] : [];
  return [...spent, { op: 'move_undo', ...named, to: 'compensated', why: `${as} by ${approver}: ${reason}` }];
}

function leftOf(run: RunRecord): readonly LeftStep[] {
  return run.left === undefined ? [] : (JSON.parse(run.left) as LeftStep[]);
}

function withLeft(left: readonly LeftStep[], stays: LeftStep): readonly LeftStep[] {
  const known = left.find(({ step }) => step === stays.step);
  const others = left.filter(({ step }) => step !== stays.step);
  return [...others, known === undefined ? stays : { ...known, why: stays.why }].sort((a, b) => a.step - b.step);
}
