import type { Snapshot } from '../call.ts';
import { refuse, type Step, type StepAnswer } from '../verdict.ts';

/** Row 2. The verifying itself is `receipts/`; what it found is part of the snapshot. */
export const HISTORY_STEP: Step = {
  name: 'history',
  checks: "the session's history verifies, entry by entry, by the signature that each carries over all before it",
  answers: 'refuse',
  reasons: ['history_invalid'],
  run: checkHistory,
};

function checkHistory(snapshot: Snapshot): StepAnswer | undefined {
  const { fault } = snapshot.session;
  if (fault === undefined) return undefined;
  return refuse('history_invalid', {
    fault: fault.fault,
    ...(fault.entry === undefined ? {} : { entry: fault.entry }),
  });
}
