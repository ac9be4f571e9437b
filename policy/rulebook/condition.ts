import { Big } from 'big.js';
import { isObject, type JsonObject, type JsonValue } from '../../receipts/json-value.ts';
import type { Comparison, Literal } from './expression-tree.ts';

/**
 * A condition as the record carries it: plain JSON, three-valued (`null` is unknown). `fact` reads a fact, `argument`
 * the call's own argument by its path, `check` an argument condition that the caller evaluates.
 */
export type Condition =
  | boolean
  | null
  | { readonly fact: string }
  | { readonly argument: readonly string[] }
  | { readonly argument: readonly string[]; readonly by: Comparison; readonly to: Literal | readonly Literal[] }
  | { readonly argument: readonly string[]; readonly holds: Literal; readonly negated: boolean }
  | { readonly not: Condition }
  | { readonly and: readonly Condition[] }
  | { readonly or: readonly Condition[] }
  | { readonly check: JsonValue };

/** True, false, or undefined where nobody can know. */
export type Truth = boolean | undefined;

/** What conditions are evaluated against. */
export interface ConditionInputs {
  /** Facts by name; one that is missing is false. Undefined: every fact is unknown. */
  readonly facts: Readonly<Record<string, boolean>> | undefined;
  /** The call's arguments. */
  readonly arguments: JsonObject;
  /** Evaluates the raw condition of a rule sheet's `check` cell; left out, such a cell is unknown. */
  readonly check?: (condition: JsonValue, callArguments: JsonObject) => Truth;
}

/** Kleene's three-valued logic over facts and arguments. The depth is bounded by the parser's nesting cap. */
export function evaluateCondition(condition: Condition, inputs: ConditionInputs): Truth {
  if (condition === null) return undefined;
  if (typeof condition === 'boolean') return condition;
  if ('fact' in condition) return factHolds(condition.fact, inputs);
  if ('not' in condition) {
    const truth = evaluateCondition(condition.not, inputs);
    return truth === undefined ? undefined : !truth;
  }
  if ('and' in condition) return evaluateAll(condition.and, inputs, false);
  if ('or' in condition) return evaluateAll(condition.or, inputs, true);
  if ('check' in condition) return inputs.check?.(condition.check, inputs.arguments);
  const value = readPath(inputs.arguments, condition.argument);
  if (value === undefined) return undefined;
  if ('by' in condition) return compareValue(value, condition.by, condition.to);
  if ('holds' in condition) {
    const truth = containsValue(value, condition.holds);
    return truth === undefined ? undefined : truth !== condition.negated;
  }
  return isTruthy(value);
}

function factHolds(name: string, inputs: ConditionInputs): Truth {
  if (inputs.facts === undefined) return undefined;
  return Object.hasOwn(inputs.facts, name) && inputs.facts[name] === true;
}

/** `deciding` is the value that settles the whole: true for `or`, false for `and`. */
function evaluateAll(parts: readonly Condition[], inputs: ConditionInputs, deciding: boolean): Truth {
  let unknown = false;
  for (const part of parts) {
    const truth = evaluateCondition(part, inputs);
    if (truth === deciding) return deciding;
    if (truth === undefined) unknown = true;
  }
  return unknown ? undefined : !deciding;
}

/** The facts that a condition reads, as often as it does. */
export function factsIn(condition: Condition): readonly string[] {
  if (condition === null || typeof condition === 'boolean') return [];
  if ('fact' in condition) return [condition.fact];
  if ('not' in condition) return factsIn(condition.not);
  if ('and' in condition) return condition.and.flatMap(factsIn);
  return 'or' in condition ? condition.or.flatMap(factsIn) : [];
}

/** The value at a path of member names, or undefined; only own members count, never a prototype's. */
export function readPath(from: JsonValue, path: readonly string[]): JsonValue | undefined {
  let value: JsonValue = from;
  for (const name of path) {
    if (!isObject(value) || !Object.hasOwn(value, name)) return undefined;
    const member: JsonValue | undefined = value[name];
    if (member === undefined) return undefined;
    value = member;
  }
  return value;
}

/** True, a number other than 0, and a non-empty text, list or map hold; everything else does not. */
export function isTruthy(value: JsonValue): boolean {
  if (value === null) return false;
  if (typeof value === 'boolean') return value;
  if (typeof value === 'number' || typeof value === 'bigint') return Number(value) !== 0;
  if (typeof value === 'string') return value !== '';
  return Array.isArray(value) ? value.length > 0 : Object.keys(value).length > 0;
}

/** A number as a decimal; undefined for what is no finite number. */
function decimal(value: JsonValue): Big | undefined {
  if (typeof value === 'bigint') return new Big(value.toString());
  return typeof value === 'number' && Number.isFinite(value) ? new Big(String(value)) : undefined;
}

/** Whether a value is the literal: same kind and same value, numbers as decimals. */
function equalsLiteral(value: JsonValue, literal: Literal): boolean {
  if (literal !== null && typeof literal === 'object') {
    const number = decimal(value);
    return number?.eq(new Big(literal.number)) ?? false;
  }
  return value === literal;
}

function compareValue(value: JsonValue, by: Comparison, to: Literal | readonly Literal[]): Truth {
  if (isList(to)) {
    if (by !== 'in' && by !== 'not in') return undefined;
    return to.some((literal) => equalsLiteral(value, literal)) === (by === 'in');
  }
  if (by === '==') return equalsLiteral(value, to);
  if (by === '!=') return !equalsLiteral(value, to);
  if (by === 'in' || by === 'not in') {
    if (typeof to !== 'string' || typeof value !== 'string') return undefined;
    return to.includes(value) === (by === 'in');
  }
  // Only numbers have an order that everybody reads the same; a text's order depends on the language.
  const left = decimal(value);
  if (left === undefined || to === null || typeof to !== 'object') return undefined;
  const order = left.cmp(new Big(to.number));
  if (by === '<') return order < 0;
  if (by === '<=') return order <= 0;
  return by === '>' ? order > 0 : order >= 0;
}

function isList(to: Literal | readonly Literal[]): to is readonly Literal[] {
  return Array.isArray(to);
}

function containsValue(value: JsonValue, literal: Literal): Truth {
  if (typeof value === 'string') return typeof literal === 'string' ? value.includes(literal) : undefined;
  if (Array.isArray(value)) return value.some((item: JsonValue) => equalsLiteral(item, literal));
  return undefined;
}
