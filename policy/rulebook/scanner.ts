import type { Line, Segment, Version } from './line.ts';
import { opensString } from './line.ts';
import type { Position, Problems } from './problem.ts';

/** Seen as nothing, or as the blank that it is not: a name with one in it is another name. */
const UNSEEN = /[\p{Default_Ignorable_Code_Point}\p{Cf}\p{Zs}]/u;

const OPEN = '([{';
const CLOSE = ')]}';

/** Reads the rows of a source into logical lines. */
export class Scanner {
  readonly #file: string;
  readonly #rows: readonly string[];
  readonly #version: Version;
  readonly #problems: Problems;
  readonly #lines: Line[] = [];
  #row = 0;
  #indentCharacter = '';

  constructor(file: string, rows: readonly string[], version: Version, problems: Problems) {
    this.#file = file;
    this.#rows = rows;
    this.#version = version;
    this.#problems = problems;
  }

  scan(): readonly Line[] {
    while (this.#row < this.#rows.length) {
      const line = this.#logicalLine();
      if (line !== undefined) this.#lines.push(line);
    }
    return this.#lines;
  }

  #at(column: number): Position {
    return { file: this.#file, line: this.#row + 1, column: column + 1 };
  }

  /** Reads one logical line, which may span several source lines; the row moves on by at least one. */
  #logicalLine(): Line | undefined {
    const first = this.#row;
    const indent = this.#indentation(this.#rows[first] ?? '');
    const parts: string[] = [];
    const segments: Segment[] = [];
    let length = 0;
    let depth = 0;
    let opened: Position | undefined;
    for (;;) {
      const row = this.#rows[this.#row] ?? '';
      const from = this.#row === first ? indent : leadingBlanks(row);
      const line = this.#row + 1;
      const piece = this.#piece(from);
      this.#row += 1;
      if (depth === 0) opened = piece.opened;
      depth = Math.max(0, depth + piece.depth);
      const text = piece.text.trimEnd();
      const continued = text.endsWith('\\');
      const kept = continued ? text.slice(0, -1).trimEnd() : text;
      if (kept !== '') {
        if (parts.length > 0) {
          parts.push(' ');
          length += 1;
        }
        segments.push({ at: length, line, column: from + 1 });
        parts.push(kept);
        length += kept.length;
      }
      if (this.#row >= this.#rows.length || !(continued || this.#goesOn(kept, depth, parts.length > 0))) break;
    }
    if (this.#version === '2.x' && depth > 0 && opened !== undefined) {
      this.#problems.error(
        'bracket_unclosed',
        opened,
        'this bracket is never closed, so everything below it would be a part of this statement; close it',
      );
    }
    if (parts.length === 0) return undefined;
    return { file: this.#file, text: parts.join(''), indent, line: segments[0]?.line ?? first + 1, segments };
  }

  /** Whether the next source line belongs to the statement just read. */
  #goesOn(text: string, depth: number, begun: boolean): boolean {
    if (!begun) return false;
    if (this.#version === '2.x' && depth > 0) return true;
    if (endsInWord(text, 'or') && !text.startsWith('"')) return true;
    if (this.#version === '1.0') return false;
    if (endsInWord(text, 'and')) return true;
    // A following line that opens with `and` or `or` continues the group; `or when` is a branch of its own. Comments
    // and blank lines in between do not end it.
    for (let row = this.#row; row < this.#rows.length; row += 1) {
      const next = (this.#rows[row] ?? '').trimStart();
      if (next === '' || next.startsWith('#')) continue;
      const joins = startsWithWord(next, 'and') || (startsWithWord(next, 'or') && !/^or\s*when\b/.test(next));
      if (joins) this.#row = row;
      return joins;
    }
    return false;
  }

  /** The current row from `from` without its comment; a triple-quoted string takes the rows that it spans. */
  #piece(from: number): { text: string; depth: number; opened: Position | undefined } {
    let row = this.#rows[this.#row] ?? '';
    let at = from;
    let start = from;
    let kept = '';
    let depth = 0;
    // The bracket that is still open and that no other one encloses.
    let opened: Position | undefined;
    while (at < row.length) {
      const character = row[at] ?? '';
      if (character === '#') break;
      if (opensString(row, at)) {
        const triple = character.repeat(3);
        if (row.startsWith(triple, at)) {
          const opened = this.#at(at);
          const end = row.indexOf(triple, at + 3);
          if (end >= 0) {
            at = end + 3;
            continue;
          }
          kept += row.slice(start, at);
          const rest = [row.slice(at)];
          for (;;) {
            if (this.#row + 1 >= this.#rows.length) {
              this.#problems.error('string_unclosed', opened, `a text opened with ${triple} is never closed; close it`);
              return { text: kept, depth, opened };
            }
            this.#row += 1;
            row = this.#rows[this.#row] ?? '';
            const close = row.indexOf(triple);
            if (close >= 0) {
              rest.push(row.slice(0, close + 3));
              at = close + 3;
              start = at;
              break;
            }
            rest.push(row);
          }
          kept += rest.join('\n');
          continue;
        }
        const end = closingQuote(row, at);
        if (end < 0) {
          this.#problems.error(
            'string_unclosed',
            this.#at(at),
            `a text opened with ${character} is not closed on its line; close it, or escape the quote`,
          );
          return { text: kept + row.slice(start), depth: 0, opened: undefined };
        }
        at = end + 1;
        continue;
      }
      if (OPEN.includes(character)) {
        if (depth <= 0) opened = this.#at(at);
        depth += 1;
      } else if (CLOSE.includes(character)) {
        depth -= 1;
      } else if (character > '\u007F') {
        this.#refuseUnseen(row, at);
      }
      at += 1;
    }
    return { text: kept + row.slice(start, at), depth, opened };
  }

  #refuseUnseen(row: string, at: number): void {
    const code = row.codePointAt(at) ?? 0;
    if (!UNSEEN.test(String.fromCodePoint(code))) return;
    const name = `U+${code.toString(16).toUpperCase().padStart(4, '0')}`;
    this.#problems.error(
      'control_character',
      this.#at(at),
      `a character that editors show as nothing or as a blank (${name}); delete it, or type a blank`,
    );
  }

  #indentation(row: string): number {
    const length = leadingBlanks(row);
    if (length === row.length || row[length] === '#') return length;
    for (let at = 0; at < length; at += 1) {
      const character = row[at] ?? '';
      if (this.#indentCharacter === '') this.#indentCharacter = character;
      if (character !== this.#indentCharacter) {
        this.#problems.error(
          'indent_mixed',
          this.#at(at),
          'this file indents with both tabs and spaces, so its blocks cannot be told apart; use spaces alone',
        );
        break;
      }
    }
    return length;
  }
}

function leadingBlanks(row: string): number {
  let at = 0;
  while (row[at] === ' ' || row[at] === '\t') at += 1;
  return at;
}

function closingQuote(row: string, open: number): number {
  const quote = row[open];
  for (let at = open + 1; at < row.length; at += 1) {
    if (row[at] === '\\') at += 1;
    else if (row[at] === quote) return at;
  }
  return -1;
}

function endsInWord(text: string, word: string): boolean {
  if (!text.endsWith(word)) return false;
  const before = text.length - word.length - 1;
  return before >= 0 && (text[before] === ' ' || text[before] === '\t' || text[before] === ')');
}

function startsWithWord(text: string, word: string): boolean {
  if (!text.startsWith(word)) return false;
  const after = text[word.length];
  return after === ' ' || after === '\t';
}
