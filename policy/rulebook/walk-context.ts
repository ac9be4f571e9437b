import type { Answer } from './answer.ts';
import type { Reach } from './reach.ts';
import type { RecordNode, RulebookRecord } from './record.ts';

/** What happens once a flow returns, for each state that it can return in, and whether the tool can follow. */
export interface Continuation {
  readonly answers: readonly (Answer | undefined)[];
  readonly reaches: boolean;
  readonly key: string;
}

/** What the walk of a flow needs of the decision that it is part of. */
export interface WalkContext {
  readonly record: RulebookRecord;
  readonly reach: Reach;
  readonly executes: (tool: string) => boolean;
  /** What happens at the end of a flow that nobody called. */
  readonly end: Continuation;
  readonly flow: (index: number, after: Continuation, state: number) => Answer;
  readonly endAnswer: (state: number) => Answer;
  readonly live: (flow: number, at: number, node: Extract<RecordNode, { op: 'if' }>) => Int32Array;
  readonly spend: () => boolean;
  readonly continuation: (answers: readonly (Answer | undefined)[], reaches: boolean) => Continuation;
}
