import { strFromU8, unzipSync } from 'fflate';
import type { Problem } from '../../policy/rulebook/problem.ts';
import { sheetProblem, sheetWarning } from './sheet-table.ts';

/** What a workbook shows and a table of its values does not: an empty text there may stand for something here. */
interface Workbook {
  /** The path of the first sheet's part, and what its `<sheet>` says. */
  readonly path: string;
  readonly hidden: boolean;
  readonly name: string;
  readonly sheets: number;
}

/**
 * What in a workbook would be read as another rule than the one that is seen: a formula without a result and a cell with an
 * error, which are read as empty and so as "always"; merged cells, of which all but the first are empty; a hidden first
 * sheet. Warns of further sheets and of hidden rows.
 */
export function workbookProblems(file: string, bytes: Uint8Array): readonly Problem[] {
  const at = { file, line: 1, column: 1 };
  const workbook = readWorkbook(bytes);
  const part = workbook === undefined ? undefined : readPart(bytes, workbook.path);
  if (workbook === undefined || part === undefined) {
    return [sheetProblem('sheet_format', at, 'this is no XLSX workbook: its first sheet is not where it should be')];
  }
  const problems: Problem[] = [];
  if (workbook.hidden) {
    const message = `the first sheet, \`${workbook.name}\`, is hidden, and it is the one that is read; show it or delete it`;
    problems.push(sheetProblem('sheet_format', at, message));
  } else if (workbook.sheets > 1) {
    const message = `only the first sheet, \`${workbook.name}\`, is read; what stands in the others rules nothing`;
    problems.push(sheetWarning('sheet_format', at, message));
  }
  problems.push(...sheetFaults(file, part));
  return problems;
}

function readPart(bytes: Uint8Array, path: string): string | undefined {
  const parts = unzipSync(bytes, { filter: ({ name }) => name === path });
  const part = parts[path];
  return part === undefined ? undefined : strFromU8(part);
}

function readWorkbook(bytes: Uint8Array): Workbook | undefined {
  const tags = [...tagsOf(readPart(bytes, 'xl/workbook.xml') ?? '')].filter(({ name }) => name === 'sheet');
  const [first] = tags;
  const id = first === undefined ? undefined : /\s(?:\w+:)?id="([^"]*)"/.exec(first.attributes)?.[1];
  if (first === undefined || id === undefined) return undefined;
  for (const tag of tagsOf(readPart(bytes, 'xl/_rels/workbook.xml.rels') ?? '')) {
    if (tag.name !== 'Relationship' || attribute(tag, 'Id') !== id) continue;
    const target = attribute(tag, 'Target') ?? '';
    const state = attribute(first, 'state');
    return {
      path: target.startsWith('/') ? target.slice(1) : `xl/${target}`,
      hidden: state === 'hidden' || state === 'veryHidden',
      name: attribute(first, 'name') ?? '',
      sheets: tags.length,
    };
  }
  return undefined;
}

interface Tag {
  /** Without its prefix. */
  readonly name: string;
  readonly closes: boolean;
  /** The tag has no content. */
  readonly empty: boolean;
  readonly attributes: string;
  /** What follows the tag, up to the next one. */
  readonly text: string;
}

/** The tags of an XML text in order; in one pass, whatever the text is. */
function* tagsOf(xml: string): Generator<Tag> {
  for (const [, slash, name = '', attributes = '', text = ''] of xml.matchAll(
    /<(\/?)(?:\w+:)?(\w+)([^<>]*)>([^<]*)/g,
  )) {
    yield { name, closes: slash === '/', empty: attributes.endsWith('/'), attributes, text };
  }
}

function attribute(tag: Tag, name: string): string | undefined {
  return new RegExp(`\\s${name}="([^"]*)"`).exec(tag.attributes)?.[1];
}

function* sheetFaults(file: string, xml: string): Generator<Problem> {
  let place = { file, line: 1, column: 1 };
  let type: string | undefined;
  let formula = false;
  let value = '';
  let told = false;
  for (const tag of tagsOf(xml)) {
    if (tag.closes) {
      if (tag.name !== 'c') continue;
      if (type === 'e') yield sheetProblem('sheet_format', place, 'this cell holds an error; write the value');
      else if (formula && value === '') {
        const message = 'this cell holds a formula whose result is empty or was never worked out; write the value';
        yield sheetProblem('sheet_format', place, message);
      }
    } else if (tag.name === 'c') {
      place = { file, ...placeOf(attribute(tag, 'r') ?? '') };
      type = attribute(tag, 't');
      formula = false;
      value = '';
    } else if (tag.name === 'f') {
      formula = true;
    } else if (tag.name === 'v' && !tag.empty) {
      value = tag.text;
    } else if (tag.name === 'mergeCell') {
      const at = { file, ...placeOf(attribute(tag, 'ref') ?? '') };
      yield sheetProblem('sheet_format', at, 'of merged cells only the first has a value; unmerge them, and fill each');
    } else if (tag.name === 'row' && attribute(tag, 'hidden') === '1' && !told) {
      told = true;
      const line = Number(attribute(tag, 'r') ?? 1);
      yield sheetWarning('sheet_format', { file, line, column: 1 }, 'this row is hidden, and is a rule all the same');
    }
  }
}

/** Row and column of `B12`, from 1. */
function placeOf(reference: string): { readonly line: number; readonly column: number } {
  const [, letters = 'A', digits = '1'] = /^([A-Z]+)(\d+)/.exec(reference) ?? [];
  let column = 0;
  for (const letter of letters) column = column * 26 + letter.charCodeAt(0) - 64;
  return { line: Number(digits), column };
}
