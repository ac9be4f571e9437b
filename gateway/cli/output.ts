/**
 * Writes to standard output and resolves when that has taken it, so that a long answer does not pile up in memory, and
 * a reader that has gone is noticed. Where it cannot be written the program ends (`program.ts`).
 */
export function print(text: string): Promise<void> {
  return new Promise((resolve) => {
    process.stdout.write(text, (error) => {
      if (error === null || error === undefined) resolve();
    });
  });
}

/** One value as JSON, two spaces deep, for scripts and people alike. */
export function printJson(value: unknown): Promise<void> {
  return print(`${JSON.stringify(value, undefined, 2)}\n`);
}

/** Rows as columns that stand one under the other; the last column is not filled up. */
export function renderColumns(rows: readonly (readonly string[])[]): string {
  const widths: number[] = [];
  for (const row of rows) {
    for (const [i, cell] of row.entries()) widths[i] = Math.max(widths[i] ?? 0, cell.length);
  }
  return rows
    .map((row) => row.map((cell, i) => (i === row.length - 1 ? cell : cell.padEnd(widths[i] ?? 0))).join('  '))
    .map((line) => `${line.trimEnd()}\n`)
    .join('');
}

/** Names come from callers: what would move a terminal's cursor is shown as an escape. */
export function printable(text: string): string {
  let shown = '';
  for (const char of text) {
    const point = char.codePointAt(0) ?? 0;
    const control = point < 0x20 || (point >= 0x7f && point < 0xa0) || (point >= 0x202a && point <= 0x202e);
    shown += control ? `\\u${point.toString(16).padStart(4, '0')}` : char;
  }
  return shown;
}
