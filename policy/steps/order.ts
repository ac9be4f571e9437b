import type { JsonObject } from '../../receipts/json-value.ts';
import type { Call, Snapshot } from '../call.ts';
import type { Catalogue } from '../catalogue.ts';
import { parseOrigin } from '../origins/parse-origin.ts';
import { countOf, everAllowed, marksOf, runOf, sessionLabels } from '../session.ts';
import type { AfterRule } from '../tool.ts';
import { refuse, type Step, type StepAnswer, type Work } from '../verdict.ts';

/** Row 5. */
export const ORDER_STEP: Step = {
  name: 'order',
  checks:
    "the tool's order rules over the verified history: `after` (and an argument bound to that call's result), `not_after`, `at_most`; the run still takes calls",
  answers: 'refuse',
  reasons: ['order_rule', 'run_ended'],
  run: checkOrder,
};

function checkOrder(snapshot: Snapshot, call: Call, work: Work): StepAnswer | undefined {
  const { tool } = work;
  const { view } = snapshot.session;
  for (const rule of tool.after) {
    const broken = brokenAfter(snapshot, call, rule);
    if (broken !== undefined) return refuse('order_rule', broken);
  }
  for (const other of tool.notAfter) {
    const met = other === 'untrusted' ? sessionLabels(view).length > 0 : everAllowed(view, other);
    if (met) return refuse('order_rule', { rule: `not_after ${shortName(snapshot.catalogue, other)}` });
  }
  if (tool.atMost !== undefined && countOf(view, tool.id) >= tool.atMost) {
    return refuse('order_rule', { rule: `at_most ${tool.atMost}` });
  }
  // An undo is what an ended run is still for.
  if (call.run !== undefined && call.undoes === undefined && runOf(view, call.run)?.ended) {
    return refuse('run_ended', { run: call.run });
  }
  return undefined;
}

function brokenAfter(snapshot: Snapshot, call: Call, rule: AfterRule): JsonObject | undefined {
  const text = `after ${shortName(snapshot.catalogue, rule.tool)}`;
  if (marksOf(snapshot.session.view, rule.tool).ran === 0) return { rule: text };
  for (const [argument, field] of Object.entries(rule.bind ?? {})) {
    if (isBound(snapshot, call, rule, argument, field) || isBoundByUndo(snapshot, call, rule, argument, field))
      continue;
    return { rule: text, bind: argument };
  }
  return undefined;
}

function isBound(snapshot: Snapshot, call: Call, rule: AfterRule, argument: string, field: string): boolean {
  const claimed = Object.hasOwn(call.origins, argument) ? call.origins[argument] : undefined;
  const value = Object.hasOwn(call.arguments, argument) ? call.arguments[argument] : undefined;
  if (claimed === undefined || value === undefined) return false;
  const origin = parseOrigin(claimed);
  if (origin.kind !== 'result' || origin.field !== field) return false;
  const step = snapshot.steps.get(origin.step);
  if (step === undefined || step.toolId !== rule.tool || step.outcome !== 'ran') return false;
  const seen = step.compareField(field, value);
  // A host may have run the call and reported no values; what nobody saw cannot loosen anything for an agent.
  return seen === 'equal' || (seen === 'unseen' && call.caller.host);
}

/**
 * An undo whose declared binding takes the argument from that very field of the step that it undoes: row 6 holds the call
 * to the value, so that no origin need be given.
 */
function isBoundByUndo(snapshot: Snapshot, call: Call, rule: AfterRule, argument: string, field: string): boolean {
  const step = call.undoes === undefined ? undefined : snapshot.steps.get(call.undoes);
  if (step === undefined || step.toolId !== rule.tool || step.outcome !== 'ran') return false;
  const undo = snapshot.catalogue.tools.get(step.toolId)?.undo;
  if (undo === undefined || undo === 'none' || !Object.hasOwn(undo.with, argument)) return false;
  const source = undo.with[argument];
  return source?.from === 'result' && source.path === field;
}

/** The bare name where it names one tool alone, else the pair. */
function shortName(catalogue: Catalogue, id: string): string {
  const tool = catalogue.tools.get(id);
  if (tool === undefined) return id;
  return catalogue.byName.get(tool.name)?.length === 1 ? tool.name : id;
}
