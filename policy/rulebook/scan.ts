import type { Line, Version } from './line.ts';
import type { Position, Problems } from './problem.ts';
import { Scanner } from './scanner.ts';

/** A rulebook is read whole and by people: anything larger is a mistake or an attack. */
export const MAX_BYTES: number = 1024 * 1024;
export const MAX_LINES = 10_000;

/** The version that a text is written in: the first line at column 0 that only one of them can hold. */
export function detectVersion(text: string): Version {
  for (const row of withoutMark(text).split('\n')) {
    if (/^(define|def)\b/.test(row)) return '1.0';
    if (/^(flow\b|@)/.test(row)) return '2.x';
  }
  return '1.0';
}

/**
 * Splits a source into logical lines.
 * @param file the name to report positions under
 * @param text the whole source; a byte order mark and CRLF line ends are accepted
 */
export function scanLines(file: string, text: string, version: Version, problems: Problems): readonly Line[] {
  const start: Position = { file, line: 1, column: 1 };
  if (text.length > MAX_BYTES || new TextEncoder().encode(text).length > MAX_BYTES) {
    problems.error('too_large', start, 'a rulebook file may hold 1 MiB at most; split it');
    return [];
  }
  const rows = withoutMark(text).split('\n');
  if (rows.length > MAX_LINES + 1 || (rows.length === MAX_LINES + 1 && rows[MAX_LINES] !== '')) {
    problems.error('too_many_lines', start, `a rulebook file may hold ${MAX_LINES} lines at most; split it`);
    return [];
  }
  const clean: string[] = [];
  for (const [index, row] of rows.entries()) {
    const line = row.endsWith('\r') ? row.slice(0, -1) : row;
    // Those that turn the direction of writing too, in texts and comments as well: they show code as what it is not.
    // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
    const control = line.search(/[\u0000-\u0008\u000A-\u001F\u007F\u2028\u2029\u0085\u202A-\u202E\u2066-\u2069]/);
    if (control >= 0) {
      problems.error(
        'control_character',
        { file, line: index + 1, column: control + 1 },
        'a control character, which editors show as nothing or as a new line; delete it',
      );
      return [];
    }
    clean.push(line);
  }
  return new Scanner(file, clean, version, problems).scan();
}

function withoutMark(text: string): string {
  return text.startsWith('\uFEFF') ? text.slice(1) : text;
}
