import { CsvError } from 'csv-parse';
import { parse } from 'csv-parse/sync';
import type { SheetCell } from '../../policy/rulebook/sheet.ts';
import type { ReadSheet } from './sheet-table.ts';
import { sheetOfTable, sheetProblem } from './sheet-table.ts';

const DELIMITERS = [',', ';', '\t'] as const;

/** Reads a rule sheet from the text of a CSV file; the headings tell whether comma, semicolon or tab separates. */
export function readCsvSheet(file: string, written: string): ReadSheet {
  // The parser gives the text of a record without half of its line end, where that is of two characters.
  const text = written.replaceAll(/\r\n?/g, '\n');
  const delimiter = delimiterOf(text);
  let records: readonly unknown[];
  try {
    records = parse(text, { bom: true, delimiter, raw: true, relax_column_count: true, skip_empty_lines: false });
  } catch (error) {
    if (!(error instanceof CsvError)) throw error;
    const line = typeof error['lines'] === 'number' ? error['lines'] : 1;
    return {
      sheet: undefined,
      problems: [sheetProblem('sheet_format', { file, line, column: 1 }, `this is no CSV table: ${error.message}`)],
    };
  }
  const rows: SheetCell[][] = [];
  let line = 1;
  for (const parsed of records) {
    if (!isRawRecord(parsed)) continue;
    const { raw, record } = parsed;
    const places = cellPlaces(raw, delimiter, line);
    rows.push(
      record.map((cell, index) => ({
        file,
        text: cell,
        line: places[index]?.line ?? line,
        column: places[index]?.column ?? 1,
      })),
    );
    line += newlines(raw);
  }
  return sheetOfTable(file, rows);
}

/** A record with the text that it was read from, which tells where its cells stand. */
interface RawRecord {
  readonly raw: string;
  readonly record: readonly string[];
}

function isRawRecord(value: unknown): value is RawRecord {
  return (
    typeof value === 'object' && value !== null && 'raw' in value && typeof value.raw === 'string' && 'record' in value
  );
}

function delimiterOf(text: string): string {
  const end = text.indexOf('\n');
  const headings = end < 0 ? text : text.slice(0, end);
  let best: string = ',';
  for (const delimiter of DELIMITERS) {
    if (headings.split(delimiter).length > headings.split(best).length) best = delimiter;
  }
  return best;
}

function newlines(text: string): number {
  return text.split('\n').length - 1;
}

/** Where each cell of a record starts; a quoted cell may span lines. */
function cellPlaces(raw: string, delimiter: string, firstLine: number): readonly { line: number; column: number }[] {
  const places = [{ line: firstLine, column: 1 }];
  let line = firstLine;
  let lineStart = 0;
  let inQuotes = false;
  for (let at = 0; at < raw.length; at += 1) {
    const character = raw[at];
    if (character === '"') inQuotes = !inQuotes;
    else if (character === '\n') {
      line += 1;
      lineStart = at + 1;
    } else if (character === delimiter && !inQuotes) places.push({ line, column: at + 2 - lineStart });
  }
  return places;
}
