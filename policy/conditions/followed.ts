import type { JsonValue } from '../../receipts/json-value.ts';
import { compileConditions } from './compile.ts';
import type { ConditionSource, Lookups } from './condition.ts';
import type { ResolveField } from './operand.ts';

/** The conditions of `outcome`, as they are written. */
export interface FollowedSource {
  readonly done_when: readonly ConditionSource[];
  readonly failed_when?: readonly ConditionSource[];
}

/**
 * How a followed write stands by an answer of the read that follows it. `pending` is for sure neither; `unknown` is what
 * nobody can tell from this answer, which is asked again like `pending` and never settles anything.
 */
export type Followed = 'done' | 'failed' | 'pending' | 'unknown';

/** Judges one answer of the following read. Never throws. */
export type JudgeFollowed = (answer: JsonValue, lookups: Lookups) => Followed;

/** Compiles the conditions of a followed outcome. Throws `ConditionFault` for one that is none. */
export function compileFollowed(source: FollowedSource, resolve: ResolveField): JudgeFollowed {
  const done = compileConditions(source.done_when, resolve);
  const failed = source.failed_when === undefined ? undefined : compileConditions(source.failed_when, resolve);
  return (answer, lookups) => {
    const isDone = done.judge(answer, lookups).verdict;
    const isFailed = failed?.judge(answer, lookups).verdict ?? 'failed';
    // An answer that says both says nothing that one could act on.
    if (isDone === 'holds') return isFailed === 'failed' ? 'done' : 'unknown';
    if (isFailed === 'holds') return isDone === 'failed' ? 'failed' : 'unknown';
    return isDone === 'failed' && isFailed === 'failed' ? 'pending' : 'unknown';
  };
}
