import type { Node, Pair, YAMLMap } from 'yaml';
import { isMap, isScalar, isSeq } from 'yaml';
import { didYouMean, quoted } from '../../policy/rulebook/nearest.ts';
import type { Position, Problem } from '../../policy/rulebook/problem.ts';
import { MAX_LINES } from '../../policy/rulebook/scan.ts';
import type { SheetRow } from '../../policy/rulebook/sheet.ts';
import type { JsonValue } from '../../receipts/json-value.ts';
import type { ReadSheet } from './sheet-table.ts';
import { COLUMNS, type Column, columnOf, MAX_PROBLEMS, sheetName, sheetProblem } from './sheet-table.ts';
import type { YamlText } from './yaml-text.ts';
import { parseYamlText, placeOf, YamlTextError, yamlValue } from './yaml-text.ts';

/** Reads a rule sheet from the text of a YAML file: a list of rows, or a map whose `rules` is one. */
export function readYamlSheet(file: string, text: string): ReadSheet {
  if (text.split('\n').length > MAX_LINES + 1) {
    const message = `a rule sheet may hold ${MAX_LINES} lines at most; split it`;
    return { sheet: undefined, problems: [sheetProblem('too_many_lines', { file, line: 1, column: 1 }, message)] };
  }
  try {
    return readRows(file, parseYamlText(text));
  } catch (error) {
    if (!(error instanceof YamlTextError)) throw error;
    const place = { file, line: error.line, column: error.column };
    return {
      sheet: undefined,
      problems: [sheetProblem('sheet_format', place, `this cannot be read as YAML: ${error.message}`)],
    };
  }
}

function readRows(file: string, text: YamlText): ReadSheet {
  const place = (offset: number): Position => ({ file, ...placeOf(text.counter, offset) });
  const problems: Problem[] = [];
  const top = text.document.contents;
  const list = isMap(top) ? top.get('rules', true) : top;
  for (const pair of isMap(top) && isSeq(list) ? top.items : []) {
    if (keyOf(pair) === 'rules') continue;
    const at = place(isNodeLike(pair.key) ? (pair.key.range?.[0] ?? 0) : 0);
    const message = `${quoted(keyOf(pair))} stands beside \`rules\`, where nothing is read; delete it`;
    problems.push(sheetProblem('sheet_format', at, message));
  }
  if (!isSeq(list)) {
    const message = 'a rule sheet is a list of rows, each with `tool` and `decision`, or has one under `rules`';
    return { sheet: undefined, problems: [sheetProblem('sheet_format', { file, line: 1, column: 1 }, message)] };
  }
  const rows: SheetRow[] = [];
  const context = { place, problems, toJson: (node: Node): JsonValue => yamlValue(node, text) };
  for (const item of list.items) {
    if (problems.length >= MAX_PROBLEMS) break;
    if (isMap(item)) rows.push(readRow(item, context));
    else {
      const at = isNodeLike(item) ? place(item.range?.[0] ?? 0) : place(0);
      problems.push(sheetProblem('sheet_format', at, 'a row is a map with `tool` and `decision`'));
    }
  }
  return problems.length > 0
    ? { sheet: undefined, problems }
    : { sheet: { file, name: sheetName(file), rows }, problems };
}

interface RowContext {
  readonly place: (offset: number) => Position;
  readonly problems: Problem[];
  readonly toJson: (node: Node) => JsonValue;
}

function readRow(map: YAMLMap, context: RowContext): SheetRow {
  const row: { -readonly [Key in keyof SheetRow]: SheetRow[Key] } = { at: context.place(map.range?.[0] ?? 0) };
  const seen = new Set<Column>();
  for (const pair of map.items) {
    const heading = keyOf(pair);
    const at = context.place(isNodeLike(pair.key) ? (pair.key.range?.[0] ?? 0) : 0);
    const column = columnOf(heading);
    const value = pair.value;
    // Two keys of YAML, one column here: `when` and `When`.
    if (column !== undefined && seen.has(column)) {
      context.problems.push(sheetProblem('header_cell', at, `\`${column}\` stands twice in this row; delete one`));
      continue;
    }
    if (column !== undefined) seen.add(column);
    if (column === undefined) {
      context.problems.push(
        sheetProblem(
          'header_cell',
          at,
          `${quoted(heading)} is no column of a rule sheet; the columns are ${COLUMNS.join(', ')}${didYouMean(heading.toLowerCase(), COLUMNS)}`,
        ),
      );
    } else if (column === 'check') {
      if (isMap(value) || isSeq(value)) {
        row.check = { ...context.place(value.range?.[0] ?? 0), value: context.toJson(value) };
      } else {
        context.problems.push(
          sheetProblem('check_cell', at, '`check` holds a condition, as in `{field: amount, at_most: 100}`'),
        );
      }
    } else if (isScalar(value)) {
      // As written: `when: true` and `rule: 2024` are texts here, not a boolean and a number.
      const text = typeof value.value === 'string' ? value.value : (value.source ?? '');
      row[column] = { ...context.place(value.range?.[0] ?? 0), text };
    } else if (value !== null) {
      context.problems.push(
        sheetProblem('sheet_format', at, `\`${column}\` holds one value, in quotes where it has a special character`),
      );
    }
  }
  return row;
}

function keyOf(pair: Pair): string {
  return isScalar(pair.key) ? String(pair.key.value) : '';
}

function isNodeLike(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && 'range' in value;
}
