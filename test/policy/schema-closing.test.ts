import assert from 'node:assert/strict';
import { test } from 'node:test';
import { compileSchema, resultField } from '../../policy/schema/compile.ts';
import type { JsonObject, JsonValue } from '../../receipts/json-value.ts';

function faultsOf(schema: JsonObject, value: JsonValue): string[] {
  return compileSchema(schema)
    .validate(value)
    .map((fault) => `${fault.rule} ${fault.pointer}`);
}

const REFUND: JsonObject = {
  type: 'object',
  properties: { order_id: { type: 'string' }, amount: { type: 'number' } },
  required: ['order_id', 'amount'],
};

test('a declared call passes and an undeclared argument is named', () => {
  assert.deepEqual(faultsOf(REFUND, { order_id: '4411', amount: 40 }), []);
  assert.deepEqual(faultsOf(REFUND, { order_id: '4411', amount: 40, note: 'x' }), ['additionalProperties /note']);
});

test('names that every object inherits are undeclared like any other', () => {
  const composed: JsonObject = { type: 'object', anyOf: [{ properties: { a: {} } }, { properties: { b: {} } }] };
  for (const schema of [REFUND, composed, { $ref: '#/$defs/r', $defs: { r: REFUND } }]) {
    for (const name of ['constructor', 'toString', 'valueOf', 'hasOwnProperty']) {
      assert.ok(faultsOf(schema, { [name]: 1 }).includes(`additionalProperties /${name}`), name);
    }
    assert.ok(faultsOf(schema, JSON.parse('{"__proto__":1}')).includes('additionalProperties /__proto__'));
  }
});

test('undeclared members are refused at every depth', () => {
  const nested: JsonObject = { type: 'object', properties: { lines: { type: 'array', items: REFUND } } };
  const line = { order_id: 'a', amount: 1 };
  assert.deepEqual(faultsOf(nested, { lines: [line, { ...line, 'a/b~c': 1 }] }), [
    'additionalProperties /lines/1/a~1b~0c',
  ]);
});

test('what the branches of a composed schema declare counts together', () => {
  const base: JsonObject = { type: 'object', properties: { id: { type: 'string' } }, required: ['id'] };
  const shapes: readonly [string, JsonObject][] = [
    ['allOf', { allOf: [base, { properties: { extra: { type: 'integer' } } }] }],
    ['reference with siblings', { $ref: '#/$defs/base', properties: { extra: {} }, $defs: { base } }],
    ['anyOf', { ...base, anyOf: [{ properties: { extra: {} }, required: ['extra'] }, { properties: { other: {} } }] }],
    [
      'oneOf',
      {
        ...base,
        oneOf: [
          { properties: { extra: {} }, required: ['extra'] },
          { required: ['other'], properties: { other: {} } },
        ],
      },
    ],
    ['else', { ...base, if: { required: ['other'] }, else: { properties: { extra: {} } } }],
    ['dependentSchemas', { ...base, dependentSchemas: { id: { properties: { extra: {} } } } }],
  ];
  for (const [name, schema] of shapes) {
    assert.deepEqual(faultsOf(schema, { id: 'a', extra: 1 }), [], name);
    assert.ok(faultsOf(schema, { id: 'a', extra: 1, more: 1 }).includes('additionalProperties /more'), name);
  }
});

test('names of a failed alternative do not leak in', () => {
  const schema: JsonObject = {
    type: 'object',
    anyOf: [
      { properties: { kind: { const: 'card' }, card: { type: 'string' } }, required: ['kind'] },
      { properties: { kind: { const: 'iban' }, iban: { type: 'string' } }, required: ['kind'] },
    ],
  };
  assert.deepEqual(faultsOf(schema, { kind: 'card', card: 'x' }), []);
  assert.deepEqual(faultsOf(schema, { kind: 'card', iban: 'x' }), ['additionalProperties /iban']);
});

