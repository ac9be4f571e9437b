import type { SheetData } from 'read-excel-file/node';
import { readSheet } from 'read-excel-file/node';
import type { Problem } from '../../policy/rulebook/problem.ts';
import type { SheetCell } from '../../policy/rulebook/sheet.ts';
import type { ReadSheet } from './sheet-table.ts';
import { sheetOfTable, sheetProblem } from './sheet-table.ts';
import { workbookProblems } from './workbook-faults.ts';

/** What a workbook of at most 1 MiB may unpack to. */
const MAX_UNPACKED_BYTES: number = 32 * 1024 * 1024;

const CENTRAL_ENTRY = 0x02014b50;

/**
 * Reads a rule sheet from the bytes of an XLSX workbook: its first sheet, headings in the first row. Places are given as
 * row and column of the sheet, both from 1.
 */
export async function readXlsxSheet(file: string, bytes: Buffer): Promise<ReadSheet> {
  const at = { file, line: 1, column: 1 };
  if (unpackedBytes(bytes) > MAX_UNPACKED_BYTES) {
    return {
      sheet: undefined,
      problems: [
        sheetProblem('too_large', at, 'this workbook unpacks to more than 32 MiB; keep the rules alone in it'),
      ],
    };
  }
  let table: SheetData;
  let told: readonly Problem[];
  try {
    table = await readSheet(bytes);
    told = workbookProblems(file, bytes);
  } catch (error) {
    const why = error instanceof Error ? error.message : 'it cannot be read';
    return { sheet: undefined, problems: [sheetProblem('sheet_format', at, `this is no XLSX workbook: ${why}`)] };
  }
  if (told.some(({ severity }) => severity === 'error')) return { sheet: undefined, problems: told };
  const rows = table.map((cells, row) =>
    cells.map((cell, column): SheetCell => ({ file, line: row + 1, column: column + 1, text: cellText(cell) })),
  );
  const read = sheetOfTable(file, rows);
  return { ...read, problems: [...told, ...read.problems] };
}

function cellText(cell: unknown): string {
  if (cell instanceof Date) return cell.toISOString().slice(0, 10);
  if (typeof cell === 'string') return cell;
  return typeof cell === 'number' || typeof cell === 'boolean' ? String(cell) : '';
}

/** The size that the archive's own directory says its parts unpack to. */
function unpackedBytes(bytes: Buffer): number {
  let total = 0;
  let at = 0;
  for (;;) {
    at = bytes.indexOf('PK\u0001\u0002', at, 'latin1');
    if (at < 0 || at + 46 > bytes.length) return total;
    if (bytes.readUInt32LE(at) === CENTRAL_ENTRY) total += bytes.readUInt32LE(at + 24);
    at += 4;
  }
}
