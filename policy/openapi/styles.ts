import { isArray, isObject, type JsonObject, type JsonValue } from '../../receipts/json-value.ts';
import type { ValueKind } from '../schema/kinds.ts';
import { decodePercent, encodePercent } from '../target.ts';
import type { ParameterStyle } from './operation.ts';
import { readScalar, writeScalar } from './scalar.ts';

/** Thrown inside the codec where a value cannot be carried or a text cannot be read; becomes a fault of its argument. */
export class StyleError extends Error {
  readonly code = 'argument_style';
}

/** How one value is written: the style of its parameter or field. */
export interface Styled {
  readonly name: string;
  readonly style: ParameterStyle;
  readonly explode: boolean;
  readonly kind: ValueKind;
}

/** A name and a value, decoded. */
export type Pair = readonly [name: string, value: string];

/** Codecs of texts: percent-encoded in paths, queries and cookies; as they are in headers. */
export interface TextCodec {
  readonly encode: (text: string) => string;
  readonly decode: (raw: string) => string;
}

/** Percent-encoding of all but unreserved characters. */
export const PERCENT: TextCodec = {
  encode: (text) => {
    const encoded = encodePercent(text);
    if (encoded === undefined) throw new StyleError('must be well-formed Unicode');
    return encoded;
  },
  decode: (raw) => {
    const decoded = decodePercent(raw);
    if (decoded === undefined) throw new StyleError('must be percent-encoded UTF-8');
    return decoded;
  },
};

/** Texts as they are. */
export const PLAIN: TextCodec = { encode: (text) => text, decode: (raw) => raw };

/** A scalar's text, or a StyleError. */
function scalarText(value: JsonValue | undefined): string {
  const text = value === undefined ? undefined : writeScalar(value);
  if (text === undefined) throw new StyleError('must be a single value here');
  return text;
}

/**
 * Writes a value with its parts joined by a delimiter: `a,b` for a list; for an object `k,v,k,v`, or `k=v,k=v` where
 * exploded.
 */
export function joinValue(value: JsonValue, delimiter: string, explode: boolean, codec: TextCodec): string {
  const write = (part: JsonValue | undefined): string => codec.encode(scalarText(part));
  if (isArray(value)) {
    if (value.length === 0) throw new StyleError('must not be empty: an empty list cannot be written here');
    return value.map(write).join(delimiter);
  }
  if (!isObject(value)) return write(value);
  const members = Object.entries(value);
  if (members.length === 0) throw new StyleError('must not be empty: an empty object cannot be written here');
  if (explode) return members.map(([key, part]) => `${codec.encode(key)}=${write(part)}`).join(delimiter);
  return members.flatMap(([key, part]) => [codec.encode(key), write(part)]).join(delimiter);
}

/** Reads what `joinValue` wrote, by the kind of value that is wanted. Parts are cut before they are decoded. */
export function splitValue(
  raw: string,
  delimiter: string | RegExp,
  explode: boolean,
  kind: ValueKind,
  codec: TextCodec,
): JsonValue {
  if (kind.isObject) {
    const parts = raw.split(delimiter);
    const pairs: (readonly [string, string])[] = [];
    if (explode) {
      for (const part of parts) {
        const at = part.indexOf('=');
        if (at < 0) throw new StyleError('must be written as `name=value` pairs');
        pairs.push([part.slice(0, at), part.slice(at + 1)]);
      }
    } else {
      if (parts.length % 2 !== 0) throw new StyleError('must be written as names and values in turn');
      for (let i = 0; i < parts.length; i += 2) pairs.push([parts[i] ?? '', parts[i + 1] ?? '']);
    }
    return readMembers(
      pairs.map(([key, text]) => [codec.decode(key), codec.decode(text)]),
      kind,
    );
  }
  const isList = kind.isArray && (kind.scalars.size === 0 || raw.split(delimiter).length > 1);
  if (isList) {
    const { scalars } = kind.item();
    return raw.split(delimiter).map((part) => readScalar(codec.decode(part), scalars));
  }
  return readScalar(codec.decode(raw), kind.scalars);
}

