import { reportToView, type SessionView } from '../policy/session.ts';
import type { Tool } from '../policy/tool.ts';
import type { Outcome } from '../receipts/history.ts';
import { newestLate } from './late-reports.ts';
import type { Session } from './sessions.ts';
import type { Operation, SessionRecord } from './store/port.ts';

/** What became known of one step of a session. */
export interface StepReport {
  readonly step: number;
  /** Absent where the catalogue has lost the tool: then the report stands in the history, and counts change nothing. */
  readonly tool: Tool | undefined;
  readonly run?: string;
  readonly undoes?: number;
  readonly before: Outcome | undefined;
  readonly after: Outcome;
  /** Digest of the result. */
  readonly result?: string;
  /** Whether whoever says so is believed; what is not believed is recorded and loosens nothing. */
  readonly believed: boolean;
  readonly fields?: Readonly<Record<string, string>>;
  readonly undoArguments?: string;
  /** The history says already what this cannot follow (docs/formats.md, `reports`): stored beside it, not written into it. */
  readonly quiet?: boolean;
}

/** What reports do to a session's row: its new state, and the operations that store it. */
export interface SessionChange {
  readonly record: SessionRecord;
  readonly operations: readonly Operation[];
}

/**
 * Reports on steps of a session. Of its newest entry a report is what the next link will freeze; of an older one it is
 * a late report, which the next entry's body carries (docs/formats.md). `alsoChange` changes the view in the same swap.
 */
export function applyReports(
  session: Pick<Session, 'record'>,
  reports: readonly StepReport[],
  alsoChange: (view: SessionView) => SessionView = (view) => view,
): SessionChange {
  const before = session.record;
  let { headReport, lateReports, view } = before;
  const operations: Operation[] = [];
  for (const report of reports) {
    const { step, after: outcome, result, believed: seen } = report;
    const said = result === undefined ? { outcome } : { outcome, result };
    if (report.quiet !== true) {
      if (step === before.head?.step) headReport = said;
      else lateReports = newestLate([...lateReports, { step, ...said }]);
    }
    if (report.believed && report.tool !== undefined) {
      view = reportToView(view, {
        tool: report.tool,
        before: report.before,
        after: report.after,
        ...(report.run === undefined ? {} : { run: report.run }),
        ...(report.undoes === undefined ? {} : { undoes: report.undoes }),
      });
    }
    const { fields, undoArguments } = report;
    operations.push({
      op: 'report_step',
      sid: before.sid,
      step,
      ...said,
      seen,
      ...(fields === undefined ? {} : { fields }),
      ...(undoArguments === undefined ? {} : { undoArguments }),
    });
  }
  const version = before.version + 1;
  const record: SessionRecord = { ...before, headReport, lateReports, view: alsoChange(view), version };
  return { record, operations: [advance(before, record), ...operations] };
}

/** The operation that swaps a session's row for its next state. */
export function advance(before: SessionRecord, after: SessionRecord): Operation {
  const { sid, head, headReport, lateReports, view, usedAtMs } = after;
  const moved = { sid, expectVersion: before.version, headReport, lateReports, view, usedAtMs };
  return { op: 'advance_session', ...moved, ...(head === undefined ? {} : { head }) };
}
