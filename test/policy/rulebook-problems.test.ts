import assert from 'node:assert/strict';
import { test } from 'node:test';
import { compileRulebook } from '../../policy/rulebook/compile.ts';
import type { SheetRow } from '../../policy/rulebook/sheet.ts';

// More warnings than are listed: a comparison of a fact is warned of.
const WARNINGS = Array.from({ length: 250 }, (_, at) => `flow f${at}\n  if $a > ${at}\n    await TAction()\n`).join('');

test('an error that is found after more warnings than are listed is told, and there is no record', () => {
  const text = `${WARNINGS}flow last\n  await no such flow\n  await TAction()\n`;
  const { record, problems } = compileRulebook([{ file: 'policy.co', text }]);
  assert.equal(record, undefined);
  assert.equal(problems.length, 201);
  const errors = problems.filter(({ severity }) => severity === 'error').map(({ code, line }) => [code, line]);
  assert.deepEqual(errors, [
    ['too_many_problems', 602],
    ['unknown_flow', 752],
  ]);
});

test('more warnings than are listed are no error', () => {
  const { record, problems } = compileRulebook([{ file: 'policy.co', text: WARNINGS }]);
  assert.ok(record);
  assert.equal(problems.length, 201);
  assert.deepEqual(new Set(problems.map(({ severity }) => severity)), new Set(['warning']));
});

test('a row of a sheet that cannot be read is told behind any number of warnings, and never left out', () => {
  const row = (line: number, decision: string): SheetRow => {
    const at = { file: 'rules.csv', line, column: 1 };
    return { at, tool: { ...at, text: 't' }, when: { ...at, text: '$a > 1' }, decision: { ...at, text: decision } };
  };
  const rows = Array.from({ length: 250 }, (_, at) => row(at + 2, 'allow'));
  const sheets = [{ file: 'rules.csv', name: 'rules', rows: [...rows, row(252, 'refuze')] }];
  const { record, problems } = compileRulebook([], { sheets });
  assert.equal(record, undefined);
  assert.partialDeepStrictEqual(problems.at(-1), { severity: 'error', code: 'decision_cell', line: 252 });
});
