import { RE2JS } from 're2js';

/** A compiled pattern: `test` answers in time linear in the length of the text. */
export interface LinearPattern {
  test(text: string): boolean;
}

/** Thrown for a pattern that cannot be run in linear time; the message says which construct stands in the way. */
export class PatternError extends Error {
  readonly code = 'pattern_unsupported';
}

const MAX_PATTERN_LENGTH = 8192;

/** What ECMAScript calls white space; RE2's own `\s` knows the ASCII ones alone. */
const SPACES =
  '\\t\\n\\v\\f\\r \\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}\\x{feff}';
const NOT_LINE_END = '[^\\n\\r\\x{2028}\\x{2029}]';
const ANY = '(?s:.)';
const NONE = '[^\\x{0}-\\x{10ffff}]';

/** Long names of general categories that documents use; RE2 knows the short ones. */
const CATEGORIES: ReadonlyMap<string, string> = new Map([
  ['Letter', 'L'],
  ['Uppercase_Letter', 'Lu'],
  ['Lowercase_Letter', 'Ll'],
  ['Mark', 'M'],
  ['Number', 'N'],
  ['Decimal_Number', 'Nd'],
  ['digit', 'Nd'],
  ['Punctuation', 'P'],
  ['Symbol', 'S'],
  ['Separator', 'Z'],
  ['Other', 'C'],
]);

const cache = new Map<string, LinearPattern | PatternError>();
const MAX_CACHED = 20_000;

/**
 * Compiles an ECMAScript pattern (as JSON Schema's `pattern` has it: Unicode, unanchored) to a matcher that is linear in
 * the length of the text, whatever the pattern. Look-around, backreferences and whatever else RE2 cannot express throw
 * `PatternError`.
 */
export function compilePattern(source: string): LinearPattern {
  const known = cache.get(source);
  if (known !== undefined) {
    if (known instanceof PatternError) throw known;
    return known;
  }
  if (cache.size >= MAX_CACHED) cache.clear();
  try {
    const made = compileUncached(source);
    cache.set(source, made);
    return made;
  } catch (cause) {
    const error = cause instanceof PatternError ? cause : new PatternError(messageOf(cause));
    cache.set(source, error);
    throw error;
  }
}

function messageOf(cause: unknown): string {
  return cause instanceof Error ? cause.message : 'it does not parse';
}

function compileUncached(source: string): LinearPattern {
  if (source.length > MAX_PATTERN_LENGTH) throw new PatternError(`it is longer than ${MAX_PATTERN_LENGTH} characters`);
  if (SAFE_NATIVELY.test(source)) {
    const native = compileNatively(source);
    if (native !== undefined) return native;
  }
  const compiled = RE2JS.compile(translatePattern(source));
  return { test: (text: string) => compiled.matcher(text).find() };
}

/**
 * Patterns that the native engine runs in linear time and several times faster than RE2: anchored at the start, no
 * groups, no alternatives, and at most one quantifier of variable width, so that there is one position to backtrack over
 * and a suffix of fixed width to try at each.
 */
const ATOM = String.raw`(?:\\[dDwW./\-_:+@ ,#()\[\]{}?*^$|\\]|\[\^?(?:[^\]\\[]|\\[dDwWsS./\-_:+@(\])\[{}?*^$|\\])+\]|[^\\^$.|?*+()\[\]{}])`;
const SAFE_NATIVELY = new RegExp(
  String.raw`^\^(?:${ATOM}(?:\{\d{1,2}\})?){0,32}(?:${ATOM}(?:[*+?]|\{\d{1,6},\d{0,6}\})(?:${ATOM}(?:\{\d\})?){0,12})?\$?$`,
);

function compileNatively(source: string): LinearPattern | undefined {
  try {
    return new RegExp(source, 'u');
  } catch {
    return undefined; // not valid under the `u` flag: RE2 reads it in the older, laxer grammar
  }
}

/** Rewrites an ECMAScript pattern in RE2's grammar, or throws `PatternError`. */
function translatePattern(source: string): string {
  let out = '';
  let i = 0;
  while (i < source.length) {
    const char = source[i] ?? '';
    if (char === '\\') {
      const [text, next] = translateEscape(source, i, false);
      out += text;
      i = next;
    } else if (char === '[') {
      const [text, next] = translateClass(source, i);
      out += text;
      i = next;
    } else if (char === '(') {
      const [text, next] = translateGroup(source, i);
      out += text;
      i = next;
    } else {
      out += char === '.' ? NOT_LINE_END : char === '$' ? '\\z' : char;
      i += 1;
    }
  }
  return out;
}