test('a schema that opens itself in so many words stays open', () => {
  assert.deepEqual(faultsOf({ ...REFUND, additionalProperties: true }, { order_id: 'a', amount: 1, note: 'x' }), []);
  const typed: JsonObject = { ...REFUND, additionalProperties: { type: 'integer' } };
  assert.deepEqual(faultsOf(typed, { order_id: 'a', amount: 1, note: 2 }), []);
  assert.deepEqual(faultsOf(typed, { order_id: 'a', amount: 1, note: 'x' }), ['type /note']);
});

test('a name that differs from a declared one by case alone is refused even where the schema is open', () => {
  const open: JsonObject = { type: 'object', properties: { to: {}, task: {} }, additionalProperties: true };
  for (const name of ['To', 'TO', 'ta\u017fk', 'tas\u212A']) {
    assert.deepEqual(faultsOf(open, { to: 1, [name]: 1 }), [`additionalProperties /${name}`]);
  }
  assert.deepEqual(faultsOf({ ...open, properties: { to: {}, To: {} } }, { to: 1, To: 1 }), []);
});

test('conditions are asked as they are written, not closed', () => {
  const schema: JsonObject = {
    type: 'object',
    properties: { kind: { type: 'string' }, detail: { type: 'object', properties: { a: {}, b: {} } } },
    not: { properties: { detail: { properties: { a: { const: 1 } }, required: ['a'] } }, required: ['detail'] },
  };
  assert.deepEqual(faultsOf(schema, { detail: { a: 1, b: 2 } }), ['not ']);
  assert.deepEqual(faultsOf(schema, { detail: { a: 2, b: 2 } }), []);
});

test('faults come in document order, missing members last, at most 20', () => {
  const schema: JsonObject = {
    type: 'object',
    properties: { a: { type: 'string' }, b: { type: 'integer' }, c: { type: 'string' } },
    required: ['a', 'b', 'c'],
  };
  assert.deepEqual(faultsOf(schema, { x: 1, b: 'no', a: 5 }), [
    'additionalProperties /x',
    'type /b',
    'type /a',
    'required /c',
  ]);
  const many = Object.fromEntries(Array.from({ length: 50 }, (_, i) => [`k${i}`, i]));
  assert.equal(faultsOf(schema, many).length, 20);
});

test('alternatives that all fail are one fault', () => {
  const schema: JsonObject = {
    type: 'object',
    properties: { id: { anyOf: [{ type: 'string' }, { type: 'integer' }] } },
  };
  assert.deepEqual(faultsOf(schema, { id: true }), ['anyOf /id']);
});

test('integers beyond the doubles are compared exactly', () => {
  const schema: JsonObject = {
    type: 'object',
    properties: {
      id: { type: 'integer', format: 'int64' },
      most: { type: 'integer', maximum: 9_223_372_036_854_775_806n },
      text: { type: 'string' },
      only: { enum: [9_007_199_254_740_993n] },
      even: { type: 'integer', multipleOf: 2 },
      any: {},
    },
  };
  assert.deepEqual(faultsOf(schema, { id: 9_223_372_036_854_775_807n }), []);
  assert.deepEqual(faultsOf(schema, { id: 9_223_372_036_854_775_808n }), ['format /id']);
  assert.deepEqual(faultsOf(schema, { most: 9_223_372_036_854_775_806n }), []);
  assert.deepEqual(faultsOf(schema, { most: 9_223_372_036_854_775_807n }), ['maximum /most']);
  assert.deepEqual(faultsOf(schema, { text: 9_223_372_036_854_775_807n }), ['type /text']);
  assert.deepEqual(faultsOf(schema, { only: 9_007_199_254_740_993n }), []);
  assert.deepEqual(faultsOf(schema, { only: 9_007_199_254_740_994n }), ['enum /only']);
  assert.deepEqual(faultsOf(schema, { even: 90_071_992_547_409_931n }), ['multipleOf /even']);
  assert.deepEqual(faultsOf(schema, { any: [1, { x: 90_071_992_547_409_931n }] }), []);
  assert.deepEqual(faultsOf({ maximum: 10 }, 90_071_992_547_409_931n), ['maximum ']);
});

