import { canonicalize } from '../../receipts/canonical.ts';
import type { Call, Snapshot, StepFacts } from '../call.ts';
import type { UndoBinding } from '../tool.ts';
import { refuse, type Step, type StepAnswer, type Work } from '../verdict.ts';

/** Row 6. Without `undoes`, a tool that happens to be another's undo is an ordinary call. */
export const UNDO_STEP: Step = {
  name: 'undo',
  checks:
    'an undo names the step that it undoes; that step ran; this is its declared undo, with exactly the arguments bound from it; a step is undone once',
  answers: 'refuse',
  reasons: ['compensation_mismatch', 'compensation_spent'],
  run: checkUndo,
};

function checkUndo(snapshot: Snapshot, call: Call, work: Work): StepAnswer | undefined {
  if (call.undoes === undefined) return undefined;
  const step = snapshot.steps.get(call.undoes);
  if (step === undefined) return mismatch('step');
  if (step.undoes !== undefined) return mismatch('undo_of_undo');
  const undone = snapshot.catalogue.tools.get(step.toolId);
  const undo = undone?.irreversible ? undefined : undone?.undo;
  if (undo === undefined || undo === 'none' || undo.tool !== work.tool.id) return mismatch('tool');
  if (!canBeUndone(step, undo)) return mismatch('outcome');
  if (!isExactlyBound(call, undo, step)) return mismatch('arguments');
  if (step.outcome === 'compensated' || step.undoAllowed) return refuse('compensation_spent');
  work.undoBound = true;
  return undefined;
}

/** Whether the step may have done something that its undo can take back; one that was undone did. */
function canBeUndone(step: StepFacts, undo: UndoBinding): boolean {
  if (step.outcome === 'ran' || step.outcome === 'compensated') return true;
  if (step.outcome !== 'outcome_unknown' || !undo.safeIfNothingHappened) return false;
  return Object.values(undo.with).every((source) => source.from === 'arguments');
}

/** Every argument that the undo binds, with the value bound from the step, and no other. */
function isExactlyBound(call: Call, undo: UndoBinding, step: StepFacts): boolean {
  const hasAll = Object.keys(undo.with).every((name) => Object.hasOwn(call.arguments, name));
  return hasAll && canonicalize(call.arguments) === (step.undoArguments ?? '{}');
}

function mismatch(differs: string): StepAnswer {
  return refuse('compensation_mismatch', { differs });
}
