import assert from 'node:assert/strict';
import { test } from 'node:test';
import { OpenApi } from '@samchon/openapi';
import fc from 'fast-check';
import { compileSchema } from '../../policy/schema/compile.ts';
import type { JsonObject, JsonValue } from '../../receipts/json-value.ts';

/** The same component, converted to OpenAPI 3.1 by @samchon/openapi. */
function convertedByOracle(schema: JsonObject): JsonObject {
  const document = {
    openapi: '3.0.3',
    info: { title: '', version: '' },
    paths: {},
    components: { schemas: { X: schema } },
  };
  const converted: unknown = OpenApi.convert(JSON.parse(JSON.stringify(document))).components.schemas?.['X'];
  return converted as JsonObject;
}

const leaf: fc.Arbitrary<JsonObject> = fc
  .record(
    {
      type: fc.constantFrom('integer', 'number'),
      minimum: fc.integer({ min: -2, max: 2 }),
      exclusiveMinimum: fc.boolean(),
      maximum: fc.integer({ min: -2, max: 2 }),
      exclusiveMaximum: fc.boolean(),
      nullable: fc.boolean(),
    },
    { requiredKeys: ['type'], noNullPrototype: true },
  )
  .map((record): JsonObject => Object.fromEntries(Object.entries(record)));

const text: fc.Arbitrary<JsonObject> = fc.constantFrom<JsonObject>(
  { type: 'string' },
  { type: 'string', nullable: true },
  { type: 'string', minLength: 2, nullable: true },
  { type: 'boolean', nullable: true },
);

const schema: fc.Arbitrary<JsonObject> = fc.oneof(
  leaf,
  text,
  // The oracle moves null out of alternatives, which changes what two nullable ones under oneOf mean.
  fc.tuple(leaf, text, fc.boolean()).map(
    ([a, b, nullable]): JsonObject => ({
      oneOf: [
        { ...a, nullable: false },
        { ...b, nullable: false },
      ],
      nullable,
    }),
  ),
  fc.tuple(leaf, fc.boolean()).map(([items, nullable]): JsonObject => ({ type: 'array', items, nullable })),
  fc
    .tuple(leaf, text)
    .map(([a, b]): JsonObject => ({ type: 'object', properties: { a, b }, required: ['a'], nullable: true })),
);

const VALUES: readonly JsonValue[] = [
  null,
  -2,
  -1,
  0,
  1,
  2,
  1.5,
  '',
  'ab',
  true,
  [],
  [0],
  [null],
  {},
  { a: 0 },
  { a: null, b: null },
];

test('3.0 schemas mean what @samchon/openapi converts them to', () => {
  let compared = 0;
  fc.assert(
    fc.property(schema, (original) => {
      const ours = compileSchema(original, { dialect: 'openapi-3.0', closed: false });
      const theirs = compileSchema(convertedByOracle(original), { closed: false });
      // And ours written out as 2020-12 means the same as ours.
      const rendered = compileSchema(ours.render(), { closed: false });
      for (const value of VALUES) {
        const valid = ours.validate(value).length === 0;
        assert.equal(
          valid,
          theirs.validate(value).length === 0,
          `${JSON.stringify(original)} ${JSON.stringify(value)}`,
        );
        assert.equal(
          valid,
          rendered.validate(value).length === 0,
          `${JSON.stringify(ours.render())} ${JSON.stringify(value)}`,
        );
        compared += 1;
      }
    }),
    { numRuns: 150, seed: 3 },
  );
  assert.ok(compared > 2_000);
});

test('a rendered schema stands by itself', () => {
  const schema = compileSchema(
    {
      type: 'object',
      description: 'a tree',
      properties: { root: { $ref: '#/components/Tree' }, id: { type: 'string', readOnly: true } },
      required: ['root', 'id'],
      components: { Tree: { type: 'object', nullable: true, properties: { next: { $ref: '#/components/Tree' } } } },
    },
    { dialect: 'openapi-3.0', direction: 'request' },
  );
  assert.deepEqual(schema.render(), {
    type: 'object',
    description: 'a tree',
    required: ['root'],
    components: { Tree: { type: 'object', nullable: true, properties: { next: { $ref: '#/components/Tree' } } } },
    properties: { root: { $ref: '#/$defs/Tree' } },
    $defs: { Tree: { type: ['object', 'null'], properties: { next: { $ref: '#/$defs/Tree' } } } },
  });
});