/** An object of scalars from decoded pairs. A name given twice is refused. */
export function readMembers(pairs: readonly Pair[], kind: ValueKind): JsonObject {
  const members = new Map<string, JsonValue>();
  for (const [key, text] of pairs) {
    if (members.has(key)) throw new StyleError('must not name a member twice');
    members.set(key, readScalar(text, kind.member(key)?.scalars ?? NO_TYPES));
  }
  return Object.fromEntries(members);
}

const NO_TYPES: ReadonlySet<never> = new Set();

/** Writes a value as the name-value pairs of a query or form, undecoded delimiters aside. */
export function writePairs(value: JsonValue, { name, style, explode }: Styled): Pair[] {
  if (style === 'json') return [[name, jsonText(value)]];
  if (style === 'deepObject') return [...deepPairs(name, value)];
  if (explode && isArray(value)) {
    if (value.length === 0) throw new StyleError('must not be empty: an empty list cannot be written here');
    return value.map((item) => [name, scalarText(item)]);
  }
  if (explode && isObject(value)) {
    const members = Object.entries(value);
    if (members.length === 0) throw new StyleError('must not be empty: an empty object cannot be written here');
    return members.map(([key, part]) => [key, scalarText(part)]);
  }
  return [[name, scalarText(value)]];
}

/** JSON text of a value, with big integers as numbers. */
export function jsonText(value: JsonValue): string {
  if (typeof value === 'bigint') return value.toString();
  if (isArray(value)) return `[${value.map(jsonText).join(',')}]`;
  if (isObject(value)) {
    return `{${Object.entries(value)
      .map(([key, part]) => `${JSON.stringify(key)}:${jsonText(part)}`)
      .join(',')}}`;
  }
  return JSON.stringify(value);
}

function* deepPairs(name: string, value: JsonValue): Generator<Pair> {
  if (isArray(value)) {
    if (value.length === 0) throw new StyleError('must not be empty: an empty list cannot be written here');
    for (const [i, item] of value.entries()) yield* deepPairs(`${name}[${i}]`, item);
  } else if (isObject(value)) {
    const members = Object.entries(value);
    if (members.length === 0) throw new StyleError('must not be empty: an empty object cannot be written here');
    for (const [key, part] of members) {
      if (key === '' || /[[\]]/.test(key)) throw new StyleError('must not have member names with brackets here');
      yield* deepPairs(`${name}[${key}]`, part);
    }
  } else {
    yield [name, scalarText(value)];
  }
}

/** Reads `name[a][b]=text` pairs into a value. `paths` are the parts in brackets. */
export function readDeep(
  pairs: readonly (readonly [path: readonly string[], text: string])[],
  kind: ValueKind,
): JsonValue {
  const first = pairs[0];
  if (first === undefined) throw new StyleError('must have a value');
  if (first[0].length === 0) {
    if (pairs.length > 1) throw new StyleError('must be given once');
    return readScalar(first[1], kind.scalars);
  }
  if (first[0].length > MAX_DEEP) throw new StyleError('is nested too deep');
  const groups = new Map<string, (readonly [readonly string[], string])[]>();
  let appended = 0;
  for (const [path, text] of pairs) {
    const [head, ...rest] = path;
    if (head === undefined) throw new StyleError('must be either one value or an object');
    // `name[]=a&name[]=b`, as many clients write lists.
    const key = head === '' && kind.isArray ? String(appended++) : head;
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [[rest, text]]);
    else group.push([rest, text]);
  }
  if (kind.isArray && [...groups.keys()].every((key, i) => key === String(i))) {
    return [...groups.values()].map((group) => readDeep(group, kind.item()));
  }
  return Object.fromEntries(
    [...groups].map(([key, group]) => [key, readDeep(group, kind.member(key) ?? kind)] as const),
  );
}

const MAX_DEEP = 16;
