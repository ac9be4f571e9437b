import assert from 'node:assert/strict';
import { test } from 'node:test';
import { registerSchema, unregisterSchema, validate } from '@hyperjump/json-schema/draft-2020-12';
import fc from 'fast-check';
import { compileSchema } from '../../policy/schema/compile.ts';
import type { JsonObject, JsonValue } from '../../receipts/json-value.ts';
import { threadMs } from '../thread-time.ts';

/**
 * Random schemas and instances against @hyperjump/json-schema, as they are and closed. The closing below is written
 * anew and naively, over trees, so that it shares nothing with the one under test.
 */
type Mutable = { [keyword: string]: JsonValue };

const META = 'https://json-schema.org/draft/2020-12/schema';
const NAMES = ['a', 'b', 'c', 'constructor', 'toString', 'valueOf'];
const name = fc.constantFrom(...NAMES);

const { schema: schemaArbitrary } = fc.letrec<{ schema: JsonObject | boolean; object: JsonObject }>((tie) => ({
  schema: fc.oneof(
    { maxDepth: 4, depthIdentifier: 'schema' },
    fc.constantFrom<JsonObject>({ type: 'string' }, { type: 'integer', minimum: 1 }, { const: 1 }, { enum: [1, 'x'] }),
    tie('object'),
    fc.record({ type: fc.constant('array'), items: tie('schema') }),
    fc.constant(true),
    fc.constant<JsonObject>({ $ref: '#/$defs/shared' }),
  ),
  object: fc
    .record(
      {
        type: fc.constant('object'),
        properties: fc.dictionary(name, tie('schema'), { maxKeys: 3, noNullPrototype: true }),
        required: fc.uniqueArray(name, { maxLength: 1 }),
        additionalProperties: fc.oneof({ weight: 4, arbitrary: fc.constant(undefined) }, fc.boolean(), tie('schema')),
        allOf: fc.array(tie('schema'), { minLength: 1, maxLength: 2 }),
        anyOf: fc.array(tie('schema'), { minLength: 1, maxLength: 2 }),
        oneOf: fc.array(tie('schema'), { minLength: 1, maxLength: 2 }),
        not: tie('schema'),
        if: tie('schema'),
        // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
        then: tie('schema'),
        else: tie('schema'),
        dependentSchemas: fc.dictionary(name, tie('schema'), { minKeys: 1, maxKeys: 1, noNullPrototype: true }),
        $ref: fc.constant('#/$defs/shared'),
      },
      { requiredKeys: [], noNullPrototype: true },
    )
    .map((record): JsonObject => thin(record)),
}));

/** Few keywords at a time: a schema of all of them lets nothing in. */
function thin(record: object): JsonObject {
  const entries = Object.entries(record).filter(([, value]) => value !== undefined);
  const keep = entries.filter(([keyword], i) => keyword === 'properties' || i % 3 === entries.length % 3);
  return Object.fromEntries(keep);
}

const instanceArbitrary = fc.letrec<{ value: JsonValue }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3, depthIdentifier: 'value' },
    fc.constantFrom<JsonValue>(1, 0, 'x', null, true),
    fc.dictionary(name, tie('value'), { maxKeys: 3, noNullPrototype: true }),
    fc.array(tie('value'), { maxLength: 2 }),
  ),
})).value;

/** What stands at the same place as a schema. */
function branchesOf(schema: JsonValue, shared: JsonValue, seen: Set<JsonValue> = new Set()): JsonObject[] {
  if (typeof schema !== 'object' || schema === null || Array.isArray(schema) || seen.has(schema)) return [];
  seen.add(schema);
  const object = schema as JsonObject;
  const below: JsonValue[] = [];
  for (const keyword of ['allOf', 'anyOf', 'oneOf', 'dependentSchemas']) {
    below.push(...Object.values((object[keyword] ?? []) as readonly JsonValue[]));
  }
  for (const keyword of ['if', 'then', 'else'])
    if ('if' in object && keyword in object) below.push(object[keyword] ?? null);
  if ('$ref' in object) below.push(shared);
  return [object, ...below.flatMap((branch) => branchesOf(branch, shared, seen))];
}

