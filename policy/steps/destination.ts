import type { Call, Snapshot } from '../call.ts';
import { findDestinations } from '../destinations/find-destinations.ts';
import { refuse, type Step, type StepAnswer, type Work } from '../verdict.ts';

/** Row 4. */
export const DESTINATION_STEP: Step = {
  name: 'destination',
  checks: 'an address, URL, host or path in an argument of a tool that is not declared `sends_out`',
  reasons: ['undeclared_destination'],
  run: checkDestination,
};

function checkDestination(_snapshot: Snapshot, call: Call, work: Work): StepAnswer | undefined {
  const { tool } = work;
  if (tool.sendsOut) return undefined;
  const options = { subjectArguments: tool.subjectArguments, kinds: tool.argumentKinds };
  const { destinations, undecided } = findDestinations(call.arguments, options);
  if (destinations.length === 0 && undecided === null) return undefined;
  return refuse('undeclared_destination', { destinations, ...(undecided === null ? {} : { undecided }) });
}
