import type { Call, Snapshot } from '../call.ts';
import { type DestinationOptions, findDestinations } from '../destinations/find-destinations.ts';
import type { Tool } from '../tool.ts';
import { refuse, type Step, type StepAnswer, type Work } from '../verdict.ts';

/** Row 4. */
export const DESTINATION_STEP: Step = {
  name: 'destination',
  checks: 'an address, URL, host or path in an argument of a tool that is not declared `sends_out`',
  answers: 'refuse',
  reasons: ['undeclared_destination'],
  run: checkDestination,
};

function checkDestination(_snapshot: Snapshot, call: Call, work: Work): StepAnswer | undefined {
  const { tool } = work;
  if (tool.sendsOut) return undefined;
  const { destinations, undecided } = findDestinations(call.arguments, optionsOf(tool));
  if (destinations.length === 0 && undecided === null) return undefined;
  return refuse('undeclared_destination', { destinations, ...(undecided === null ? {} : { undecided }) });
}

const OPTIONS = new WeakMap<Tool, DestinationOptions>();

/** What the tool's words settle, put together once for each tool. */
function optionsOf(tool: Tool): DestinationOptions {
  const known = OPTIONS.get(tool);
  if (known !== undefined) return known;
  const { subjectArguments, argumentKinds: kinds, input } = tool;
  const options = { subjectArguments, kinds, declaredKeys: new Set(input.topLevel) };
  OPTIONS.set(tool, options);
  return options;
}
