/**
 * The longest integer that is read, in digits. Turning digits into a `bigint` takes more than linear time, so without
 * an end a body of one long number would be a way to hold the gateway up. 64-bit ids have 20 digits, a 4096-bit modulus 1,234.
 */
const MAX_INTEGER_DIGITS = 1_300;

/** A JSON number's text (its grammar already checked) in, its value out, or the fault that the strict profile finds. */
export function readNumber(text: string): number | bigint | 'negative_zero' | 'number' {
  const negative = text.charCodeAt(0) === 0x2d;
  if (isInteger(text)) {
    if (text === '-0') return 'negative_zero';
    if (text.length <= 15) return Number(text);
    if (text.length > MAX_INTEGER_DIGITS + (negative ? 1 : 0)) return 'number';
    const value = Number(text);
    return Number.isSafeInteger(value) ? value : BigInt(text);
  }
  const value = Number(text);
  const written = decimal(text);
  if (written.digits === '') return negative ? 'negative_zero' : 0;
  // Over- and underflow, and digits that a double does not hold: the reader at the other end would see another number.
  if (!Number.isFinite(value) || value === 0) return 'number';
  const shortest = String(value);
  const held = decimal(shortest);
  if (held.digits !== written.digits || held.exponent !== written.exponent) return 'number';
  // `9007199254740994.0` is canonically written without its point and read again as an integer: so it is one at once.
  return Number.isInteger(value) && !Number.isSafeInteger(value) && isInteger(shortest) ? BigInt(shortest) : value;
}

function isInteger(text: string): boolean {
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    if (unit === 0x2e || unit === 0x65 || unit === 0x45) return false;
  }
  return true;
}

/**
 * A number's text as digits without leading or trailing zeros, and the power of ten of the last digit: two texts of the
 * same decimal value give the same pair. Zero has no digits. Loops rather than patterns: a pattern that strips trailing
 * zeros is quadratic on a run of zeros inside.
 */
function decimal(text: string): { readonly digits: string; readonly exponent: number } {
  let end = text.length;
  let exponent = 0;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    if (unit !== 0x65 && unit !== 0x45) continue;
    end = i;
    exponent = Number(text.slice(i + 1));
    break;
  }
  const start = text.charCodeAt(0) === 0x2d ? 1 : 0;
  const point = text.indexOf('.');
  const hasPoint = point !== -1 && point < end;
  const all = hasPoint ? text.slice(start, point) + text.slice(point + 1, end) : text.slice(start, end);
  if (hasPoint) exponent -= end - point - 1;
  let from = 0;
  let to = all.length;
  while (from < to && all.charCodeAt(from) === 0x30) from++;
  while (to > from && all.charCodeAt(to - 1) === 0x30) to--;
  return { digits: all.slice(from, to), exponent: exponent + (all.length - to) };
}
