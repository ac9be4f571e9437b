import { runOf, type SessionView } from '../../policy/session.ts';
import type { Tool } from '../../policy/tool.ts';
import type { Outcome } from '../../receipts/history.ts';
import type { PreparedLine } from '../audit/line.ts';
import { compensatedBy } from '../compensated-step.ts';
import { readBody } from '../enforce/step-facts.ts';
import type { Gateway } from '../gateway.ts';
import type { StepReport } from '../session-reports.ts';
import type { Session } from '../sessions.ts';
import type { Operation, RunRecord, RunState, UndoRecord, UndoState } from '../store/port.ts';
import { planFailure } from './fail-run.ts';

/** What follows from an outcome, for the commit that stores it. */
export interface Effects {
  readonly reports: readonly StepReport[];
  readonly alsoChange: (view: SessionView) => SessionView;
  readonly operations: readonly Operation[];
  readonly lines: readonly PreparedLine[];
  /** A run is marked failed in the same commit. */
  readonly failsRun: boolean;
}

/** An outcome of a step that is about to be stored. */
export interface StepOutcome {
  readonly step: number;
  readonly tool: Tool | undefined;
  readonly run?: string;
  readonly undoes?: number;
  readonly outcome: Outcome;
  /** A person said so, or recovery: nobody is waiting for it who would see to its undo row. */
  readonly late: boolean;
}

export const NO_EFFECTS: Effects = {
  reports: [],
  alsoChange: (view) => view,
  operations: [],
  lines: [],
  failsRun: false,
};

/** What an outcome does to the run of its step: fails it, ends an undo of it, or lets one that waited for it go on. */
export async function effectsOf(gateway: Gateway, session: Session, of: StepOutcome): Promise<Effects> {
  if (of.undoes !== undefined) return endUndo(gateway, session, of, of.undoes);
  if (of.run === undefined || of.outcome === 'outcome_unknown' || of.outcome === 'compensated') return NO_EFFECTS;
  if (runOf(session.record.view, of.run)?.ended === true) return followStep(gateway, session, of, of.run);
  if (of.outcome !== 'failed' || gateway.loaded.runs.onFailure === 'leave') return NO_EFFECTS;
  const failure = await planFailure(gateway, session, of.run, 'failed', new Map([[of.step, of.outcome]]));
  return failure === undefined ? NO_EFFECTS : { ...failure, lines: [failure.line], failsRun: true };
}

const UNFINISHED: readonly UndoState[] = ['undo_pending', 'undoing', 'undo_unknown', 'needs_person'];

/** The call was an undo. One that ran closes its row, whoever sent it; one that failed may be sent again. */
async function endUndo(gateway: Gateway, session: Session, of: StepOutcome, undone: number): Promise<Effects> {
  const { outcome } = of;
  const { row, run } = await findRow(gateway, session, undone);
  const reports = outcome === 'ran' ? await compensatedBy(gateway, session, undone, row) : [];
  const letGo: Operation[] =
    outcome === 'failed' ? [{ op: 'mark_undo', sid: session.record.sid, step: undone, undoAllowed: false }] : [];
  const only: Effects = { ...NO_EFFECTS, reports, operations: letGo };
  if (row === undefined || run === undefined || row.state === 'compensated') return only;
  if (outcome === 'ran') return moveOn(gateway, session, only, run, row, 'compensated');
  return outcome === 'failed' && of.late && row.state !== 'undo_pending'
    ? moveOn(gateway, session, only, run, row, 'undo_pending')
    : only;
}

/** A step of a run that is being undone: its own outcome came late. */
async function followStep(gateway: Gateway, session: Session, of: StepOutcome, name: string): Promise<Effects> {
  const { row, run } = await findRow(gateway, session, of.step, name);
  if (row === undefined || run === undefined) return NO_EFFECTS;
  if (row.state === 'compensated') return of.outcome === 'ran' ? reopen(gateway, session, run, row) : NO_EFFECTS;
  // Nothing was done, so that there is nothing to undo.
  if (of.outcome === 'failed') return moveOn(gateway, session, NO_EFFECTS, run, row, 'compensated');
  return moveOn(gateway, session, NO_EFFECTS, run, row, 'undo_pending');
}

async function findRow(
  gateway: Gateway,
  session: Session,
  step: number,
  name?: string,
): Promise<{ readonly row?: UndoRecord; readonly run?: RunRecord }> {
  const { sid, caller } = session.record;
  const [record] = name === undefined ? await gateway.store.findSteps(sid, [step]) : [];
  const run = name ?? (record === undefined ? undefined : readBody(record).run);
  if (run === undefined) return {};
  const row = (await gateway.store.listUndos(caller, run)).find((undo) => undo.step === step);
  const owner = row === undefined ? undefined : await gateway.store.findRun(caller, run);
  if (row === undefined || owner === undefined || owner.sid !== sid) return {};
  return { row, run: owner };
}

function moveOn(
  gateway: Gateway,
  session: Session,
  so: Effects,
  run: RunRecord,
  row: UndoRecord,
  to: 'compensated' | 'undo_pending',
): Effects {
  const { caller, step } = row;
  const isSame = row.state === to;
  const due = session.record.mode === 'carried' ? {} : { dueAtMs: gateway.now() };
  return {
    ...so,
    operations: [
      ...so.operations,
      { op: 'move_undo', caller, run: run.run, step, from: UNFINISHED, to, ...due },
      ...goOn(gateway, run, ['needs_person']),
    ],
    lines: isSame ? [] : [undoLine(gateway, session, { ...row, state: to })],
  };
}

/**
 * The step was undone in case it had been done, and nothing was: now it was done after all. It is undone once more, as
 * another undo with another key.
 */
function reopen(gateway: Gateway, session: Session, run: RunRecord, row: UndoRecord): Effects {
  const { why: _why, ...rest } = row;
  const dueAtMs = session.record.mode === 'carried' ? row.dueAtMs : gateway.now();
  const undo: UndoRecord = { ...rest, state: 'undo_pending', round: row.round + 1, attempts: 0, dueAtMs };
  return {
    ...NO_EFFECTS,
    operations: [
      { op: 'put_undo', undo },
      { op: 'mark_undo', sid: session.record.sid, step: row.step, undoAllowed: false },
      ...goOn(gateway, run, ['compensated', 'needs_person']),
    ],
    lines: [undoLine(gateway, session, undo)],
  };
}

/** A run that had stopped is taken up again by the engine of whichever replica comes first. */
function goOn(gateway: Gateway, run: RunRecord, from: readonly RunState[]): readonly Operation[] {
  if (!from.includes(run.state)) return [];
  const { owner: _owner, leaseUntilMs: _lease, why: _why, ...free } = run;
  return [{ op: 'touch_run', run: { ...free, state: 'failed', updatedAtMs: gateway.now() }, from }];
}

function undoLine(gateway: Gateway, session: Session, row: UndoRecord): PreparedLine {
  return gateway.audit.prepare({
    event: 'undo',
    state: row.state,
    undo_tool: row.undoTool,
    round: row.round,
    attempts: row.attempts,
    tool: row.tool,
    caller: row.caller,
    session: session.record.session,
    run: row.run,
    step: row.step,
  });
}
