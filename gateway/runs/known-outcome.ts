import type { Outcome } from '../../receipts/history.ts';
import { outcomeOf } from '../enforce/step-facts.ts';
import type { Gateway } from '../gateway.ts';
import type { StepRecord } from '../store/port.ts';

/** What is known of a step: what was seen or believed of it, else what became of its claim. `undefined`: it is on its way. */
export async function knownOutcome(gateway: Gateway, step: StepRecord): Promise<Outcome | undefined> {
  if (step.seen) return outcomeOf(step.outcome);
  const claim = await gateway.store.findClaim({ link: step.link });
  return outcomeOf(claim?.state);
}
