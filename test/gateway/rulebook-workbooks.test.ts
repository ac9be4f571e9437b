import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { compileRulebookFiles } from '../../gateway/rulebook/load.ts';
import type { CompiledRulebook } from '../../policy/rulebook/compile.ts';
import { type RawCell, workbook } from './workbook.ts';

const HEADINGS = ['tool', 'when', 'decision'];

let folder = '';
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'toolgate-workbooks-'));
});
after(() => rm(folder, { recursive: true, force: true }));

async function compiled(bytes: Buffer): Promise<CompiledRulebook> {
  await writeFile(join(folder, 'rules.xlsx'), bytes);
  return compileRulebookFiles(['rules.xlsx'], folder);
}

/** A sheet whose one rule has this cell as its `when`. */
function when(cell: string | RawCell): Buffer {
  return workbook([HEADINGS, ['t', cell, 'allow']]);
}

const RULE = [HEADINGS, ['t', '$paid', 'allow']];
const TWO = '<sheet name="notes" sheetId="2" r:id="rId1"/>';

// What a workbook shows as a condition, and its values as an empty cell, would be a rule that always holds.
const REFUSED: readonly [string, Buffer, number, number, string][] = [
  ['a formula that was never worked out', when({ xml: '<f>A1</f>' }), 2, 2, 'a formula'],
  ['a formula with an empty result', when({ type: 'str', xml: '<f>A1</f><v></v>' }), 2, 2, 'a formula'],
  ['a text formula that was never worked out', when({ type: 'str', xml: '<f>A1</f>' }), 2, 2, 'a formula'],
  ['an error', when({ type: 'e', xml: '<f>Z9</f><v>#REF!</v>' }), 2, 2, 'an error'],
  [
    'merged cells',
    workbook(RULE, { behind: '<mergeCells count="1"><mergeCell ref="B2:B3"/></mergeCells>' }),
    2,
    2,
    'unmerge',
  ],
  [
    'a hidden first sheet',
    workbook(RULE, { sheets: `<sheet name="old" sheetId="1" state="hidden" r:id="rId1"/>${TWO}` }),
    1,
    1,
    'hidden',
  ],
];

const WARNED: readonly [string, Buffer, number, string][] = [
  [
    'a second sheet',
    workbook(RULE, { sheets: `<sheet name="rules" sheetId="1" r:id="rId1"/>${TWO}` }),
    1,
    'only the first sheet, `rules`',
  ],
  ['a hidden row', workbook(RULE, { rowAttributes: ' hidden="1"' }), 2, 'hidden'],
];

describe('a workbook that shows another rule than its values make', () => {
  for (const [title, bytes, line, column, says] of REFUSED) {
    test(`is refused: ${title}`, async () => {
      const { record, problems } = await compiled(bytes);
      assert.equal(record, undefined);
      const [first] = problems;
      assert.deepEqual([first?.code, first?.line, first?.column], ['sheet_format', line, column]);
      assert.ok(first?.message.includes(says), first?.message);
    });
  }
  for (const [title, bytes, line, says] of WARNED) {
    test(`is warned of: ${title}`, async () => {
      const { record, problems } = await compiled(bytes);
      assert.ok(record);
      assert.deepEqual(
        problems.map(({ severity, code, line: at }) => [severity, code, at]),
        [['warning', 'sheet_format', line]],
      );
      assert.ok(problems[0]?.message.includes(says), problems[0]?.message);
    });
  }
  test('a formula with a result is read as that', async () => {
    const { record, problems } = await compiled(when({ type: 'str', xml: '<f>A1</f><v>$paid</v>' }));
    assert.deepEqual(problems, []);
    assert.ok(JSON.stringify(record).includes('{"fact":"paid"}'));
  });
  test('a number and a truth value are read as they are', async () => {
    assert.deepEqual((await compiled(when({ type: 'b', xml: '<v>0</v>' }))).problems, []);
    assert.deepEqual((await compiled(when({ xml: '<v>0.1</v>' }))).problems, []);
  });
});
