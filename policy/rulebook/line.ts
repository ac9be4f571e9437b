import type { Position } from './problem.ts';

/** The two languages that a source can be written in. */
export type Version = '1.0' | '2.x';

export interface Segment {
  /** Offset in the logical line's text at which this piece of a source line starts. */
  readonly at: number;
  readonly line: number;
  readonly column: number;
}

/** One statement's line: comments are gone, continued lines are joined, the indentation is a number. */
export interface Line {
  readonly file: string;
  readonly text: string;
  readonly indent: number;
  readonly line: number;
  readonly segments: readonly Segment[];
}

/** Where the character at `offset` of a logical line stands in its source. */
export function positionAt(line: Line, offset: number): Position {
  let found: Segment | undefined;
  for (const segment of line.segments) {
    if (segment.at > offset) break;
    found = segment;
  }
  if (found === undefined) return { file: line.file, line: line.line, column: line.indent + 1 };
  return { file: line.file, line: found.line, column: found.column + offset - found.at };
}

/** The end of a line without the colon that may close it (2.x), or that people bring from Python (1.0). */
export function withoutColon(line: Line): number {
  return line.text.endsWith(':') ? line.text.length - 1 : line.text.length;
}

/** A quote right after a word character is an apostrophe (`can't`), not the start of a string. */
export function opensString(text: string, at: number): boolean {
  const character = text[at];
  if (character === '"') return true;
  return character === "'" && (at === 0 || !isWordCharacter(text.charCodeAt(at - 1)));
}

/** Letters, digits and marks of any script, and underscore; half of a character beyond 16 bits counts as one of them. */
export function isWordCharacter(code: number): boolean {
  if (code <= 127) {
    return (code >= 48 && code <= 57) || (code >= 65 && code <= 90) || code === 95 || (code >= 97 && code <= 122);
  }
  return (code >= 0xd800 && code <= 0xdfff) || /[\p{L}\p{N}\p{M}]/u.test(String.fromCharCode(code));
}
