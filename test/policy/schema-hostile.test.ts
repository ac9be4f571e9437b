import assert from 'node:assert/strict';
import { test } from 'node:test';
import { compileSchema } from '../../policy/schema/compile.ts';
import type { JsonObject, JsonValue } from '../../receipts/json-value.ts';
import { threadMs } from '../thread-time.ts';

/** Generous. Unbounded, these would take minutes or for ever. */
const BOUND_MS = 15_000;

function within(run: () => void): void {
  const start = threadMs();
  run();
  const tookMs = threadMs() - start;
  assert.ok(tookMs < BOUND_MS, `took ${Math.round(tookMs)} ms`);
}

test('a catastrophic pattern stays linear', () => {
  const schema = compileSchema({ properties: { a: { type: 'string', pattern: '^(a+)+$' } } });
  within(() => {
    assert.deepEqual(schema.partial, []);
    assert.equal(schema.validate({ a: `${'a'.repeat(50_000)}!` })[0]?.rule, 'pattern');
    assert.deepEqual(schema.validate({ a: 'aaaa' }), []);
  });
});

test('patterns mean what they mean in ECMAScript', () => {
  const matches: readonly [string, string, boolean][] = [
    ['^\\s$', '\u00a0', true],
    ['^.$', '\u2028', false],
    ['^[\\s\\S]*$', 'a\nb', true],
    ['^\\u00e9$', 'é', true],
    ['^\\p{L}+$', 'é', true],
    ['^\\p{Script=Greek}$', 'α', true],
    ['a$', 'a\n', false],
    ['^[^]$', '\n', true],
    ['^\\d{3}-\\d{4}$', '555-1234', true],
    ['^[a-z]{0,2000}$', 'abc', true],
    ['^(?<year>\\d{4})$', '2026', true],
    ['^\\/x\\-y$', '/x-y', true],
  ];
  for (const [pattern, text, expected] of matches) {
    const schema = compileSchema({ properties: { a: { type: 'string', pattern } } });
    assert.deepEqual(schema.partial, [], pattern);
    assert.equal(schema.validate({ a: text }).length === 0, expected, pattern);
  }
});

test('a schema of 10,000 properties loads and checks in bounded time', () => {
  const names = Array.from({ length: 10_000 }, (_, i) => `p${i}`);
  const properties = Object.fromEntries(names.map((name) => [name, { type: 'string', maxLength: 5 }]));
  const schema = compileSchema({ type: 'object', properties, required: names.slice(0, 100) });
  const valid = Object.fromEntries(names.map((name) => [name, 'x']));
  within(() => {
    assert.deepEqual(schema.validate(valid), []);
    assert.equal(schema.validate({ ...valid, q: 1 })[0]?.pointer, '/q');
    assert.equal(schema.topLevel.length, 10_000);
  });
});

test('a schema of more parts than the limit is refused, with the reason', () => {
  const properties = Object.fromEntries(Array.from({ length: 50_000 }, (_, i) => [`p${i}`, { type: 'string' }]));
  const schema = compileSchema({ type: 'object', properties });
  within(() => {
    assert.match(schema.unusable ?? '', /more than 40000 parts/);
    assert.deepEqual(schema.validate({ p1: 'x' }), [
      { pointer: '', rule: 'schema', message: 'cannot be checked: the schema has more than 40000 parts' },
    ]);
  });
});

test('a schema that refers to itself through its values works', () => {
  const tree: JsonObject = {
    type: 'object',
    properties: { name: { type: 'string' }, children: { type: 'array', items: { $ref: '#' } } },
  };
  const schema = compileSchema(tree);
  assert.deepEqual(schema.partial, []);
  assert.deepEqual(schema.validate({ name: 'a', children: [{ name: 'b', children: [] }] }), []);
  assert.equal(schema.validate({ children: [{ children: [{ nam: 'x' }] }] })[0]?.pointer, '/children/0/children/0/nam');
});

test('a schema that refers to itself without going into a value is refused', () => {
  for (const schema of [
    { $ref: '#' },
    { allOf: [{ $ref: '#/$defs/a' }], $defs: { a: { anyOf: [{ $ref: '#/$defs/a' }] } } },
    { properties: { x: { $ref: '#/$defs/a' } }, $defs: { a: { not: { $ref: '#/$defs/a' } } } },
  ]) {
    const compiled = compileSchema(schema);
    assert.match(compiled.unusable ?? '', /refers to itself without going into a value/);
    assert.equal(compiled.validate({})[0]?.rule, 'schema');
  }
});

test('branches that multiply stop at the allowance and refuse', () => {
  const defs: Record<string, JsonValue> = { d0: { type: 'string' } };
  for (let i = 1; i <= 40; i++) {
    defs[`d${i}`] = { anyOf: [{ $ref: `#/$defs/d${i - 1}` }, { $ref: `#/$defs/d${i - 1}` }] };
  }
  const doubling = compileSchema({ $ref: '#/$defs/d40', $defs: defs });
  const recursive = compileSchema({
    $defs: {
      a: {
        anyOf: [{ properties: { x: { $ref: '#/$defs/a' } } }, { properties: { x: { $ref: '#/$defs/a' } } }],
        type: 'object',
      },
    },
    $ref: '#/$defs/a',
  });
  let deep: JsonValue = 1;
  for (let i = 0; i < 60; i++) deep = { x: deep };
  within(() => {
    assert.match(doubling.validate(1)[0]?.message ?? '', /too many steps/);
    assert.match(recursive.validate(deep)[0]?.message ?? '', /too many steps/);
  });
});

test('instances beyond the limits are refused before any schema runs', () => {
  const schema = compileSchema({ type: 'object', properties: { a: {} } });
  let deep: JsonValue = 1;
  for (let i = 0; i < 5_000; i++) deep = [deep];
  within(() => {
    assert.equal(schema.validate({ a: deep })[0]?.rule, 'maxDepth');
    assert.equal(schema.validate({ a: new Array(300_000).fill(1) })[0]?.rule, 'maxValues');
  });
});

test('a long list of distinct items is checked in linear time', () => {
  const schema = compileSchema({ properties: { a: { type: 'array', uniqueItems: true } } });
  const items = Array.from({ length: 50_000 }, (_, i) => ({ i }));
  within(() => {
    assert.deepEqual(schema.validate({ a: items }), []);
    assert.equal(schema.validate({ a: [...items, { i: 7 }] })[0]?.rule, 'uniqueItems');
  });
});

test('schemas nested beyond measure are refused, not followed', () => {
  let schema: JsonObject = { type: 'string' };
  for (let i = 0; i < 2_000; i++) schema = { type: 'array', items: schema };
  const compiled = compileSchema({ properties: { a: schema } });
  within(() => assert.match(compiled.unusable ?? '', /nested deeper/));
});
