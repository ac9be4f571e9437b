import type { Call, Confirmation, Snapshot } from '../call.ts';
import type { Step, StepAnswer, Work } from '../verdict.ts';
import { personReasons } from './person.ts';

/** Row 10. A confirmation that does not cover the call is simply none: row 11 asks again and says why. */
export const CONFIRMATION_STEP: Step = {
  name: 'confirmation',
  checks: 'a confirmation that covers exactly this call, with these arguments, at this point of the history',
  answers: 'allow',
  reasons: ['confirmed'],
  run: checkConfirmation,
};

function checkConfirmation(snapshot: Snapshot, call: Call, work: Work): StepAnswer | undefined {
  const { confirmation } = snapshot;
  if (confirmation === undefined) return undefined;
  const flaw = confirmation === 'invalid' ? 'invalid' : flawOf(confirmation, snapshot, call, work);
  if (flaw !== undefined) {
    work.confirmation = flaw;
    return undefined;
  }
  return { decision: 'allow', reasons: ['confirmed'] };
}

function flawOf(confirmation: Confirmation, snapshot: Snapshot, call: Call, work: Work): string | undefined {
  if (confirmation.expires <= snapshot.nowMs) return 'expired';
  if (!isSameCall(confirmation, snapshot, call, work)) return 'other_call';
  if (confirmation.spent) return 'spent';
  return coversPoint(confirmation, snapshot) ? undefined : 'other_point';
}

function isSameCall(confirmation: Confirmation, snapshot: Snapshot, call: Call, work: Work): boolean {
  const { asked } = confirmation;
  return (
    confirmation.session === snapshot.session.id &&
    confirmation.tool === work.tool.id &&
    confirmation.agent === work.agent &&
    confirmation.arguments === snapshot.digests.arguments &&
    asked.origins === snapshot.digests.origins &&
    asked.run === call.run &&
    asked.undoes === call.undoes &&
    asked.caller === call.caller.name &&
    asked.policy === snapshot.policy &&
    (work.question === undefined || work.question.question === asked.question) &&
    sameList(asked.labels, work.labels) &&
    personReasons(snapshot, call, work).reasons.every((reason) => asked.reasons.includes(reason))
  );
}

function coversPoint(confirmation: Confirmation, snapshot: Snapshot): boolean {
  const { head, view } = snapshot.session;
  if (head === undefined || head.step < confirmation.step) return false;
  return confirmation.point === 'exact' ? head.link === confirmation.link : view.barrier <= confirmation.step;
}

function sameList(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && one.every((item, index) => item === other[index]);
}
