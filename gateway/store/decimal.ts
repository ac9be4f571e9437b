import { Big } from 'big.js';

// Amounts are decimal texts and stay decimals: 0.1 + 0.2 is 0.3 here, and a limit of 0.3 is not passed by it. What a
// whole number of millionths can say, which is nearly every amount, is added as such.

const MICROS = 1_000_000;
const PLAIN_DECIMAL = /^-?\d{1,9}(?:\.\d{1,6})?$/;

/**
 * The amount in millionths where that is a whole number small enough to be added up a few thousand times; undefined for
 * any other text.
 */
export function microsOf(text: string): number | undefined {
  if (text.length > 17 || !PLAIN_DECIMAL.test(text)) return undefined;
  const dot = text.indexOf('.');
  if (dot === -1) return Number(text) * MICROS;
  return Number(text.slice(0, dot) + text.slice(dot + 1).padEnd(6, '0'));
}

/** A sum of millionths as a decimal text. */
export function fromMicros(micros: number | bigint): string {
  const whole = Number(micros) / MICROS;
  if (Number.isSafeInteger(whole)) return String(whole);
  return new Big(String(micros)).div(MICROS).toFixed();
}

/** The sum of two decimal texts, exact. Throws where one is no decimal. */
export function addDecimals(one: string, other: string): string {
  const a = microsOf(one);
  const b = microsOf(other);
  if (a !== undefined && b !== undefined) return textOf(a + b);
  return new Big(one).plus(other).toFixed();
}

export function subtractDecimals(one: string, other: string): string {
  const a = microsOf(one);
  const b = microsOf(other);
  if (a !== undefined && b !== undefined) return textOf(a - b);
  return new Big(one).minus(other).toFixed();
}

/** Whether `sum` is more than `max`. */
export function isOver(sum: string, max: string): boolean {
  const a = microsOf(sum);
  const b = microsOf(max);
  if (a !== undefined && b !== undefined) return a > b;
  return new Big(sum).gt(max);
}

/** Two amounts of at most 10^15 millionths add up to a safe integer. */
function textOf(micros: number): string {
  const sign = micros < 0 ? '-' : '';
  const size = Math.abs(micros);
  const rest = size % MICROS;
  const whole = (size - rest) / MICROS;
  if (rest === 0) return `${sign}${whole}`;
  return `${sign}${whole}.${String(rest).padStart(6, '0').replace(/0+$/, '')}`;
}
