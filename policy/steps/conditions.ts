import type { Call, Snapshot } from '../call.ts';
import { refuse, type Step, type StepAnswer, type Work } from '../verdict.ts';

/** Row 7. Never on an undo: the conditions were for the write that it undoes. */
export const CONDITIONS_STEP: Step = {
  name: 'conditions',
  checks:
    "the tool's own `checks` on the arguments and on what earlier tools returned, its limits per period, and what it may spend; never on an undo",
  answers: 'refuse',
  reasons: [
    'condition_failed',
    'condition_unknown',
    'usage_unknown',
    'limit_reached',
    'spend_unknown',
    'spend_exceeded',
  ],
  run: checkConditions,
};

function checkConditions(snapshot: Snapshot, call: Call, work: Work): StepAnswer | undefined {
  if (work.undoBound) return undefined;
  const refusal = snapshot.step7(work.tool, call, snapshot);
  return refusal === undefined ? undefined : refuse(refusal.reason, refusal.detail);
}