/** Closes places; `inPlace` leaves the object itself as it is, since its place is closed as a whole. */
function close(schema: JsonValue, shared: JsonValue, inPlace: boolean): JsonValue {
  if (typeof schema !== 'object' || schema === null || Array.isArray(schema)) return schema;
  const out: Mutable = {};
  for (const [keyword, value] of Object.entries(schema as JsonObject)) {
    if (keyword === 'properties') out[keyword] = mapValues(value, (child) => close(child, shared, false));
    else if (keyword === 'dependentSchemas') out[keyword] = mapValues(value, (child) => close(child, shared, true));
    else if (keyword === 'items' || keyword === 'additionalProperties') out[keyword] = close(value, shared, false);
    else if (keyword === 'then' || keyword === 'else') out[keyword] = close(value, shared, true);
    else if (['allOf', 'anyOf', 'oneOf'].includes(keyword)) {
      out[keyword] = (value as JsonValue[]).map((child) => close(child, shared, true));
    } else out[keyword] = value;
  }
  if ('$ref' in out) out['$ref'] = '#/$defs/open';
  if (inPlace) return out;
  const branches = branchesOf(schema, shared);
  const lists = branches.some((branch) => 'properties' in branch || branch['additionalProperties'] === false);
  const opens = branches.some((branch) => (branch['additionalProperties'] ?? false) !== false);
  if (lists && !opens && !('additionalProperties' in schema)) out['unevaluatedProperties'] = false;
  return out;
}

function mapValues(value: JsonValue, change: (child: JsonValue) => JsonValue): JsonObject {
  return Object.fromEntries(Object.entries(value as JsonObject).map(([key, child]) => [key, change(child)]));
}

let count = 0;

async function judge(schema: JsonValue, instances: readonly JsonValue[]): Promise<boolean[]> {
  const uri = `https://differential.invalid/${count++}`;
  registerSchema(schema as never, uri, META);
  try {
    const check = await validate(uri);
    return instances.map((instance) => check(instance as never).valid);
  } finally {
    unregisterSchema(uri);
  }
}

test('random schemas are judged as @hyperjump/json-schema judges them, open and closed', async () => {
  const deadline = threadMs() + 4_000;
  const sample = fc.tuple(
    schemaArbitrary,
    schemaArbitrary,
    fc.array(instanceArbitrary, { minLength: 12, maxLength: 12 }),
  );
  const differences: string[] = [];
  let [compared, accepted, schemas, stricter] = [0, 0, 0, 0];
  for (const [schema, shared, instances] of fc.sample(sample, { numRuns: 2_000, seed: 11 })) {
    if (threadMs() > deadline && schemas > 20 && accepted > 20) break;
    if (typeof schema === 'boolean') continue;
    const whole: JsonObject = { ...schema, $defs: { shared } };
    const compiled = compileSchema(whole);
    // Schemas that only refer to themselves are refused here, and loop there.
    if (compiled.unusable !== undefined) continue;
    schemas += 1;
    const closed = {
      ...(close(schema, shared, false) as JsonObject),
      $defs: { shared, open: close(shared, shared, true) },
    };
    const [open, tight] = [await judge(whole, instances), await judge(closed, instances)];
    const loose = compileSchema(whole, { closed: false });
    for (const [i, instance] of instances.entries()) {
      compared += 2;
      const [ours, oursOpen] = [compiled.validate(instance).length === 0, loose.validate(instance).length === 0];
      if (ours) accepted += 1;
      if (oursOpen !== open[i]) differences.push(`open: ${JSON.stringify([whole, instance, oursOpen])}`);
      if (ours && tight[i] === false) differences.push(`closed: ${JSON.stringify([whole, instance])}`);
      if (!ours && tight[i] === true) {
        // The walker takes the names of all branches together, so it may refuse what a branch that says nothing of a
        // member would let in; it may do nothing else.
        const rules = compiled.validate(instance).map(({ rule }) => rule);
        if (rules.some((rule) => rule !== 'additionalProperties'))
          differences.push(`refused: ${JSON.stringify([whole, instance])}`);
        stricter += 1;
      }
    }
  }
  assert.deepEqual(differences.slice(0, 5), [], `${differences.length} of ${compared}`);
  assert.ok(stricter <= compared / 1_000, `${stricter} of ${compared} refused for their names alone`);
  assert.ok(schemas > 20 && accepted > 20, `${schemas} schemas, ${accepted} of ${compared} accepted`);
});
