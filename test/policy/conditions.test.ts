import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { compileConditions } from '../../policy/conditions/compile.ts';
import type { ConditionSource, FieldSource, ToolAnswer } from '../../policy/conditions/condition.ts';
import { canonicalize } from '../../receipts/canonical.ts';
import { parseJson } from '../../receipts/json.ts';
import type { JsonObject } from '../../receipts/json-value.ts';

interface Case {
  readonly title: string;
  readonly conditions: readonly ConditionSource[];
  readonly arguments: JsonObject;
  readonly answers?: readonly ToolAnswer[];
  readonly expect: 'holds' | 'failed' | 'unknown';
  readonly types?: readonly string[];
}

// Read with the project's own reader, which keeps integers of 19 digits.
const file = new URL('../vectors/conditions/conditions.json', import.meta.url);
const { cases } = parseJson(readFileSync(file)) as unknown as { readonly cases: readonly Case[] };

function resolve(from: string): FieldSource {
  const dot = from.indexOf('.');
  return { tool: `shop/${from.slice(0, dot)}`, field: from.slice(dot + 1) };
}

test('every condition of the table stands as it says', async (t) => {
  assert.ok(cases.length >= 150, `${cases.length} cases`);
  for (const one of cases) {
    await t.test(one.title, () => {
      const compiled = compileConditions(one.conditions, resolve);
      const judged = compiled.judge(one.arguments, { arguments: one.arguments, answers: one.answers ?? [] });
      assert.equal(judged.verdict, one.expect);
      if (judged.verdict !== 'holds' && one.types !== undefined) assert.deepEqual(judged.detail['types'], one.types);
    });
  }
});

test('a detail names the condition, the types and the reason, and never a value', () => {
  const secret = 'a-secret-of-the-customer';
  const compiled = compileConditions(
    [{ field: 'zip', one_of: ['94110'], because: 'We deliver there alone.' }],
    resolve,
  );
  const args = { zip: secret };
  const judged = compiled.judge(args, { arguments: args, answers: [] });
  assert.deepEqual(judged, {
    verdict: 'failed',
    detail: { condition: 'zip one_of', types: ['text', 'list'], because: 'We deliver there alone.' },
  });
  assert.ok(!canonicalize(judged.detail).includes(secret));
});

test('a detail names where a value is read from', () => {
  const compiled = compileConditions(
    [{ field: 'quantity', at_most: { from: 'check_stock.in_stock', same: 'sku' } }],
    resolve,
  );
  const judged = compiled.judge({ quantity: 1 }, { arguments: { quantity: 1 }, answers: [] });
  assert.deepEqual(judged, {
    verdict: 'unknown',
    detail: {
      condition: 'quantity at_most {from: check_stock.in_stock, same: sku}',
      types: ['number', 'missing'],
    },
  });
});

test('what cannot be compiled is a fault and never a condition that holds', () => {
  const bad: readonly ConditionSource[] = [
    {},
    { field: 'v' },
    { is: 5 },
    { field: 'v', is: 5, is_not: 6 },
    { field: 'a..b', is: 5 },
    { field: 'a[0]', is: 5 },
    { field: 'a[', is: 5 },
    { field: '', is: 5 },
    { field: 'v', is: {} },
    { total: 'a.[]', is: 5 },
  ];
  for (const condition of bad) {
    assert.throws(
      () => compileConditions([condition], resolve),
      { code: 'condition_form' },
      canonicalize(condition as JsonObject),
    );
  }
  assert.throws(() => compileConditions([{ field: 'v', is: { from: 'no.field' } }], () => undefined), {
    code: 'condition_form',
  });
});
