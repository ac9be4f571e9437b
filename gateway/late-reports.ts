import type { LateReport } from '../receipts/history.ts';
import { outcomeOf } from './enforce/step-facts.ts';
import type { SessionRecord } from './store/port.ts';

/** Late reports as the next entry's body carries them: the newest of each step, sorted by step (docs/formats.md). */
export function newestLate(reports: SessionRecord['lateReports']): readonly LateReport[] {
  if (reports.length === 0) return [];
  const newest = new Map<number, LateReport>();
  for (const { step, outcome: word, result } of reports) {
    const outcome = outcomeOf(word);
    if (outcome === undefined) throw new Error(`the store holds an unknown outcome of step ${step}`);
    newest.set(step, result === undefined ? { step, outcome } : { step, outcome, result });
  }
  return [...newest.values()].sort((a, b) => a.step - b.step);
}
