import type { JsonValue } from '../../receipts/json-value.ts';

/** Both forms that a JSON number takes here. `<` and `>` compare the two kinds exactly (ECMA-262, IsLessThan). */
export type JsonNumber = number | bigint;

/** True for a number of either kind. */
export function isNumber(value: unknown): value is JsonNumber {
  return typeof value === 'number' || typeof value === 'bigint';
}

/** True for an integer of either kind; `1.0` and `1e3` are integers, as JSON Schema has it. */
export function isInteger(value: unknown): value is JsonNumber {
  return typeof value === 'bigint' || Number.isInteger(value);
}

/**
 * Whether `value` is a multiple of `divisor`, exactly: both are taken as the decimal numbers that they are written as, so
 * that 0.3 is a multiple of 0.1. A divisor that is not above 0 divides nothing.
 */
export function isMultipleOf(value: JsonNumber, divisor: JsonNumber): boolean {
  if (divisor <= 0) return false;
  if (Number.isSafeInteger(value) && Number.isSafeInteger(divisor)) return Number(value) % Number(divisor) === 0;
  const [a, aExponent] = decimalParts(value);
  const [b, bExponent] = decimalParts(divisor);
  const shift = aExponent - bExponent;
  // A double's exponent is at most 324 either way, so the powers below stay small.
  if (shift >= 0) return (a * 10n ** BigInt(shift)) % b === 0n;
  return a % (b * 10n ** BigInt(-shift)) === 0n;
}

function decimalParts(value: JsonNumber): [bigint, number] {
  if (typeof value === 'bigint') return [value, 0];
  const [mantissa = '0', exponent = '0'] = String(value).split('e');
  const [whole = '0', fraction = ''] = mantissa.split('.');
  return [BigInt(whole + fraction), Number(exponent) - fraction.length];
}

/**
 * One text per JSON value under JSON Schema's equality: numbers by value (whichever kind they are), objects whatever
 * the order of their members. Equal texts, equal values.
 */
export function equalityKey(value: JsonValue): string {
  if (typeof value === 'number') {
    return Number.isInteger(value) && !Number.isSafeInteger(value) ? BigInt(value).toString() : String(value);
  }
  if (typeof value === 'bigint') return value.toString();
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map((item: JsonValue) => equalityKey(item)).join(',')}]`;
  const members = Object.entries(value).map(([key, member]) => `${JSON.stringify(key)}:${equalityKey(member)}`);
  return `{${members.sort().join(',')}}`;
}

/** The ranges of the integer formats, inclusive. */
export const INTEGER_RANGES: ReadonlyMap<string, readonly [bigint, bigint]> = new Map([
  ['int8', [-(2n ** 7n), 2n ** 7n - 1n]],
  ['uint8', [0n, 2n ** 8n - 1n]],
  ['int16', [-(2n ** 15n), 2n ** 15n - 1n]],
  ['uint16', [0n, 2n ** 16n - 1n]],
  ['int32', [-(2n ** 31n), 2n ** 31n - 1n]],
  ['uint32', [0n, 2n ** 32n - 1n]],
  ['int64', [-(2n ** 63n), 2n ** 63n - 1n]],
  ['uint64', [0n, 2n ** 64n - 1n]],
]);
