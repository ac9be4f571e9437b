import type { JsonValue } from '../../receipts/json-value.ts';
import { ConditionFault, type Operator } from './condition.ts';
import { parsePath } from './path.ts';
import { dateOrderOf, orderOf } from './values.ts';

/** What stands before an operator: a value, a sum, or a number of items. */
export type SubjectWord = 'field' | 'total' | 'count';

const ORDERING: ReadonlySet<Operator> = new Set(['at_least', 'at_most', 'under', 'over']);

/**
 * What is wrong with a value of the configuration that no call could ever be compared with, in words; `undefined` where
 * nothing is. Such a condition would refuse every call.
 */
export function literalFault(subject: SubjectWord, operator: Operator, literal: JsonValue): string | undefined {
  if (subject !== 'field' && operator === 'contains') return `a \`${subject}\` contains nothing; it is a number`;
  const values = Array.isArray(literal) ? (literal as readonly JsonValue[]) : [literal];
  if (subject !== 'field' && !values.every(isNumber)) {
    return `a \`${subject}\` is compared with numbers${values.some(isDigits) ? '; write them without quotes' : ''}`;
  }
  if (operator === 'before' || operator === 'after') {
    return dateOrderOf(literal, literal) === undefined ? `\`${operator}\` ${DATES}` : undefined;
  }
  if (ORDERING.has(operator)) return orderOf(literal, literal) === undefined ? orderFault(operator, values) : undefined;
  if (operator !== 'between') return undefined;
  const [low = null, high = null] = values;
  const order = orderOf(low, high);
  if (order === undefined) return orderFault(operator, values);
  return order > 0 ? 'nothing lies `between` a value and a lesser one; write the lesser one first' : undefined;
}

/** What is wrong with a path, in words; `undefined` where nothing is. */
export function pathFault(text: string): string | undefined {
  try {
    parsePath(text);
    return undefined;
  } catch (error) {
    if (error instanceof ConditionFault) return error.message;
    throw error;
  }
}

const DATES =
  'compares days (`2026-11-29`) and instants with their offset (`2026-11-29T12:00:00Z`), each with its like';

function orderFault(operator: Operator, values: readonly JsonValue[]): string {
  const hint = values.some(isDigits) ? '; write a number without quotes' : '';
  return `\`${operator}\` compares numbers, days (\`2026-11-29\`) or instants with their offset (\`2026-11-29T12:00:00Z\`), each with its like${hint}`;
}

function isNumber(value: JsonValue): boolean {
  return typeof value === 'number' || typeof value === 'bigint';
}

function isDigits(value: JsonValue): boolean {
  return typeof value === 'string' && value !== '' && Number.isFinite(Number(value));
}