function translateGroup(source: string, at: number): [string, number] {
  if (source[at + 1] !== '?') return ['(?:', at + 1];
  if (source[at + 2] === ':') return ['(?:', at + 3];
  if (source[at + 2] === '<' && source[at + 3] !== '=' && source[at + 3] !== '!') {
    const end = source.indexOf('>', at);
    if (end > 0) return ['(?:', end + 1];
  }
  throw new PatternError(
    /^\(\?<?[=!]/.test(source.slice(at, at + 4)) ? 'it has a look-around' : 'it has a group of an unknown kind',
  );
}

function translateClass(source: string, at: number): [string, number] {
  let i = at + 1;
  const negated = source[i] === '^';
  if (negated) i += 1;
  if (source[i] === ']') return [negated ? ANY : NONE, i + 1];
  let body = '';
  let spaces = false;
  let notSpaces = false;
  while (source[i] !== ']') {
    const char = source[i];
    if (char === undefined) throw new PatternError('a character class is not closed');
    if (char === '\\') {
      if (source[i + 1] === 's') spaces = true;
      if (source[i + 1] === 'S') notSpaces = true;
      const [text, next] = source[i + 1] === 'S' ? ['', i + 2] : translateEscape(source, i, true);
      body += text;
      i = next;
    } else {
      body += char === '[' ? '\\[' : char;
      i += 1;
    }
  }
  if (!notSpaces) return [`[${negated ? '^' : ''}${body}]`, i + 1];
  // `\S` in a class cannot be spelled in RE2; the one common use is with `\s`, which together mean any character.
  if (!spaces) throw new PatternError('it has `\\S` inside a character class');
  return [negated ? NONE : ANY, i + 1];
}

function translateEscape(source: string, at: number, inClass: boolean): [string, number] {
  const char = source[at + 1];
  if (char === undefined) throw new PatternError('it ends in a backslash');
  if (char === 's') return [inClass ? SPACES : `[${SPACES}]`, at + 2];
  if (char === 'S') return [`[^${SPACES}]`, at + 2];
  if (char === 'b') return [inClass ? '\\x{8}' : '\\b', at + 2];
  if ('dDwWfnrtv'.includes(char) || (char === 'B' && !inClass)) return [`\\${char}`, at + 2];
  if (char === 'u' || char === 'x') return translateCodePoint(source, at);
  if (char === 'p' || char === 'P') return translateProperty(source, at);
  if (char === 'c' && /[A-Za-z]/.test(source[at + 2] ?? '')) {
    return [`\\x{${((source.charCodeAt(at + 2) & 31) >>> 0).toString(16)}}`, at + 3];
  }
  if (char === '0' && !/\d/.test(source[at + 2] ?? '')) return ['\\x{0}', at + 2];
  if (/[1-9k]/.test(char)) throw new PatternError('it has a backreference');
  if (/[A-Za-z0-9]/.test(char)) throw new PatternError(`it has the unknown escape \`\\${char}\``);
  return [char.charCodeAt(0) < 128 ? `\\${char}` : char, at + 2];
}

function translateCodePoint(source: string, at: number): [string, number] {
  const rest = source.slice(at, at + 14);
  const match =
    /^\\u\{([0-9A-Fa-f]{1,6})\}/.exec(rest) ?? /^\\u([0-9A-Fa-f]{4})/.exec(rest) ?? /^\\x([0-9A-Fa-f]{2})/.exec(rest);
  const hex = match?.[1];
  if (match === null || hex === undefined) throw new PatternError('it has a broken code point escape');
  const unit = Number.parseInt(hex, 16);
  const low = /^\\u([0-9A-Fa-f]{4})\\u([Dd][C-Fc-f][0-9A-Fa-f]{2})/.exec(rest)?.[2];
  if (unit >= 0xd800 && unit <= 0xdbff && low !== undefined) {
    const point = 0x10000 + ((unit - 0xd800) << 10) + (Number.parseInt(low, 16) - 0xdc00);
    return [`\\x{${point.toString(16)}}`, at + 12];
  }
  if (unit >= 0xd800 && unit <= 0xdfff) throw new PatternError('it names half of a surrogate pair');
  return [`\\x{${hex}}`, at + match[0].length];
}

function translateProperty(source: string, at: number): [string, number] {
  const match = /^\\([pP])\{(?:(?:Script|sc|General_Category|gc)=)?(\w+)\}/.exec(source.slice(at, at + 60));
  const name = match?.[2];
  if (match === null || name === undefined) throw new PatternError('it has a broken `\\p` escape');
  return [`\\${match[1]}{${CATEGORIES.get(name) ?? name}}`, at + match[0].length];
}
