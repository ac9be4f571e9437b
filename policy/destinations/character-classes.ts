// Looked up per character of untrusted text, so a table and not a regular expression.
const HOST = 1;
const LETTER = 2;
const DIGIT = 4;
const SCHEME = 8;
const LOCAL = 16;
const HEX = 32;
const STOP = 64;
const CLASSES: Uint8Array = new Uint8Array(128);

function mark(characters: string, flag: number): void {
  for (const character of characters) {
    const code = character.charCodeAt(0);
    CLASSES[code] = (CLASSES[code] ?? 0) | flag;
  }
}

mark('abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ', HOST | LETTER | SCHEME | LOCAL);
mark('0123456789', HOST | DIGIT | SCHEME | LOCAL | HEX);
mark('abcdefABCDEF', HEX);
mark('-_.', HOST);
mark('+-.', SCHEME);
mark("!#$%&'*+-/=?^_`{|}~.", LOCAL);

mark('<>"`{}|^ \x7f', STOP);
for (let code = 0; code < 0x20; code += 1) mark(String.fromCharCode(code), STOP);

const WIDE_QUOTES = '“”«»';
const WORD_BEYOND_ASCII = /[\p{L}\p{M}\p{N}\p{Cs}\u2600-\u27bf]/u;
const BLANK_BEYOND_ASCII = /[\s\u0085\u200b-\u200f\u2028-\u202f\u2060\ufeff]/;

/** A letter, digit, mark or pictograph beyond ASCII: hosts may be written in any script, even in pictographs. */
export function isWideWord(code: number): boolean {
  return code >= 0x80 && WORD_BEYOND_ASCII.test(String.fromCharCode(code));
}

/** A UTF-16 code unit that may stand in a host name as people write it, dots included. */
export function isHostCode(code: number): boolean {
  return code < 0x80 ? ((CLASSES[code] ?? 0) & HOST) !== 0 : isWideWord(code);
}

/** An ASCII letter. */
export function isLetter(code: number): boolean {
  return code < 0x80 && ((CLASSES[code] ?? 0) & LETTER) !== 0;
}

/** An ASCII digit. */
export function isDigit(code: number): boolean {
  return code >= 0x30 && code <= 0x39;
}

/** A letter or digit of any script. */
export function isWordCode(code: number): boolean {
  return code < 0x80 ? ((CLASSES[code] ?? 0) & (LETTER | DIGIT)) !== 0 : isWideWord(code);
}

/** An ASCII hexadecimal digit. */
export function isHexCode(code: number): boolean {
  return code < 0x80 && ((CLASSES[code] ?? 0) & HEX) !== 0;
}

/** What RFC 3986 section 3.1 lets stand in a scheme. */
export function isSchemeCode(code: number): boolean {
  return code < 0x80 && ((CLASSES[code] ?? 0) & SCHEME) !== 0;
}

/** What RFC 5322 section 3.2.3 lets stand in a dot-atom, and letters of any script (RFC 6531). */
export function isLocalCode(code: number): boolean {
  return code < 0x80 ? ((CLASSES[code] ?? 0) & LOCAL) !== 0 : isWideWord(code);
}

/** White space, a control, or a character without width. */
export function isBlank(code: number): boolean {
  return code <= 0x20 || code === 0x7f || (code >= 0x80 && BLANK_BEYOND_ASCII.test(String.fromCharCode(code)));
}

const TRAILING = ".,;:!?')]*…";

/** Where a URL, host or path that goes on at `from` ends: before white space or a delimiter, less trailing punctuation. */
export function endOfPiece(text: string, from: number, limit: number = text.length): number {
  let end = from;
  while (end < limit) {
    const code = text.charCodeAt(end);
    if (code < 0x80 ? ((CLASSES[code] ?? 0) & STOP) !== 0 : isBlank(code) || WIDE_QUOTES.includes(text[end] ?? ''))
      break;
    end += 1;
  }
  while (end > from && TRAILING.includes(text[end - 1] ?? '')) end -= 1;
  return end;
}

/** A stretch of a text: `start` inclusive, `end` exclusive, in UTF-16 code units. */
export interface Span {
  readonly start: number;
  readonly end: number;
  /** A host or quad of numbers that stands bare: what a `filename`, `version` or `prose` argument may hold. */
  readonly bare?: boolean;
  /** A path of one segment inside a sentence (`5 reais /unit`) or a call in code (`log.info(x)`), which `prose` may hold. */
  readonly aside?: boolean;
}
