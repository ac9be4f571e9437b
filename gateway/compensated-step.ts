import { mayFollow } from '../receipts/history-reports.ts';
import { outcomeOf, readBody } from './enforce/step-facts.ts';
import type { Gateway } from './gateway.ts';
import type { StepReport } from './session-reports.ts';
import type { Session } from './sessions.ts';
import type { UndoRecord } from './store/port.ts';

/** An undo that ran leaves the step that it undid `compensated`. `row` is what its run keeps of that undo, if any. */
export async function compensatedBy(
  gateway: Gateway,
  session: Session,
  undone: number,
  row: UndoRecord | undefined,
): Promise<readonly StepReport[]> {
  const [record] = await gateway.store.findSteps(session.record.sid, [undone]);
  if (record === undefined) return [];
  const body = readBody(record);
  const before = outcomeOf(record.outcome);
  // Undone a second time, after it was reopened: the history said so the first time.
  const quiet = (row !== undefined && row.round > 1) || !mayFollow(before, 'compensated');
  return [
    {
      step: undone,
      tool: gateway.loaded.catalogue.tools.get(body.tool),
      before,
      after: 'compensated',
      believed: true,
      quiet,
      ...(body.run === undefined ? {} : { run: body.run }),
    },
  ];
}
