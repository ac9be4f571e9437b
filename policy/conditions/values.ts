import { Big } from 'big.js';
import type { JsonArray, JsonValue } from '../../receipts/json-value.ts';
import { compareDates, type DateValue, parseDate } from './dates.ts';
import { compareDecimals, type Decimal } from './decimals.ts';

/** A value of one side of a condition. `missing`: nobody could read it. */
export type Side = JsonValue | Big | undefined;

/** The name of a value's type, as `detail.types` tells it. */
export function typeName(value: Side): string {
  if (value === undefined) return 'missing';
  if (value === null) return 'null';
  if (isDecimal(value)) return 'number';
  if (typeof value === 'boolean') return 'boolean';
  if (typeof value === 'string') return parseDate(value)?.kind ?? 'text';
  return Array.isArray(value) ? 'list' : 'object';
}

/**
 * Whether `a` is the same as `b`; `undefined` where they are of different types, or of types that nothing compares. Texts
 * are compared in Unicode's form NFC, since two ways to write an accent are one letter to whoever reads them; upper and
 * lower case differ. Two instants are the same where they are the same point in time. Where `b` is null the question is
 * whether `a` is; a null `a` is else a value that is not there.
 */
export function isSame(a: Side, b: Side): boolean | undefined {
  if (a === undefined || b === undefined) return undefined;
  if (b === null) return a === null;
  if (isDecimal(a) && isDecimal(b)) return compareDecimals(a, b) === 0;
  if (typeof a === 'boolean' && typeof b === 'boolean') return a === b;
  if (typeof a !== 'string' || typeof b !== 'string') return undefined;
  if (a === b || a.normalize('NFC') === b.normalize('NFC')) return true;
  const [one, other] = [parseInstant(a), parseInstant(b)];
  return one !== undefined && other !== undefined && compareDates(one, other) === 0;
}

/** The order of two numbers, two days or two instants, as `compareDecimals` gives it; `undefined` for anything else. */
export function orderOf(a: Side, b: Side): number | undefined {
  if (isDecimal(a) && isDecimal(b)) return compareDecimals(a, b);
  return dateOrderOf(a, b);
}

/** The order of two days or two instants; `undefined` for anything else. */
export function dateOrderOf(a: Side, b: Side): number | undefined {
  if (typeof a !== 'string' || typeof b !== 'string') return undefined;
  const [one, other] = [parseDate(a), parseDate(b)];
  return one === undefined || other === undefined ? undefined : compareDates(one, other);
}

/** Whether a list, or a text, contains a value; `undefined` where that cannot be said. */
export function isIn(value: Side, whole: Side): boolean | undefined {
  if (typeof whole === 'string') {
    return typeof value === 'string' ? whole.normalize('NFC').includes(value.normalize('NFC')) : undefined;
  }
  return Array.isArray(whole) ? isAmong(value, whole as JsonArray) : undefined;
}

/** Whether a value is one of a list: one that is the same settles it, else one of another type leaves it open. */
export function isAmong(value: Side, list: readonly JsonValue[]): boolean | undefined {
  let open = false;
  for (const item of list) {
    const same = isSame(value, item);
    if (same === true) return true;
    if (same === undefined) open = true;
  }
  return open ? undefined : false;
}

function isDecimal(value: Side): value is Decimal {
  return typeof value === 'number' || typeof value === 'bigint' || value instanceof Big;
}

function parseInstant(text: string): DateValue | undefined {
  const date = parseDate(text);
  return date?.kind === 'instant' ? date : undefined;
}
