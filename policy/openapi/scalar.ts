import type { JsonValue } from '../../receipts/json-value.ts';
import type { ScalarType } from '../schema/kinds.ts';

/** JSON's own grammar (RFC 8259 section 6), and nothing that only `Number()` would take. */
const INTEGER = /^-?(?:0|[1-9]\d{0,999})$/;
const NUMBER = /^-?(?:0|[1-9]\d{0,999})(?:\.\d{1,999})?(?:[eE][+-]?\d{1,4})?$/;

/**
 * Reads a text as one of the types that a schema lets in. A text that is none of them stays a text, which the schema then
 * refuses at its place: nothing is guessed (` 5`, `0x10`, `5.`, `+5`, `yes`, `TRUE` are texts).
 */
export function readScalar(text: string, types: ReadonlySet<ScalarType>): JsonValue {
  if (types.has('integer') && INTEGER.test(text) && text !== '-0') return readInteger(text);
  if (types.has('number') && NUMBER.test(text)) {
    if (INTEGER.test(text) && text !== '-0') return readInteger(text);
    const value = Number(text);
    // Texts that are not the shortest of their value would be re-written as another text; -0 has no text of its own.
    if (Number.isFinite(value) && !Object.is(value, -0) && sameDecimal(text, value)) return value;
  }
  if (types.has('boolean') && (text === 'true' || text === 'false')) return text === 'true';
  if (types.has('null') && !types.has('string') && text === 'null') return null;
  return text;
}

function readInteger(text: string): number | bigint {
  const value = Number(text);
  return Number.isSafeInteger(value) ? value : BigInt(text);
}

/** Whether the double's shortest text is the same decimal number as `text`: no digit is lost. */
function sameDecimal(text: string, value: number): boolean {
  return decimalKey(text) === decimalKey(String(value));
}

function decimalKey(text: string): string {
  const [mantissa = '', exponent = '0'] = text.toLowerCase().split('e');
  const negative = mantissa.startsWith('-');
  const [whole = '', fraction = ''] = mantissa.replace('-', '').split('.');
  const digits = `${whole}${fraction}`.replace(/^0+/, '');
  const trimmed = digits.replace(/0+$/, '');
  const power = Number(exponent) - fraction.length + (digits.length - trimmed.length);
  return trimmed === '' ? '0' : `${negative ? '-' : ''}${trimmed}e${power}`;
}

/** Writes a scalar as the text that `readScalar` reads back; undefined for an array or object. */
export function writeScalar(value: JsonValue): string | undefined {
  if (typeof value === 'string') return value;
  if (value === null) return 'null';
  if (typeof value === 'object') return undefined;
  return String(value);
}
