import { matchMixed, type Segment } from './route-template.ts';
import { decodePercent } from './target.ts';

/**
 * A path of `pass`, which is let through unchecked. Its segments match a request's letter by letter; `*` stands for one
 * segment that is not empty, and `**` at the end for one or more. Nothing else has a meaning in it.
 */
export interface PassPattern {
  /** As the configuration has it. */
  readonly text: string;
  readonly segments: readonly string[];
}

/** One segment of a path as the configuration may write it (RFC 3986 `pchar` without `%`, `;` and `*`). */
const PLAIN = /^[A-Za-z0-9._~!$&'()+,=:@-]+$/;

/** Why a text is no such pattern; undefined where it is one. */
export function passPatternFault(text: string): string | undefined {
  if (!text.startsWith('/')) return 'must begin with `/`';
  const segments = text.slice(1).split('/');
  for (const [i, segment] of segments.entries()) {
    const isLast = i === segments.length - 1;
    if (segment === '*' || (segment === '' && isLast)) continue;
    if (segment === '**') {
      if (isLast) continue;
      return 'has `**` before its end';
    }
    if (segment === '') return 'has an empty segment';
    if (segment === '.' || segment === '..') return 'has a dot segment';
    if (segment.includes('*')) return 'has a `*` that is not a whole segment';
    if (!PLAIN.test(segment)) return 'has a character that must not stand in it';
  }
  return undefined;
}

/** Reads a pattern that has no fault. */
export function parsePassPattern(text: string): PassPattern {
  return { text, segments: text.slice(1).split('/') };
}

/** Whether a request's path is let through: its raw segments below the route's path, in the form that `normalisePath` leaves. */
export function matchesPass({ segments: pattern }: PassPattern, segments: readonly string[]): boolean {
  const isOpen = pattern.at(-1) === '**';
  if (isOpen ? segments.length < pattern.length : segments.length !== pattern.length) return false;
  if (!segments.every(isOneName)) return false;
  return pattern.every((part, i) => {
    const segment = segments[i] ?? '';
    return part === '*' || part === '**' ? segment !== '' : part === segment;
  });
}

/**
 * What parts a path, or ends it, for a backend that decodes before it cuts, or cuts a segment at `;`; with the slashes that
 * NFKC leaves and Windows takes for these (best fit).
 */
const PARTING = /[/\\?#;%\u2044\u2215\u2216]/;
/** Some backends take off spaces and dots (IDNA's too) at an end, and characters that nobody sees: nothing is left, or dots. */
const NO_NAME = /^[\s.\u3002\p{Default_Ignorable_Code_Point}]+$/u;

/** Whether a segment, raw, is one for every backend, also one that takes characters for those that they look like (NFKC). */
function isOneName(segment: string): boolean {
  const text = decodePercent(segment)?.normalize('NFKC');
  return text !== undefined && !PARTING.test(text) && !NO_NAME.test(text);
}

/**
 * Whether some path that the pattern lets through might be taken for one of `template` by a backend, which may ignore case,
 * decode what is encoded, or not tell a closing slash. Says yes where that is not certain.
 */
export function mayCover(pattern: PassPattern, template: readonly Segment[]): boolean {
  const passed = withoutClosingSlash(pattern.segments, (segment) => segment === '');
  const tool = withoutClosingSlash(template, ({ literal }) => literal === '');
  const isOpen = passed.at(-1) === '**';
  if (isOpen ? tool.length < passed.length : tool.length !== passed.length) return false;
  return passed.every((part, i) => {
    const segment = tool[i];
    return part === '*' || part === '**' || (segment !== undefined && isLike(foldText(part), segment));
  });
}

function withoutClosingSlash<T>(segments: readonly T[], isEmpty: (segment: T) => boolean): readonly T[] {
  const last = segments.at(-1);
  return last !== undefined && isEmpty(last) ? segments.slice(0, -1) : segments;
}

function isLike(text: string, { literal, parts, key }: Segment): boolean {
  if (literal !== undefined) return foldText(literal) === text;
  const folded = parts.map((part) => ('literal' in part ? { literal: foldText(part.literal) } : part));
  return matchMixed({ parts: folded, literal, key }, text, []);
}

/** A text as backends that ignore case and encoding have it. */
function foldText(text: string): string {
  return (decodePercent(text) ?? text).toLowerCase();
}
