import type { ErrorObject } from 'ajv';
import { isArray, isObject, type JsonValue } from '../../receipts/json-value.ts';
import { PUBLIC_KEYWORDS } from './lower.ts';
import { escapeToken, type SchemaFault } from './walk.ts';

/** Keywords that fail because several alternatives did; the alternatives' own faults would only confuse. */
const COMPOSITES: ReadonlySet<string> = new Set(['anyOf', 'oneOf', 'contains']);

/** Our own keywords carry no message; ajv's are kept. */
const MESSAGES: ReadonlyMap<string, string> = new Map([
  ['additionalProperties', 'is not declared'],
  ['required', 'is required'],
  ['dependentRequired', 'is required beside another member'],
  ['multipleOf', 'must be a multiple of the declared number'],
  ['uniqueItems', 'must not hold the same item twice'],
  ['type', 'must be of the declared type'],
  ['enum', 'must be one of the declared values'],
  ['const', 'must be the declared value'],
  ['minimum', 'must not be below the minimum'],
  ['maximum', 'must not be above the maximum'],
  ['exclusiveMinimum', 'must be above the minimum'],
  ['exclusiveMaximum', 'must be below the maximum'],
  ['format', 'must be in the declared format'],
  ['anyOf', 'must match one of the alternatives'],
  ['oneOf', 'must match exactly one of the alternatives'],
  ['propertyNames', 'must have a name of the declared kind'],
  ['false', 'must not be given'],
]);

/** Turns ajv's errors into faults: one each, alternatives folded into the keyword that offered them. */
export function faultsOfErrors(errors: readonly ErrorObject[]): SchemaFault[] {
  const kept: ErrorObject[] = [];
  for (const error of errors) {
    if (COMPOSITES.has(error.keyword) && typeof error.params['passingSchemas'] !== 'object') {
      while (kept.at(-1)?.instancePath.startsWith(error.instancePath) === true) kept.pop();
    }
    kept.push(error);
  }
  const told = kept.filter((error) => error.propertyName === undefined && !isConsequence(error, kept));
  const consequences = told.filter((error) => error.keyword !== 'if');
  return (consequences.length > 0 ? consequences : told).map(faultOfError);
}

/** Where another fault stands at or below a place, members that no branch evaluated are its consequence. */
function isConsequence(error: ErrorObject, errors: readonly ErrorObject[]): boolean {
  if (error.keyword !== 'unevaluatedProperties') return false;
  return errors.some((other) => other.keyword !== error.keyword && other.instancePath.startsWith(error.instancePath));
}

function faultOfError(error: ErrorObject): SchemaFault {
  const rule = PUBLIC_KEYWORDS.get(error.keyword) ?? error.keyword;
  const { missingProperty, additionalProperty, unevaluatedProperty, propertyName } = error.params;
  const name = missingProperty ?? additionalProperty ?? unevaluatedProperty ?? propertyName;
  const pointer = typeof name === 'string' ? `${error.instancePath}/${escapeToken(name)}` : error.instancePath;
  const own = error.keyword === rule && !MEMBER_RULES.has(rule);
  const message = (own ? error.message : undefined) ?? MESSAGES.get(rule) ?? error.message ?? 'is not valid';
  return { pointer, rule, message };
}

const MEMBER_RULES: ReadonlySet<string> = new Set([
  'required',
  'additionalProperties',
  'dependentRequired',
  'propertyNames',
]);

/** Puts faults in document order, a missing member after those present, and drops repeated ones. */
export function sortFaults(faults: readonly SchemaFault[], instance: JsonValue, limit: number): SchemaFault[] {
  const positions = new Map<object, Map<string, number>>();
  const keyed = faults.map((fault) => ({ fault, key: positionOf(fault.pointer, instance, positions) }));
  keyed.sort((a, b) => comparePositions(a.key, b.key));
  const seen = new Set<string>();
  const sorted: SchemaFault[] = [];
  for (const { fault } of keyed) {
    const key = `${fault.pointer} ${fault.rule}`;
    if (seen.has(key)) continue;
    seen.add(key);
    sorted.push(fault);
    if (sorted.length >= limit) break;
  }
  return sorted;
}

function positionOf(pointer: string, instance: JsonValue, positions: Map<object, Map<string, number>>): number[] {
  const key: number[] = [];
  let value: JsonValue | undefined = instance;
  for (const raw of pointer.split('/').slice(1)) {
    const token = raw.replaceAll('~1', '/').replaceAll('~0', '~');
    if (isArray(value)) {
      key.push(Number(token));
      value = value[Number(token)];
    } else if (isObject(value)) {
      let order = positions.get(value);
      if (order === undefined) {
        order = new Map(Object.keys(value).map((name, i) => [name, i]));
        positions.set(value, order);
      }
      key.push(order.get(token) ?? order.size);
      value = order.has(token) ? value[token] : undefined;
    }
  }
  return key;
}

function comparePositions(a: readonly number[], b: readonly number[]): number {
  for (let i = 0; i < Math.min(a.length, b.length); i++) {
    const difference = (a[i] ?? 0) - (b[i] ?? 0);
    if (difference !== 0) return difference;
  }
  return a.length - b.length;
}
