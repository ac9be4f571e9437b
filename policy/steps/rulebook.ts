import type { Call, Snapshot } from '../call.ts';
import { type ReasonText, reasonCode } from '../reasons.ts';
import { refuse, type Step, type StepAnswer, type Work } from '../verdict.ts';

/** Row 8. A question that the rulebook asks is put to a person in row 11. */
export const RULEBOOK_STEP: Step = {
  name: 'rulebook',
  checks: 'the compiled rulebook, as it decides the call; on an undo it can ask, never refuse',
  answers: 'refuse',
  reasons: ['rulebook_refused', 'no_rule', 'rulebook_undecided', 'rulebook_unreached'],
  run: checkRulebook,
};

function checkRulebook(snapshot: Snapshot, call: Call, work: Work): StepAnswer | undefined {
  const answer = snapshot.step8(work.tool, call, snapshot);
  if (answer === undefined) return undefined;
  if ('question' in answer) {
    work.question = answer;
    return undefined;
  }
  // It undoes a write that this check allowed: a rule such as "refund paid orders only" must not leave it done.
  return work.undoBound ? undefined : refuse(reasonText(answer.reason), answer.detail);
}

/** The rule's own name; behind a code where it is also the code of some other answer, which a refusal must not pass for. */
function reasonText(name: string): ReasonText {
  const code = reasonCode(name);
  return RULEBOOK_STEP.reasons.includes(code) ? name : `rulebook_refused: ${name}`;
}
