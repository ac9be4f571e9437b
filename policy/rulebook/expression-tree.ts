import { comparedText, isDecimal } from './compared.ts';
import type { Token } from './token.ts';

/** A value written in a rule. Numbers keep their text: they are compared as decimals, never as floats. */
export type Literal = string | boolean | null | { readonly number: string };

/** How two sides are compared. */
export type Comparison = '==' | '!=' | '<' | '<=' | '>' | '>=' | 'in' | 'not in';

/** What a condition says, before it is known which names are facts; `at` is an offset in the line. */
export type Expression =
  | { readonly kind: 'and' | 'or'; readonly parts: readonly Expression[]; readonly at: number }
  | { readonly kind: 'not'; readonly of: Expression; readonly at: number }
  | {
      readonly kind: 'compare';
      readonly by: Comparison;
      readonly word: string;
      readonly left: Expression;
      readonly right: Expression;
      readonly at: number;
    }
  | { readonly kind: 'path'; readonly path: readonly string[]; readonly at: number }
  | { readonly kind: 'literal'; readonly value: Literal; readonly at: number }
  | { readonly kind: 'list'; readonly items: readonly Literal[]; readonly at: number }
  | { readonly kind: 'opaque'; readonly what: string; readonly at: number };

/** The words that are values. */
export const CONSTANTS: ReadonlyMap<string, boolean | null> = new Map([
  ['True', true],
  ['true', true],
  ['False', false],
  ['false', false],
  ['None', null],
  ['null', null],
]);

/** Operators of other languages, with what to write instead. */
export const INSTEAD: ReadonlyMap<string, string> = new Map([
  ['=', 'write `==` to compare'],
  ['&&', 'write `and`'],
  ['||', 'write `or`'],
  ['!', 'write `not`'],
  ['<>', 'write `!=`'],
]);
/** The comparisons that are symbols. */
export const ORDER: ReadonlySet<string> = new Set(['==', '!=', '<', '<=', '>', '>=']);
/** Operators whose result nobody can know at a call. */
export const ARITHMETIC: ReadonlySet<string> = new Set([
  '+',
  '-',
  '*',
  '/',
  '%',
  '**',
  '//',
  '@',
  '&',
  '|',
  '^',
  '<<',
  '>>',
]);
/** The bracket that closes each opening one. */
export const CLOSES: Readonly<Record<string, string>> = { '(': ')', '[': ']', '{': '}' };

/** The comparison that a symbol stands for. */
export function orderOf(text: string): Comparison {
  switch (text) {
    case '!=':
    case '<':
    case '<=':
    case '>':
    case '>=':
      return text;
    default:
      return '==';
  }
}

/** Whether a literal is a number. */
export function isNumber(value: Literal): value is { readonly number: string } {
  return value !== null && typeof value === 'object';
}

/** The number with its sign turned. */
export function negated(text: string): string {
  return text.startsWith('-') ? text.slice(1) : `-${text}`;
}

/** The values of a list written out, or undefined where one of them is not a plain value. */
export function literalItems(tokens: readonly Token[]): readonly Literal[] | undefined {
  const items: Literal[] = [];
  let at = 0;
  while (at < tokens.length) {
    let token = tokens[at];
    const minus = token?.kind === 'symbol' && token.text === '-';
    if (minus) token = tokens[++at];
    if (token === undefined) return undefined;
    const constant = token.kind === 'name' ? CONSTANTS.get(token.text) : undefined;
    if (token.kind === 'number' && isDecimal(token.text)) {
      items.push({ number: minus ? negated(token.text) : token.text });
    } else if (minus) {
      return undefined;
    } else if (token.kind === 'string') {
      items.push(comparedText(token));
    } else if (constant !== undefined) {
      items.push(constant);
    } else {
      return undefined;
    }
    const comma = tokens[at + 1];
    if (comma !== undefined && comma.text !== ',') return undefined;
    at += 2;
  }
  return items;
}
