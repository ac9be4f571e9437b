import { quoted } from './nearest.ts';
import { SyntaxFault } from './syntax-fault.ts';
import type { Token } from './token.ts';
import { stringValue } from './token.ts';

/** Whether a number is written as a decimal, which is what numbers are compared as: `0x10` and `1_000` are not. */
export function isDecimal(text: string): boolean {
  return /^\d+(?:\.\d+)?(?:[eE][+-]?\d{1,3})?$/.test(text);
}

/**
 * The text that a string of a condition stands for. What a backslash means before any other character differs from one
 * reader to the next, and a value that is compared must be the one that was meant.
 * @throws SyntaxFault for such a backslash
 */
export function comparedText(token: Token): string {
  const found = /\\[^\\"'nrt]/.exec(token.text.replaceAll('\\\\', '  '));
  if (found !== null) {
    const [written] = found;
    throw new SyntaxFault(
      'condition_syntax',
      token.at + found.index,
      `\`${written}\` is no escape that is read; write \`\\${written}\` for the backslash itself`,
    );
  }
  return stringValue(token.text);
}

/**
 * A name of a fact or an argument, which must be what it looks like: a fact of another name is missing, and what is missing
 * is false.
 * @throws SyntaxFault for characters that are seen as nothing, and for accents written apart from their letters
 */
export function plainName(token: Token, name: string): string {
  if (name === name.normalize('NFC') && /^[\p{L}\p{N}\p{M}_]+$/u.test(name)) return name;
  const message = `${quoted(name)} holds a character that is not what it looks like; type the name anew`;
  throw new SyntaxFault('condition_syntax', token.at, message);
}
