import type { Call, Snapshot } from '../call.ts';
import type { Step, StepAnswer, Work } from '../verdict.ts';
import { personReasons } from './person.ts';

/** Row 12. */
export const COMPENSATION_STEP: Step = {
  name: 'compensation',
  checks: 'an undo that passed every row above',
  answers: 'allow',
  reasons: ['compensation'],
  run: allowCompensation,
};

function allowCompensation(snapshot: Snapshot, call: Call, work: Work): StepAnswer | undefined {
  if (!work.undoBound) return undefined;
  // An agent's own undo needs a person like any write, unless the operator's words waive that.
  const { waived } = personReasons(snapshot, call, work);
  return { decision: 'allow', reasons: ['compensation'], ...(waived.length === 0 ? {} : { waived }) };
}
