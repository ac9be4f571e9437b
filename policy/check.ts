import type { Call, Snapshot } from './call.ts';
import { ALLOW_STEP } from './steps/allow.ts';
import { CATALOGUE_STEP } from './steps/catalogue.ts';
import { COMPENSATION_STEP } from './steps/compensation.ts';
import { CONDITIONS_STEP } from './steps/conditions.ts';
import { CONFIRMATION_STEP } from './steps/confirmation.ts';
import { DESTINATION_STEP } from './steps/destination.ts';
import { HISTORY_STEP } from './steps/history.ts';
import { ORDER_STEP } from './steps/order.ts';
import { PERSON_STEP } from './steps/person.ts';
import { RULEBOOK_STEP } from './steps/rulebook.ts';
import { SCHEMA_STEP } from './steps/schema.ts';
import { TAINT_STEP } from './steps/taint.ts';
import { UNDO_STEP } from './steps/undo.ts';
import { type Step, type Verdict, Work } from './verdict.ts';

/**
 * The order of the check. The first row that answers ends it, so a refusal names the first thing that is wrong and
 * nothing after it is looked at. The reference tables in the documents are made from this one.
 */
export const STEPS: readonly Step[] = [
  CATALOGUE_STEP,
  HISTORY_STEP,
  SCHEMA_STEP,
  DESTINATION_STEP,
  ORDER_STEP,
  UNDO_STEP,
  CONDITIONS_STEP,
  RULEBOOK_STEP,
  TAINT_STEP,
  CONFIRMATION_STEP,
  PERSON_STEP,
  COMPENSATION_STEP,
  ALLOW_STEP,
];

/**
 * Decides one call of one tool. A pure function: the same snapshot and call give the same verdict. Never throws: a step
 * that throws, or a table that answers nothing, refuses with `internal_error`, so a check cannot fail open.
 */
export function checkCall(snapshot: Snapshot, call: Call, steps: readonly Step[] = STEPS): Verdict {
  const work = new Work();
  try {
    for (const step of steps) {
      const answer = step.run(snapshot, call, work);
      if (answer === undefined) continue;
      return { ...answer, step: step.name, tool: work.foundTool, agent: work.agent, labels: work.labels };
    }
    throw new Error('no step answered the call');
  } catch (error) {
    return {
      decision: 'refuse',
      reasons: ['internal_error'],
      step: 'internal_error',
      tool: work.foundTool,
      agent: work.agent,
      labels: work.labels,
      error,
    };
  }
}
