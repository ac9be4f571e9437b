import type { Call, Snapshot } from '../call.ts';
import { refuse, type Step, type StepAnswer, type Work } from '../verdict.ts';

/** Row 3. An argument that nobody declared is one that nobody wrote a rule for. */
export const SCHEMA_STEP: Step = {
  name: 'schema',
  checks: "the arguments against the tool's schema; an argument that it does not declare is refused",
  answers: 'refuse',
  reasons: ['argument_schema'],
  run: checkSchema,
};

function checkSchema(_snapshot: Snapshot, call: Call, work: Work): StepAnswer | undefined {
  const faults = call.faults.length > 0 ? call.faults : work.tool.input.validate(call.arguments);
  const [first] = faults;
  if (first === undefined) return undefined;
  const errors = faults.map(({ pointer, rule, message }) => ({ pointer, rule, message }));
  return refuse('argument_schema', { rule: first.rule, errors }, first.pointer);
}
