import { Big } from 'big.js';

/**
 * A number as it is compared: a JSON number of either kind, or a sum. Numbers stand for the decimals that they are
 * written as, so that 0.1 and 0.2 are 0.3 together.
 */
export type Decimal = number | bigint | Big;

/** Below 0, 0, or above 0, as `a` is less than, equal to, or greater than `b`; exact. */
export function compareDecimals(a: Decimal, b: Decimal): number {
  // Two doubles stand in the same order as their shortest decimal texts, and so do two integers.
  if (typeof a === 'number' && typeof b === 'number') return a < b ? -1 : a > b ? 1 : 0;
  if (typeof a === 'bigint' && typeof b === 'bigint') return a < b ? -1 : a > b ? 1 : 0;
  return toBig(a).cmp(toBig(b));
}

/**
 * The most digits before and behind the point that a sum takes. Adding 1e308 to 5e-324 needs 632 digits; a list of such
 * pairs would hold the gateway up, and no amount is of that kind.
 */
const MAX_DIGITS = 40;
const LARGEST = 10n ** BigInt(MAX_DIGITS);

/** The exact sum of numbers; `undefined` where one is too large or too small to be an amount. */
export function sumDecimals(numbers: readonly (number | bigint)[]): Decimal | undefined {
  let whole = 0;
  let rest: Big | undefined;
  for (const number of numbers) {
    if (typeof number === 'number' && Number.isSafeInteger(number) && Number.isSafeInteger(whole + number)) {
      whole += number;
      continue;
    }
    if (!isAmount(number)) return undefined;
    rest = (rest ?? new Big(0)).plus(toBig(number));
  }
  return rest === undefined ? whole : rest.plus(whole);
}

/** The decimal text of a number that can be an amount, without an exponent; `undefined` for any other. */
export function decimalText(number: number | bigint): string | undefined {
  if (typeof number === 'bigint') return isAmount(number) ? number.toString() : undefined;
  if (Number.isSafeInteger(number)) return String(number);
  return isAmount(number) ? new Big(number).toFixed() : undefined;
}

/** The exact sum of decimal texts. */
export function addTexts(one: string, other: string): string {
  return new Big(one).plus(other).toFixed();
}

/** Whether a decimal text is more than another. */
export function isMore(one: string, other: string): boolean {
  return new Big(one).gt(other);
}

function isAmount(number: number | bigint): boolean {
  if (typeof number === 'bigint') return number < LARGEST && number > -LARGEST;
  const size = Math.abs(number);
  return size === 0 || (size < 1e40 && size > 1e-40);
}

function toBig(number: Decimal): Big {
  return number instanceof Big ? number : new Big(String(number));
}
