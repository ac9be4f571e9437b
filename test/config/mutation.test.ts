import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import fc from 'fast-check';
import { finishDraft } from '../../gateway/catalogue/load-gateway.ts';
import { draftConfigText } from '../../gateway/config/load.ts';
import { hasErrors } from '../../gateway/config/problem.ts';
import { catalogueDeps } from '../../gateway/load/catalogue-deps.ts';
import { ENV, vector } from './places.ts';

const PATH = vector('good/every-word.yaml');
const LINES = readFileSync(PATH, 'utf8').split('\n');
const PIECES = [
  '{}',
  '[]',
  '~',
  '7',
  '-1',
  '1.5',
  '""',
  'x',
  '"*"',
  '[x]',
  '{x: 1}',
  '{from: a.b}',
  'true',
  '*a',
  '&a x',
  ': ',
  '{',
  ']',
];

test('a configuration with anything in place of a line or a value is told faults, never thrown at', async () => {
  const lineOut = fc.nat(LINES.length - 1).map((at) => LINES.toSpliced(at, 1));
  const valueSwapped = fc
    .tuple(fc.nat(LINES.length - 1), fc.nat(20), fc.constantFrom(...PIECES))
    .map(([at, nth, piece]) => {
      const line = LINES[at] ?? '';
      let seen = -1;
      return LINES.with(
        at,
        line.replace(/(?<=: )("[^"]*"|\[[^[\]]*\]|\{[^{}]*\}|[^\s,{}[\]]+)/g, (value) => {
          seen += 1;
          return seen === nth % 8 ? piece : value;
        }),
      );
    });
  await fc.assert(
    fc.asyncProperty(fc.oneof(lineOut, valueSwapped), async (lines) => {
      const draft = draftConfigText(PATH, lines.join('\n'), { env: ENV, notYet: {} });
      const { loaded, problems } = await finishDraft(draft, catalogueDeps());
      assert.equal(loaded === undefined, hasErrors(problems));
      for (const { line, column, message } of problems) {
        assert.ok(line >= 1 && line <= lines.length + 1 && column >= 1, message);
        assert.doesNotMatch(message, /undefined|\[object/);
      }
    }),
    { numRuns: 150 },
  );
});
