import { Big } from 'big.js';

// Amounts are decimal texts and stay decimals: 0.1 + 0.2 is 0.3 here, and a limit of 0.3 is not passed by it. Whole
// numbers, which every count is, take the way of JavaScript's own integers.

/** The sum of two decimal texts, exact. Throws where one is no decimal. */
export function addDecimals(one: string, other: string): string {
  const a = smallInteger(one);
  const b = smallInteger(other);
  if (a !== undefined && b !== undefined) return String(a + b);
  return new Big(one).plus(other).toFixed();
}

export function subtractDecimals(one: string, other: string): string {
  const a = smallInteger(one);
  const b = smallInteger(other);
  if (a !== undefined && b !== undefined) return String(a - b);
  return new Big(one).minus(other).toFixed();
}

/** Whether `sum` is more than `max`. */
export function isOver(sum: string, max: string): boolean {
  const a = smallInteger(sum);
  const b = smallInteger(max);
  if (a !== undefined && b !== undefined) return a > b;
  return new Big(sum).gt(max);
}

/** A sum of millionths as a decimal text. */
export function fromMicros(micros: bigint): string {
  const whole = micros / 1_000_000n;
  if (whole * 1_000_000n === micros) return String(whole);
  return new Big(String(micros)).div(1_000_000).toFixed();
}

function smallInteger(text: string): number | undefined {
  if (text.length > 15) return undefined;
  const value = Number(text);
  return Number.isSafeInteger(value) && String(value) === text ? value : undefined;
}
