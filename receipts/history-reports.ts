import { type Entry, entryReport, HistoryFault, type Outcome, type Report } from './history.ts';

// What may be said of a step after what was said before. `failed` and `compensated` are final.
const FOLLOWERS: Readonly<Record<Outcome, readonly Outcome[]>> = {
  ran: ['compensated'],
  failed: [],
  outcome_unknown: ['ran', 'failed', 'compensated'],
  compensated: [],
};

/** Whether `after` may be reported of a step of which `before` was the newest report (`undefined`: none). */
export function mayFollow(before: Outcome | undefined, after: Outcome): boolean {
  return before === undefined || FOLLOWERS[before].includes(after);
}

/**
 * Whether a carried report of a call that the gateway forwarded says otherwise than what the gateway itself saw of it
 * (`{}`: nothing yet, so nothing may be said). It may lag behind (say nothing yet, or
 * what the seen outcome may follow), and a missing `result` does not differ from one that is there.
 */
export function contradictsReport(seen: Report, carried: Report): boolean {
  if (carried.outcome === undefined) return false;
  if (seen.outcome === undefined) return true;
  if (carried.outcome !== seen.outcome) return !mayFollow(carried.outcome, seen.outcome);
  return carried.result !== undefined && seen.result !== undefined && carried.result !== seen.result;
}

/**
 * The newest report of every step, by step. A step without one is absent; a whole history's entries, or a cut one's
 * single entry with `known` holding what its `prev` says. Throws {@link HistoryFault} `outcome` at the first entry with
 * a report that cannot be: of a call that was not allowed, or after one that it cannot follow.
 */
export function newestReports(entries: readonly Entry[], known: ReadonlyMap<number, Report>): Map<number, Report> {
  const newest = new Map(known);
  for (let i = 0; i < entries.length; i++) {
    const entry = entries[i] as Entry;
    if (entry.outcome !== undefined && entry.decision !== 'allow') {
      throw new HistoryFault('outcome', i, `step ${entry.step} was not allowed, so it has no outcome`);
    }
    for (const late of entry.reports ?? []) {
      const of = entries[late.step];
      if (of?.step === late.step && of.decision !== 'allow') {
        throw new HistoryFault('outcome', i, `step ${late.step} was not allowed, so it has no outcome`);
      }
      const before = newest.get(late.step)?.outcome;
      if (!mayFollow(before, late.outcome)) {
        throw new HistoryFault('outcome', i, `step ${late.step} cannot be \`${late.outcome}\` after \`${before}\``);
      }
      newest.set(late.step, entryReport(late));
    }
    if (entry.outcome !== undefined) newest.set(entry.step, entryReport(entry));
  }
  return newest;
}
