import type { JsonValue } from '../../receipts/json-value.ts';
import type { SchemaFault } from '../schema/walk.ts';
import { styleFault } from './request.ts';
import { readScalar } from './scalar.ts';
import { type Pair, PERCENT, readDeep, readMembers, type Styled, StyleError, splitValue } from './styles.ts';

/** One pair of a query or form: the name decoded, the value raw, and whether some parameter took it. */
export interface RawPair {
  readonly name: string;
  readonly raw: string;
  taken: boolean;
}

/** More pairs than any honest query or form has; each declared name goes through all of them. */
const MAX_PAIRS = 10_000;

/** Cuts a query or form into pairs. A name that cannot be decoded is a fault. */
export function parsePairs(text: string, faults: SchemaFault[]): RawPair[] {
  const pairs: RawPair[] = [];
  for (const piece of text.split('&', MAX_PAIRS + 1)) {
    if (piece === '') continue;
    if (pairs.length >= MAX_PAIRS) {
      faults.push({ pointer: '', rule: 'maxValues', message: `must not have more than ${MAX_PAIRS} pairs` });
      return [];
    }
    const at = piece.indexOf('=');
    // In queries as in forms `+` is a space to most readers; it is sent on as `%20`, which it is to all of them.
    const [rawName, raw] = at < 0 ? [piece, ''] : [piece.slice(0, at), piece.slice(at + 1).replaceAll('+', '%20')];
    try {
      pairs.push({ name: PERCENT.decode(rawName.replaceAll('+', '%20')), raw, taken: false });
    } catch (cause) {
      faults.push(styleFault(rawName, cause));
    }
  }
  return pairs;
}

/** The one of what may be given once. */
export function single<T>(found: readonly T[]): T | undefined {
  if (found.length > 1) throw new StyleError('must be given once');
  return found[0];
}

/** Reads a JSON text inside a parameter or field. */
export function parseText(text: string, parseJson: (text: string) => JsonValue): JsonValue {
  try {
    return parseJson(text);
  } catch {
    throw new StyleError('must be JSON');
  }
}

const DELIMITERS: Readonly<Record<string, RegExp>> = {
  form: /,/,
  spaceDelimited: /%20/,
  pipeDelimited: /\||%7[Cc]/,
  tabDelimited: /%09/,
};

/** Reads a query parameter or form field out of the pairs, and marks those that it took. */
export function readQuery(
  parameter: Styled,
  pairs: readonly RawPair[],
  parseJson: (text: string) => JsonValue,
): JsonValue | undefined {
  const { name, style, explode, kind } = parameter;
  if (style === 'deepObject') return readDeepPairs(name, pairs, kind);
  if (style === 'form' && explode && kind.isObject) {
    const own = take(pairs, (pair) => kind.names.includes(pair.name));
    if (own.length === 0) return undefined;
    return readMembers(
      own.map((pair): Pair => [pair.name, PERCENT.decode(pair.raw)]),
      kind,
    );
  }
  const own = take(pairs, (pair) => pair.name === name);
  if (own.length === 0) return undefined;
  // One value of what may be one or several is one.
  const isList = kind.isArray && (own.length > 1 || kind.scalars.size === 0);
  if (explode && isList && style !== 'json') {
    const { scalars } = kind.item();
    return own.map(({ raw }) => readScalar(PERCENT.decode(raw), scalars));
  }
  const first = single(own);
  if (first === undefined) return undefined;
  if (style === 'json') return parseText(PERCENT.decode(first.raw), parseJson);
  return splitValue(first.raw, DELIMITERS[style] ?? ',', false, kind, PERCENT);
}

function take(pairs: readonly RawPair[], wanted: (pair: RawPair) => boolean): RawPair[] {
  const own = pairs.filter(wanted);
  for (const pair of own) pair.taken = true;
  return own;
}

function readDeepPairs(name: string, pairs: readonly RawPair[], kind: Styled['kind']): JsonValue | undefined {
  const own = take(pairs, (pair) => pair.name === name || pair.name.startsWith(`${name}[`));
  if (own.length === 0) return undefined;
  return readDeep(
    own.map((pair) => [bracketPath(pair.name.slice(name.length)), PERCENT.decode(pair.raw)] as const),
    kind,
  );
}

/** `[a][b]` as `a`, `b`. */
function bracketPath(text: string): string[] {
  if (text === '') return [];
  if (!text.startsWith('[') || !text.endsWith(']')) throw new StyleError('must be written as `name[member]`');
  const parts = text.slice(1, -1).split('][');
  if (parts.some((part) => part.includes('[') || part.includes(']'))) {
    throw new StyleError('must be written as `name[member]`');
  }
  return parts;
}
