import type { JsonObject, JsonValue } from '../../receipts/json-value.ts';
import type { Span } from './character-classes.ts';
import { mayHoldCode } from './decode-text.ts';
import { findPieces } from './find-pieces.ts';
import { foldText, isAscii } from './fold-text.ts';
import { isPlainEmail } from './plain-email.ts';
import { ViewBudget, visitViews } from './text-views.ts';

/** What the operator says an argument holds, to settle what else looks like a destination. */
export type ArgumentKind = 'filename' | 'version' | 'prose';

/** What the tool's words say of its arguments. */
export interface DestinationOptions {
  /** Arguments (top level) that may hold exactly one e-mail address and nothing else. */
  readonly subjectArguments?: readonly string[];
  /** Kinds by argument (top level); what is nested in an argument is of its kind. */
  readonly kinds?: Readonly<Record<string, ArgumentKind>>;
  /** Names that the tool's schema declares (at any depth): the operator's words, not the caller's, so they are not read. */
  readonly declaredKeys?: ReadonlySet<string>;
}

/**
 * Why a call could not be looked at whole: `length` (more than 64 KiB of strings), `depth` (nested too deep), `disguise`
 * (decoding it makes more text than is looked at). Such a call is to be refused as one that names a destination.
 */
type Undecided = 'length' | 'depth' | 'disguise';

/** What was found in a call's arguments. A call is clear only where `destinations` is empty and `undecided` is null. */
export interface DestinationFindings {
  /** Each piece once, in document order, as written, or decoded where it was disguised; at most 50. */
  readonly destinations: readonly string[];
  readonly undecided: Undecided | null;
}

const MOST_UNITS = 64 * 1024;
const MOST_VIEW_UNITS = 8 * MOST_UNITS;
const MOST_PIECES = 50;
const DEEPEST = 128;
const LONGEST_COMPARED = 2048;
const CLEAR: DestinationFindings = Object.freeze({ destinations: Object.freeze([]), undecided: null });

const FILE_NAME = /^[^/\\:@\p{Cc}\p{Zl}\p{Zp}]{1,255}$/u;
const VERSION = /^(?:[\w.~-]+@)?[v^~<>=*\s]{0,4}[0-9][0-9A-Za-z.+_-]{0,127}$/;
const SENTENCE_END = /^[^.]*\.\p{Lu}\p{Ll}*$/u;

// Below this length a string without any mark is too short for `localhost`, for words that spell an address, for base64.
const SHORT = 9;
const MARKS: Uint8Array = new Uint8Array(128);
for (const mark of '.:/\\@%&~$=') MARKS[mark.charCodeAt(0)] = 1;

const LONGEST_NUMBER = 24;

/** True for a string that cannot hold a destination in any view: the common case, without allocation. */
function isPlain(text: string): boolean {
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code >= 128 || MARKS[code] === 1) return isAmount(text);
  }
  return text.length < SHORT || !isSuspicious(text);
}

/** Digits with a sign, commas and at most two dots: an amount or a date, too few parts for an address. */
function isAmount(text: string): boolean {
  if (text.length > LONGEST_NUMBER) return false;
  let dots = 0;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === 0x2e) dots += 1;
    else if ((code < 0x30 || code > 0x39) && code !== 0x2c && code !== 0x2d) return false;
  }
  return dots === 1 || (dots === 2 && text.charCodeAt(0) !== 0x2e);
}

