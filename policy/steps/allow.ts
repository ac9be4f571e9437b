import type { Call, Snapshot } from '../call.ts';
import type { Step, StepAnswer, Work } from '../verdict.ts';
import { personReasons } from './person.ts';

/** Row 13. */
export const ALLOW_STEP: Step = {
  name: 'allow',
  checks: 'nothing above held the call',
  answers: 'allow',
  reasons: ['allow'],
  run: allow,
};

function allow(snapshot: Snapshot, call: Call, work: Work): StepAnswer {
  const { waived } = personReasons(snapshot, call, work);
  return { decision: 'allow', reasons: ['allow'], ...(waived.length === 0 ? {} : { waived }) };
}
