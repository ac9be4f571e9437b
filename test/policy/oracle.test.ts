import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { STEPS } from '../../policy/check.ts';
import { answer, readCases } from './decision-vectors.ts';
import { askEveryRow, labelsOfCall } from './oracle.ts';
import { RANDOM_WORLD } from './random-world.ts';
import type { World } from './world.ts';

/** Asserts that the check and the oracle say the same of a world, and gives the row that answered. */
function assertSame(world: World): string {
  const verdict = answer(world);
  const [first] = askEveryRow(world);
  assert.ok(first !== undefined, 'the oracle has no answer');
  const [step, { decision, reasons, told = {}, waived = false }] = first;
  assert.deepEqual([verdict.decision, verdict.step, verdict.reasons], [decision, step, reasons]);
  const detail = verdict.detail ?? {};
  const names = decision === 'confirm' ? ['confirmation'] : Object.keys(told);
  for (const name of names) assert.deepEqual(detail[name], told[name], name);
  assert.deepEqual(verdict.waived, waived ? ['write'] : undefined);
  if (verdict.tool !== undefined) assert.deepEqual(verdict.labels, labelsOfCall(world));
  return step;
}

test('the check equals a naive one that asks every row and takes the first answer', () => {
  fc.assert(
    fc.property(RANDOM_WORLD, (world) => void assertSame(world)),
    { numRuns: 2_000 },
  );
});

test('it does so in worlds in which every row comes to answer', () => {
  const met = new Map<string, number>();
  fc.assert(
    fc.property(RANDOM_WORLD, (world) => {
      const step = assertSame(world);
      met.set(step, (met.get(step) ?? 0) + 1);
    }),
    // The same worlds each time: that every row answers is asked of them, and chance must not decide that.
    { numRuns: 4_000, seed: 20 },
  );
  for (const { name } of STEPS)
    assert.ok((met.get(name) ?? 0) >= 5, `\`${name}\` answered ${met.get(name) ?? 0} times`);
});

/** Worlds that use what the oracle does not know: languages, real destinations, nested fields, what a request cannot carry. */
const BEYOND = /Portuguese|language|destination|subject|mail|customer|minimum|carry|named-as|customer\.id|a result$/;

test('the oracle answers the vectors, too', () => {
  const cases = readCases().filter(({ id }) => !BEYOND.test(id));
  assert.ok(cases.length > 150);
  for (const { id, world } of cases) {
    try {
      assertSame(world);
    } catch (error) {
      throw new Error(`${id}: ${String(error)}`, { cause: error });
    }
  }
});
