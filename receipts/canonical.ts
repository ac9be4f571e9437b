import { isArray, type JsonValue } from './json-value.ts';

declare const canonical: unique symbol;

/** Text in RFC 8785 canonical form (JCS). Only {@link canonicalize} makes it, so that a digest is never taken of anything else. */
export type CanonicalJson = string & { readonly [canonical]: true };

/** What {@link canonicalize} throws for a value that has no canonical form: a bug of the caller, never a client's doing. */
export class CanonicalFault extends Error {
  readonly code = 'not_canonical';
}

/**
 * A JSON value in, its RFC 8785 canonical text out: no white space, members sorted by the UTF-16 code units of their
 * names (section 3.2.3), strings and numbers as ECMAScript writes them (sections 3.2.2.2 and 3.2.2.3). A `bigint` is
 * written digit for digit. Throws {@link CanonicalFault} for a number that is not finite, a lone surrogate
 * (section 3.2.2.2 wants an error), and anything that is not JSON.
 */
export function canonicalize(value: JsonValue): CanonicalJson {
  return write(value) as CanonicalJson;
}

/** A string in, its canonical JSON text out, quotes included. Throws {@link CanonicalFault} for a lone surrogate. */
export function quoteJson(text: string): string {
  // Most strings are short plain ASCII, where calling into JSON.stringify costs more than looking at each unit.
  if (text.length <= 64) {
    let i = 0;
    for (; i < text.length; i++) {
      const unit = text.charCodeAt(i);
      if (unit < 0x20 || unit > 0x7e || unit === 0x22 || unit === 0x5c) break;
    }
    if (i === text.length) return `"${text}"`;
  }
  if (!text.isWellFormed())
    throw new CanonicalFault('a string holds half of a surrogate pair, which has no UTF-8 form');
  return JSON.stringify(text);
}

function write(value: JsonValue): string {
  switch (typeof value) {
    case 'string':
      return quoteJson(value);
    case 'number':
      if (!Number.isFinite(value)) throw new CanonicalFault(`the number ${value} has no JSON form`);
      return String(value);
    case 'boolean':
      return value ? 'true' : 'false';
    case 'bigint':
      return value.toString();
    case 'object':
      if (value === null) return 'null';
      return isArray(value) ? writeArray(value) : writeObject(value);
    default:
      throw new CanonicalFault(`a value of type \`${typeof value}\` has no JSON form`);
  }
}

function writeArray(items: readonly JsonValue[]): string {
  let text = '[';
  for (let i = 0; i < items.length; i++) {
    if (i > 0) text += ',';
    text += write(items[i] as JsonValue);
  }
  return `${text}]`;
}

function writeObject(object: { readonly [key: string]: JsonValue }): string {
  const keys = sortedKeys(object);
  let text = '{';
  for (let i = 0; i < keys.length; i++) {
    const key = keys[i] as string;
    if (i > 0) text += ',';
    text += `${quoteJson(key)}:${write(object[key] as JsonValue)}`;
  }
  return `${text}}`;
}

/** The object's own keys by UTF-16 code units, which is how `<` and a bare `sort()` compare strings. */
function sortedKeys(object: object): string[] {
  const keys = Object.keys(object);
  for (let i = 1; i < keys.length; i++) {
    if ((keys[i - 1] as string) > (keys[i] as string)) return keys.sort();
  }
  return keys;
}
