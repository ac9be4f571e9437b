import type { Line } from './line.ts';
import { isWordCharacter, opensString } from './line.ts';

/** A piece of a line; `at` is its offset in the line's text. */
export interface Token {
  readonly kind: 'name' | 'variable' | 'string' | 'number' | 'symbol';
  readonly text: string;
  readonly at: number;
  readonly end: number;
}

const SYMBOLS = ['...', '==', '!=', '<=', '>=', '<>', '->', '+=', '-=', '**', '//', '&&', '||', '<<', '>>'];
const NUMBER = /\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const BLANKS = /\s+/y;

/** Splits a line into tokens; never fails: what is none of the kinds is a symbol of one character. */
export function tokenize(line: Line, from: number = 0): readonly Token[] {
  const text = line.text;
  const tokens: Token[] = [];
  let at = from;
  while (at < text.length) {
    BLANKS.lastIndex = at;
    if (BLANKS.test(text)) {
      at = BLANKS.lastIndex;
      continue;
    }
    const end = tokenEnd(text, at);
    tokens.push({ kind: kindAt(text, at), text: text.slice(at, end), at, end });
    at = end;
  }
  return tokens;
}

function kindAt(text: string, at: number): Token['kind'] {
  const code = text.charCodeAt(at);
  if (opensString(text, at)) return 'string';
  if (code === 36 && isWordCharacter(text.charCodeAt(at + 1))) return 'variable';
  if (code >= 48 && code <= 57) return 'number';
  return isWordCharacter(code) ? 'name' : 'symbol';
}

function tokenEnd(text: string, at: number): number {
  switch (kindAt(text, at)) {
    case 'string':
      return stringEnd(text, at);
    case 'variable':
      return wordEnd(text, at + 1);
    case 'name':
      return wordEnd(text, at);
    case 'number': {
      NUMBER.lastIndex = at;
      NUMBER.test(text);
      const end = NUMBER.lastIndex > at ? NUMBER.lastIndex : at + 1;
      return isWordCharacter(text.charCodeAt(end)) ? wordEnd(text, end) : end;
    }
    case 'symbol':
      for (const symbol of SYMBOLS) if (text.startsWith(symbol, at)) return at + symbol.length;
      return at + 1;
  }
}

function wordEnd(text: string, at: number): number {
  let end = at;
  while (end < text.length && isWordCharacter(text.charCodeAt(end))) end += 1;
  return end;
}

function stringEnd(text: string, at: number): number {
  const quote = text[at] ?? '"';
  const triple = quote.repeat(3);
  if (text.startsWith(triple, at)) {
    const close = text.indexOf(triple, at + 3);
    return close < 0 ? text.length : close + 3;
  }
  for (let end = at + 1; end < text.length; end += 1) {
    if (text[end] === '\\') end += 1;
    else if (text[end] === quote) return end + 1;
  }
  return text.length;
}

const ESCAPES: Readonly<Record<string, string>> = { n: '\n', t: '\t', r: '\r' };

/** The text that a string token stands for. */
export function stringValue(token: string): string {
  const quote = token[0] ?? '"';
  const triple = quote.repeat(3);
  const inner = token.length >= 6 && token.startsWith(triple) ? token.slice(3, -3) : token.slice(1, -1);
  if (!inner.includes('\\')) return inner;
  return inner.replaceAll(/\\([\s\S])/g, (_whole, character: string) => ESCAPES[character] ?? character);
}
