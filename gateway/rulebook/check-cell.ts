import { compileConditions } from '../../policy/conditions/compile.ts';
import type { CompiledConditions, ConditionSource } from '../../policy/conditions/condition.ts';
import { readForm } from '../../policy/conditions/form.ts';
import { canonicalize } from '../../receipts/canonical.ts';
import type { JsonObject, JsonValue } from '../../receipts/json-value.ts';
import { validatorOf, withPlainNumbers } from '../config/schema.ts';

/**
 * What is wrong with the conditions of a rule sheet's `check` cell, in words; `undefined` where nothing is. They are
 * conditions on the call's own arguments (docs/conditions.md), with values of their own: what tools returned comes in
 * as facts, by the `when` cell.
 */
export function checkCellFault(value: JsonValue): string | undefined {
  const conditions = conditionsOf(value);
  const isCondition = validatorOf('#/$defs/conditions');
  if (!isCondition(withPlainNumbers(conditions))) {
    const [error] = isCondition.errors ?? [];
    const word: unknown = error?.params['additionalProperty'];
    const what = typeof word === 'string' ? `\`${word}\` is no word of it` : (error?.message ?? 'its form is wrong');
    return `this is no condition: ${what}; write it as \`field: amount, at_most: 100\``;
  }
  return formFault(conditions as readonly ConditionSource[]);
}

/** Judges `check` cells whose form was checked: true, false, or undefined where an argument could not be read. */
export function makeCheckCells(): (value: JsonValue, callArguments: JsonObject) => boolean | undefined {
  const compiled = new Map<string, CompiledConditions>();
  return (value, callArguments) => {
    const text = canonicalize(value);
    const conditions =
      compiled.get(text) ?? compileConditions(conditionsOf(value) as readonly ConditionSource[], () => undefined);
    // As many as the rulebook has cells, which its files bound.
    compiled.set(text, conditions);
    const { verdict } = conditions.judge(callArguments, { arguments: callArguments, answers: [] });
    return verdict === 'unknown' ? undefined : verdict === 'holds';
  };
}

function conditionsOf(value: JsonValue): readonly JsonValue[] {
  return Array.isArray(value) ? (value as readonly JsonValue[]) : [value];
}

/** The first fault of the conditions, those of `any` included. */
function formFault(conditions: readonly ConditionSource[]): string | undefined {
  for (const condition of conditions) {
    const { faults, any } = readForm(condition, 'cell');
    const fault = faults[0]?.message ?? (any === undefined ? undefined : formFault(any));
    if (fault !== undefined) return fault;
  }
  return undefined;
}
