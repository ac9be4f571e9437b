import { compileConditions } from '../../policy/conditions/compile.ts';
import {
  type CompiledConditions,
  ConditionFault,
  type ConditionSource,
  OPERATORS,
} from '../../policy/conditions/condition.ts';
import { literalFault } from '../../policy/conditions/literals.ts';
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
  for (const condition of conditions as readonly ConditionSource[]) {
    const fault = conditionFault(condition);
    if (fault !== undefined) return fault;
  }
  try {
    compileConditions(conditions as readonly ConditionSource[], () => undefined);
    return undefined;
  } catch (error) {
    if (error instanceof ConditionFault) return error.message;
    throw error;
  }
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

function conditionFault(condition: ConditionSource): string | undefined {
  if (condition.unknown !== undefined) return '`unknown` stands in the `keep` of a filter alone';
  const subjects = (['field', 'total', 'count', 'any'] as const).filter((word) => condition[word] !== undefined);
  const [subject] = subjects;
  if (subject === undefined || subjects.length > 1) return 'a condition has one of `field`, `total`, `count`, `any`';
  const operators = OPERATORS.filter((word) => condition[word] !== undefined);
  if (subject === 'any') {
    if (operators.length > 0) return '`any` holds conditions and has no operator of its own';
    return condition.any?.map(conditionFault).find((fault) => fault !== undefined);
  }
  const [operator] = operators;
  if (operator === undefined || operators.length > 1) {
    return `a condition has one operator (${OPERATORS.map((word) => `\`${word}\``).join(', ')})`;
  }
  const literal = condition[operator] as JsonValue;
  if (typeof literal === 'object' && literal !== null && !Array.isArray(literal)) {
    return 'a `check` cell compares with a value of its own; what a tool returned is a fact, in the `when` cell';
  }
  return literalFault(subject, operator, literal);
}
