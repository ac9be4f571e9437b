import type { Node, Pair, YAMLMap } from 'yaml';
import { isMap, isScalar, isSeq, LineCounter, parseDocument } from 'yaml';
import { didYouMean, quoted } from '../../policy/rulebook/nearest.ts';
import type { Position, Problem } from '../../policy/rulebook/problem.ts';
import type { SheetRow } from '../../policy/rulebook/sheet.ts';
import type { JsonValue } from '../../receipts/json-value.ts';
import type { ReadSheet } from './sheet-table.ts';
import { COLUMNS, columnOf, sheetName, sheetProblem } from './sheet-table.ts';

/** Reads a rule sheet from the text of a YAML file: a list of rows, or a map whose `rules` is one. */
export function readYamlSheet(file: string, text: string): ReadSheet {
  const counter = new LineCounter();
  const document = parseDocument(text, { lineCounter: counter, uniqueKeys: true });
  const place = (offset: number): Position => {
    const { line, col } = counter.linePos(offset);
    return { file, line: Math.max(1, line), column: Math.max(1, col) };
  };
  const problems: Problem[] = document.errors.map((error) =>
    sheetProblem('sheet_format', place(error.pos[0]), `this is no YAML: ${error.message.split('\n')[0] ?? error.code}`),
  );
  if (problems.length > 0) return { sheet: undefined, problems };
  const top = document.contents;
  const list = isMap(top) ? top.get('rules', true) : top;
  if (!isSeq(list)) {
    const message = 'a rule sheet is a list of rows, each with `tool` and `decision`, or has one under `rules`';
    return { sheet: undefined, problems: [sheetProblem('sheet_format', { file, line: 1, column: 1 }, message)] };
  }
  const rows: SheetRow[] = [];
  const context = { place, problems, toJson: (node: Node): JsonValue => node.toJS(document, { maxAliasCount: 10 }) };
  for (const item of list.items) {
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
  for (const pair of map.items) {
    const heading = keyOf(pair);
    const at = context.place(isNodeLike(pair.key) ? (pair.key.range?.[0] ?? 0) : 0);
    const column = columnOf(heading);
    const value = pair.value;
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
