import { outcomeOf, readBody } from './enforce/step-facts.ts';
import type { Gateway } from './gateway.ts';
import type { StepReport } from './session-reports.ts';
import type { Session } from './sessions.ts';

/** An undo that ran leaves the step that it undid `compensated`. */
export async function compensatedBy(
  gateway: Gateway,
  session: Session,
  undone: number,
): Promise<readonly StepReport[]> {
  const [record] = await gateway.store.findSteps(session.record.sid, [undone]);
  if (record === undefined) return [];
  const body = readBody(record);
  return [
    {
      step: undone,
      tool: gateway.loaded.catalogue.tools.get(body.tool),
      before: outcomeOf(record.outcome),
      after: 'compensated',
      believed: true,
      ...(body.run === undefined ? {} : { run: body.run }),
    },
  ];
}