const SUSPICIOUS = /localhost|\b(?:dot|ponto|punto)\b|[[({<]\s*(?:dot|ponto|punto|at|arroba|slash|barra|colon)/i;

function isSuspicious(text: string): boolean {
  return SUSPICIOUS.test(text) || mayHoldCode(text);
}

/** Reads one call's arguments; holds what is found so far. */
class Search {
  readonly pieces: string[] = [];
  undecided: Undecided | null = null;
  private readonly known = new Set<string>();
  private readonly budget = new ViewBudget(MOST_VIEW_UNITS);

  isFull(): boolean {
    return this.pieces.length >= MOST_PIECES;
  }

  read(text: string, kind: ArgumentKind | undefined): void {
    const own: string[] = [];
    const whole = visitViews(text, this.budget, ({ text: view, again }) => {
      if (this.isFull()) return;
      for (const piece of own) this.known.add(again(piece));
      const before = own.length;
      for (const span of findPieces(view)) {
        const piece = view.slice(span.start, span.end);
        if (this.known.has(piece) || isSettled(view, piece, span, kind)) continue;
        const folded = !isAscii(piece) && this.known.has(foldText(piece));
        this.known.add(piece);
        // `il.com` of `ev<zero width space>il.com` is part of what the folded view showed already.
        if (folded || isPartOf(piece, own, before)) continue;
        this.add(piece, own, before);
        if (this.isFull()) return;
      }
    });
    if (!whole) this.undecided ??= 'disguise';
  }

  /** Adds a piece; one that an earlier view showed only in part (`evil.com` of `https%3A%2F%2Fevil.com`) gives it its place. */
  private add(piece: string, own: string[], before: number): void {
    const part =
      piece.length > LONGEST_COMPARED ? -1 : own.findIndex((other, at) => at < before && piece.includes(other));
    if (part === -1) {
      own.push(piece);
      this.pieces.push(piece);
      return;
    }
    const at = this.pieces.lastIndexOf(own[part] ?? '');
    own[part] = piece;
    this.pieces[at] = piece;
  }
}

function isPartOf(piece: string, own: readonly string[], count: number): boolean {
  for (let index = 0; index < count; index += 1) {
    const other = own[index] ?? '';
    if (other.length <= LONGEST_COMPARED && other.includes(piece)) return true;
  }
  return false;
}

/** What the operator's word for an argument settles. It never settles a URL, an e-mail address, a port or a path. */
function isSettled(view: string, piece: string, span: Span, kind: ArgumentKind | undefined): boolean {
  if (kind === undefined) return false;
  if (kind === 'prose') return span.aside === true || (span.bare === true && SENTENCE_END.test(piece));
  return span.bare === true && (kind === 'filename' ? FILE_NAME.test(view) : VERSION.test(view));
}

/**
 * The destinations (addresses, URLs, hosts, paths) in the strings and object keys of a call's arguments, at any depth.
 * Best effort by nature: what a text means to its reader is not decidable. Costs nothing to speak of for short plain values,
 * time linear in the text otherwise.
 */
export function findDestinations(args: JsonObject, options: DestinationOptions = {}): DestinationFindings {
  let search: Search | undefined;
  let left = MOST_UNITS;
  let undecided: Undecided | null = null;

  const text = (value: string, kind: ArgumentKind | undefined): void => {
    left -= value.length;
    if (left < 0) undecided ??= 'length';
    if (undecided !== null || isPlain(value)) return;
    search ??= new Search();
    if (!search.isFull()) search.read(value, kind);
  };
  const walk = (value: JsonValue, kind: ArgumentKind | undefined, depth: number): void => {
    if (typeof value === 'string') text(value, kind);
    if (typeof value !== 'object' || value === null || undecided !== null) return;
    if (depth > DEEPEST) {
      undecided = 'depth';
    } else if (Array.isArray(value)) {
      for (const item of value) walk(item, kind, depth + 1);
    } else {
      for (const [key, member] of Object.entries(value)) {
        if (options.declaredKeys?.has(key) !== true) text(key, kind);
        walk(member, kind, depth + 1);
      }
    }
  };

  for (const name in args) {
    if (!Object.hasOwn(args, name)) continue;
    const value = args[name] ?? null;
    const kinds = options.kinds;
    const kind = kinds !== undefined && Object.hasOwn(kinds, name) ? kinds[name] : undefined;
    if (options.declaredKeys?.has(name) !== true) text(name, kind);
    if (options.subjectArguments?.includes(name) === true && isPlainEmail(value)) continue;
    if (typeof value === 'string') text(value, kind);
    else if (typeof value === 'object') walk(value, kind, 1);
  }
  undecided ??= search?.undecided ?? null;
  if (undecided === null && (search === undefined || search.pieces.length === 0)) return CLEAR;
  return { destinations: search?.pieces ?? [], undecided };
}
