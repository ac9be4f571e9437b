import type { JsonValue } from '../../receipts/json-value.ts';
import { DateWords } from './date-words.ts';
import { tokenKey, withoutAccents } from './token-keys.ts';
import { isWord, tokenize } from './tokens.ts';
import { decimalText, type Language, readNumber } from './typed-numbers.ts';

/** A person's turns, cut into tokens and indexed once, so that each argument asked about costs little. */
export interface TypedIndex {
  readonly language: Language;
  /** Numbers, as their shortest decimal text. */
  readonly numbers: ReadonlySet<string>;
  /** Token keys to the small numbers that stand for them in `sequence`. */
  readonly keys: ReadonlyMap<string, number>;
  /** Keys of all turns in order; -1 between turns. */
  readonly sequence: Int32Array;
  /** As `sequence`, with accents left out, and the keys of its words; null where the language does not leave them out. */
  readonly bare: { readonly keys: ReadonlyMap<string, number>; readonly sequence: Int32Array } | null;
  /** The keys in the order of their numbers. */
  readonly names: readonly string[];
}

const DEEPEST = 64;
const LONGEST_VALUE = 64 * 1024;
const MOST_CANDIDATES = 64;

/** Indexes the person's turns. Takes time linear in their length; keep it for all arguments of a call. */
export function indexTurns(turns: readonly string[], language: Language): TypedIndex {
  const numbers = new Set<string>();
  const keys = new Map<string, number>();
  const names: string[] = [];
  const sequence: number[] = [];
  for (const turn of turns) {
    const tokens = tokenize(turn);
    const dates = new DateWords(tokens, language);
    for (const [at, token] of tokens.entries()) {
      const number = readNumber(token, language);
      if (number !== null && !dates.covers(at)) numbers.add(number);
      const key = tokenKey(token);
      let id = keys.get(key);
      if (id === undefined) {
        id = names.length;
        keys.set(key, id);
        names.push(key);
      }
      sequence.push(id);
    }
    sequence.push(-1);
  }
  const whole = Int32Array.from(sequence);
  return { language, numbers, keys, names, sequence: whole, bare: language === 'pt-BR' ? bareOf(names, whole) : null };
}

function bareOf(names: readonly string[], sequence: Int32Array): TypedIndex['bare'] {
  const keys = new Map<string, number>();
  const ids = names.map((name) => {
    const key = withoutAccents(name);
    const id = keys.get(key) ?? keys.size;
    keys.set(key, id);
    return id;
  });
  return { keys, sequence: sequence.map((id) => (id < 0 ? id : (ids[id] ?? -1))) };
}

/** The places where `pattern` stands in `sequence` (Knuth, Morris and Pratt: linear whatever repeats), while `visit` says so. */
function findAll(pattern: readonly number[], sequence: Int32Array, visit: (at: number) => boolean): void {
  const borders = new Int32Array(pattern.length);
  for (let index = 1, length = 0; index < pattern.length; index += 1) {
    while (length > 0 && pattern[index] !== pattern[length]) length = borders[length - 1] ?? 0;
    if (pattern[index] === pattern[length]) length += 1;
    borders[index] = length;
  }
  for (let at = 0, length = 0; at < sequence.length; at += 1) {
    while (length > 0 && sequence[at] !== pattern[length]) length = borders[length - 1] ?? 0;
    if (sequence[at] === pattern[length]) length += 1;
    if (length < pattern.length) continue;
    if (!visit(at + 1 - length)) return;
    length = borders[length - 1] ?? 0;
  }
}

function idsOf(keys: readonly string[], known: ReadonlyMap<string, number>): number[] | null {
  const ids: number[] = [];
  for (const key of keys) {
    const id = known.get(key);
    if (id === undefined) return null;
    ids.push(id);
  }
  return ids;
}

function isSequenceTyped(keys: readonly string[], index: TypedIndex): boolean {
  const ids = idsOf(keys, index.keys);
  if (ids === null) return false;
  if (ids.length === 1) return true;
  let found = false;
  findAll(ids, index.sequence, () => {
    found = true;
    return false;
  });
  return found;
}

/** Each word typed with the accents that the value has or with none: `Sao João` for `São João`, never `avô` for `avó`. */
function isTypedWithoutAccents(keys: readonly string[], index: TypedIndex): boolean {
  if (index.bare === null) return false;
  const bareKeys = keys.map(withoutAccents);
  if (bareKeys.every((key, at) => key === keys[at])) return false;
  const ids = idsOf(bareKeys, index.bare.keys);
  if (ids === null) return false;
  let found = false;
  let tried = 0;
  findAll(ids, index.bare.sequence, (start) => {
    found = keys.every((key, offset) => {
      const typed = index.names[index.sequence[start + offset] ?? -1];
      return typed === key || typed === bareKeys[offset];
    });
    tried += 1;
    return !found && tried < MOST_CANDIDATES;
  });
  return found;
}

function isTextTyped(text: string, index: TypedIndex): boolean {
  if (text === '' || text.length > LONGEST_VALUE) return false;
  const tokens = tokenize(text);
  if (!tokens.some(isWord)) return false;
  const keys = tokens.map(tokenKey);
  return isSequenceTyped(keys, index) || isTypedWithoutAccents(keys, index);
}

/** As `isTyped`, over turns that were indexed before. */
export function isTypedIn(value: JsonValue, index: TypedIndex): boolean {
  return isValueTyped(value, index, 0);
}

function isValueTyped(value: JsonValue, index: TypedIndex, depth: number): boolean {
  if (typeof value === 'string') return isTextTyped(value, index);
  if (typeof value === 'number' || typeof value === 'bigint') {
    const text = decimalText(value);
    return text !== null && index.numbers.has(text);
  }
  if (typeof value !== 'object' || value === null || depth >= DEEPEST) return false;
  const leaves: readonly JsonValue[] = Array.isArray(value) ? value : Object.values(value);
  return leaves.length > 0 && leaves.every((leaf) => isValueTyped(leaf, index, depth + 1));
}

/**
 * True where the value stands in the person's turns as typed: a number as the language writes it, compared as a decimal;
 * a text as whole tokens, one after another. `true`, `false`, `null`, an empty text, list or map never; a list or map where
 * all its leaves do.
 */
export function isTyped(value: JsonValue, turns: readonly string[], language: Language): boolean {
  return isTypedIn(value, indexTurns(turns, language));
}
