import type { Call, Snapshot } from '../call.ts';
import { taintsOf } from '../labels.ts';
import { refuse, type Step, type StepAnswer, type Work } from '../verdict.ts';

/** Row 9. Reads are never held for a label. */
export const TAINT_STEP: Step = {
  name: 'taint',
  checks: 'a write that carries a label less trusted than the tool needs, where `taint_policy` is `refuse`',
  answers: 'refuse',
  reasons: ['tainted_call'],
  run: checkTaint,
};

function checkTaint(snapshot: Snapshot, _call: Call, work: Work): StepAnswer | undefined {
  if (!work.tool.writes || snapshot.settings.taintPolicy !== 'refuse') return undefined;
  const labels = taintsOf(snapshot, work.tool, work.labels);
  return labels.length === 0 ? undefined : refuse('tainted_call', { labels });
}