test('decimals are multiples as they are written', () => {
  const cents: JsonObject = { properties: { amount: { type: 'number', multipleOf: 0.01 } } };
  for (const amount of [0.07, 19.99, 1.1, 4.35, 1e15]) assert.deepEqual(faultsOf(cents, { amount }), []);
  assert.deepEqual(faultsOf(cents, { amount: 0.001 }), ['multipleOf /amount']);
});

test('what cannot be enforced makes the schema partial, with the reason and the place', () => {
  const partial = (properties: JsonObject): readonly string[] => compileSchema({ type: 'object', properties }).partial;
  assert.deepEqual(partial({ a: { type: 'string', format: 'date' }, b: { type: 'array', items: REFUND } }), []);
  assert.match(partial({ a: { type: 'string', format: 'repo.nwo' } }).join(), /format `repo\.nwo` is not known.*`\/a`/);
  assert.match(partial({ a: { $ref: '#/nowhere' } }).join(), /`#\/nowhere` leads to no schema/);
  assert.match(partial({ a: { type: 'string', pattern: '^(?=x)' } }).join(), /look-around/);
  assert.match(partial({ a: { type: 'string', pattern: '(a)\\1' } }).join(), /backreference/);
  assert.match(partial({ a: { type: 'object' } }).join(), /anything may stand here.*`\/a`/);
  assert.match(partial({ a: { type: 'array' } }).join(), /anything may stand here.*`\/a`/);
  assert.match(partial({ a: { type: 'string', maxLenght: 3 } }).join(), /`maxLenght` is not known/);
  assert.match(partial({ a: { type: 'string', maxLength: '3' } }).join(), /`maxLength` must be/);
  assert.deepEqual(partial({ a: { type: 'object', additionalProperties: { type: 'string' } } }), []);
});

test('a member that the backend sets is not declared in a request', () => {
  const schema: JsonObject = {
    type: 'object',
    properties: { id: { type: 'string', readOnly: true }, name: { type: 'string' } },
    required: ['id', 'name'],
    additionalProperties: true,
  };
  const compiled = compileSchema(schema, { direction: 'request' });
  assert.deepEqual(compiled.validate({ name: 'x' }), []);
  assert.equal(compiled.validate({ name: 'x', id: 'y' })[0]?.pointer, '/id');
  assert.deepEqual(compiled.topLevel, ['name']);
});

test('the top level is listed in schema order, and fields of a result are found by path', () => {
  const schema = compileSchema({
    type: 'object',
    allOf: [{ properties: { z: { type: 'string' } } }],
    properties: {
      b: { type: 'object', properties: { c: {} } },
      a: { type: 'array', items: { properties: { d: {} } } },
    },
  });
  assert.deepEqual(schema.topLevel, ['b', 'a', 'z']);
  for (const path of ['b', 'b.c', 'a.0.d', 'z']) assert.equal(resultField(schema, path), true, path);
  for (const path of ['c', 'b.d', 'a.d', 'z.q', 'toString', 'b.constructor']) {
    assert.equal(resultField(schema, path), false, path);
  }
  assert.equal(resultField(undefined, 'b'), false);
});

test('older dialects are read as they were meant', () => {
  const four: JsonObject = {
    type: 'object',
    properties: { n: { type: 'number', minimum: 0, exclusiveMinimum: true }, p: { items: [{ type: 'string' }] } },
  };
  const draft4 = compileSchema(four, { dialect: 'draft-04' });
  assert.equal(draft4.validate({ n: 0 })[0]?.rule, 'exclusiveMinimum');
  assert.equal(draft4.validate({ p: [1] })[0]?.pointer, '/p/0');
  const nullable = compileSchema(
    {
      type: 'object',
      properties: {
        a: { type: 'string', nullable: true },
        b: { allOf: [{ type: 'object', properties: { c: { type: 'integer' } } }], nullable: true },
        e: { type: 'string', enum: ['x'], nullable: true },
      },
    },
    { dialect: 'openapi-3.0' },
  );
  assert.deepEqual(nullable.validate({ a: null, b: null, e: null }), []);
  assert.deepEqual(nullable.validate({ a: 'x', b: { c: 1 }, e: 'x' }), []);
  assert.equal(nullable.validate({ b: { c: 1, d: 1 } })[0]?.pointer, '/b/d');
});
