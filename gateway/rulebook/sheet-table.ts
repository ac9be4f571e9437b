import { isMap, isSeq } from 'yaml';
import { didYouMean, quoted } from '../../policy/rulebook/nearest.ts';
import type { Position, Problem, ProblemCode } from '../../policy/rulebook/problem.ts';
import type { RuleSheet, SheetCell, SheetCheck, SheetRow } from '../../policy/rulebook/sheet.ts';
import type { JsonValue } from '../../receipts/json-value.ts';
import { parseYamlText, YamlTextError, yamlValue } from './yaml-text.ts';

/** The columns that a rule sheet can have. */
export const COLUMNS = ['tool', 'when', 'check', 'decision', 'rule', 'because'] as const;

export type Column = (typeof COLUMNS)[number];

/** More faults than this are not listed: the same one stands in every row. */
export const MAX_PROBLEMS = 200;

/** A sheet as a reader gives it; there is none where its form is wrong. */
export interface ReadSheet {
  readonly sheet: RuleSheet | undefined;
  readonly problems: readonly Problem[];
}

/** A fault of a sheet's form. */
export function sheetProblem(code: ProblemCode, at: Position, message: string): Problem {
  return { severity: 'error', code, message, file: at.file, line: at.line, column: at.column };
}

/** Something of a sheet's form that is told and changes nothing. */
export function sheetWarning(code: ProblemCode, at: Position, message: string): Problem {
  return { ...sheetProblem(code, at, message), severity: 'warning' };
}

/** The sheet's name in decisions: the file's own, without folders and ending. */
export function sheetName(file: string): string {
  const base = file.slice(file.lastIndexOf('/') + 1);
  const dot = base.lastIndexOf('.');
  return dot > 0 ? base.slice(0, dot) : base;
}

/** The column that a heading names, whatever its case. */
export function columnOf(heading: string): Column | undefined {
  const name = heading.trim().toLowerCase();
  return COLUMNS.find((column) => column === name);
}

/**
 * Makes a sheet of a table whose first row holds the headings. Rows of empty cells are passed over.
 * @param rows cells with their places; the file is the same for all
 */
export function sheetOfTable(file: string, rows: readonly (readonly SheetCell[])[]): ReadSheet {
  const problems: Problem[] = [];
  const columns = readHeadings(file, rows[0] ?? [], problems);
  if (columns === undefined) return { sheet: undefined, problems };
  const read: SheetRow[] = [];
  for (const cells of rows.slice(1)) {
    if (problems.length >= MAX_PROBLEMS) break;
    const first = cells[0];
    if (first === undefined || cells.every((cell) => cell.text.trim() === '')) continue;
    const row: { -readonly [Key in keyof SheetRow]: SheetRow[Key] } = {
      at: { file, line: first.line, column: first.column },
    };
    for (const [index, cell] of cells.entries()) {
      const column = columns[index];
      if (cell.text.trim() === '') continue;
      if (column === undefined) {
        problems.push(
          sheetProblem(
            'header_cell',
            cell,
            `${quoted(cell.text.trim())} stands under no heading; give its column one of ${COLUMNS.join(', ')}`,
          ),
        );
      } else if (column === 'check') {
        const check = parseCheckCell(cell);
        if ('problem' in check) problems.push(check.problem);
        else row.check = check;
      } else {
        row[column] = cell;
      }
    }
    read.push(row);
  }
  return problems.length > 0
    ? { sheet: undefined, problems }
    : { sheet: { file, name: sheetName(file), rows: read }, problems };
}

function readHeadings(
  file: string,
  cells: readonly SheetCell[],
  problems: Problem[],
): readonly (Column | undefined)[] | undefined {
  const columns: (Column | undefined)[] = [];
  for (const cell of cells) {
    const column = columnOf(cell.text);
    if (column === undefined && cell.text.trim() !== '') {
      problems.push(
        sheetProblem(
          'header_cell',
          cell,
          `${quoted(cell.text.trim())} is no column of a rule sheet; the columns are ${COLUMNS.join(', ')}${didYouMean(cell.text.trim().toLowerCase(), COLUMNS)}`,
        ),
      );
    } else if (column !== undefined && columns.includes(column)) {
      problems.push(sheetProblem('header_cell', cell, `\`${column}\` stands in two columns; delete one`));
    }
    columns.push(column);
  }
  for (const needed of ['tool', 'decision'] as const) {
    if (!columns.includes(needed)) {
      problems.push(
        sheetProblem(
          'header_cell',
          cells[0] ?? { file, line: 1, column: 1 },
          `the first row has no \`${needed}\` column; a rule sheet starts with the headings ${COLUMNS.join(', ')}`,
        ),
      );
    }
  }
  return problems.length > 0 ? undefined : columns;
}

/** A `check` cell holds one condition, or a list of them, as YAML writes it in one line: `field: amount, at_most: 100`. */
function parseCheckCell(cell: SheetCell): SheetCheck | { readonly problem: Problem } {
  const text = cell.text.trim();
  const flow = text.startsWith('{') || text.startsWith('[') ? text : `{${text}}`;
  const fault = {
    problem: sheetProblem(
      'check_cell',
      cell,
      `${quoted(text)} is no condition; write it as \`field: amount, at_most: 100\``,
    ),
  };
  let value: JsonValue;
  try {
    const parsed = parseYamlText(flow);
    const { contents } = parsed.document;
    if (!isMap(contents) && !isSeq(contents)) return fault;
    value = yamlValue(contents, parsed);
  } catch (error) {
    if (error instanceof YamlTextError) return fault;
    throw error;
  }
  return { file: cell.file, line: cell.line, column: cell.column, value };
}
