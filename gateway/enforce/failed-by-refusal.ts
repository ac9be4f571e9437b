import type { SessionView } from '../../policy/session.ts';
import type { Verdict } from '../../policy/verdict.ts';
import type { PreparedLine } from '../audit/line.ts';
import type { Gateway } from '../gateway.ts';
import { planFailure } from '../runs/fail-run.ts';
import { applyReports, type StepReport } from '../session-reports.ts';
import type { Operation } from '../store/port.ts';
import type { Appended, InSession } from './append.ts';
import type { ReadCall } from './read-call.ts';

/** What a refusal does to the run of its call; all empty where it does nothing. */
export interface FailedByRefusal {
  readonly reports: readonly StepReport[];
  readonly alsoChange: (view: SessionView) => SessionView;
  readonly operations: readonly Operation[];
  readonly lines: readonly PreparedLine[];
}

const NOTHING: FailedByRefusal = { reports: [], alsoChange: (view) => view, operations: [], lines: [] };

/** Refusals that say nothing of what the run does: it has ended already, or the gateway itself failed. */
const NO_FAILURE: ReadonlySet<string> = new Set(['run_ended', 'internal_error']);

/** A call that is refused fails its run (`runs.on_refuse`), in the commit that records the refusal. */
export async function failedBy(
  gateway: Gateway,
  read: ReadCall,
  opened: InSession,
  verdict: Verdict,
): Promise<FailedByRefusal> {
  const { run, undoes } = read.call;
  if (verdict.decision !== 'refuse' || run === undefined || undoes !== undefined) return NOTHING;
  if (read.loaded.runs.onRefuse === 'leave' || opened.session.isNew) return NOTHING;
  const [reason = ''] = verdict.reasons;
  if (NO_FAILURE.has(reason)) return NOTHING;
  const failure = await planFailure(gateway, opened.session, run, `refused: ${reason}`);
  if (failure === undefined) return NOTHING;
  const { reports, alsoChange, operations, line } = failure;
  return { reports, alsoChange, operations, lines: [line] };
}

/** The refused entry, with what failing the run does to its session in the same swap of the row. */
export function withFailure(appended: Appended, failing: FailedByRefusal): Appended {
  if (failing.lines.length === 0) return appended;
  const { record, operations } = applyReports(appended, failing.reports, failing.alsoChange);
  const { headReport, lateReports, view } = record;
  const swapped = appended.operations.map((operation) =>
    operation.op === 'advance_session' ? { ...operation, headReport, lateReports, view } : operation,
  );
  return {
    ...appended,
    record: { ...appended.record, headReport, lateReports, view },
    operations: [...swapped, ...operations.filter(({ op }) => op !== 'advance_session')],
  };
}
