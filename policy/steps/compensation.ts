import type { Call, Snapshot } from '../call.ts';
import type { Step, StepAnswer, Work } from '../verdict.ts';

/** Row 12. */
export const COMPENSATION_STEP: Step = {
  name: 'compensation',
  checks: 'an undo that passed every row above',
  reasons: ['compensation'],
  run: allowCompensation,
};

function allowCompensation(_snapshot: Snapshot, _call: Call, work: Work): StepAnswer | undefined {
  return work.undoBound ? { decision: 'allow', reasons: ['compensation'] } : undefined;
}
