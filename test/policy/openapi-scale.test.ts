import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readApi } from '../../policy/openapi/read-api.ts';
import type { JsonObject, JsonValue } from '../../receipts/json-value.ts';

/** A document as large as the largest public ones: 2,000 operations over 1,500 components that refer to each other. */
function largeDocument(): JsonObject {
  const schemas: Record<string, JsonValue> = {};
  for (let i = 0; i < 1_500; i++) {
    const properties: Record<string, JsonValue> = {};
    for (let j = 0; j < 20; j++)
      properties[`field_${j}`] = { type: 'string', description: 'x'.repeat(80), maxLength: 40 };
    properties['next'] = { $ref: `#/components/schemas/S${(i + 1) % 1_500}` };
    properties['other'] = { anyOf: [{ $ref: `#/components/schemas/S${(i * 7) % 1_500}` }, { type: 'string' }] };
    schemas[`S${i}`] = { type: 'object', properties };
  }
  const paths: Record<string, JsonValue> = {};
  for (let i = 0; i < 2_000; i++) {
    const schema = { $ref: `#/components/schemas/S${i % 1_500}` };
    paths[`/things${i}/{id}`] = {
      parameters: [{ name: 'id', in: 'path', required: true, schema: { type: 'integer' } }],
      put: { operationId: `put${i}`, requestBody: { content: { 'application/json': { schema } } } },
    };
  }
  return { openapi: '3.1.0', info: { title: 'large', version: '1' }, paths, components: { schemas } };
}

test('a document of thousands of operations and cyclic components loads at once and checks on demand', () => {
  const root = 'file:///large.json';
  const files = new Map([[root, largeDocument()]]);
  const before = process.cpuUsage();
  const api = readApi({ root, files });
  const loadedMs = process.cpuUsage(before).user / 1_000;
  assert.equal(api.operations.length, 2_000);
  assert.ok(loadedMs < 1_500, `${loadedMs} ms of CPU`);
  const operation = api.operations[1_234] ?? assert.fail();
  assert.deepEqual(operation.input.validate({ id: 1, field_0: 'a', next: { next: { field_1: 'b' } } }), []);
  assert.equal(operation.input.validate({ id: 1, other: { next: { fild_1: 'b' } } })[0]?.pointer, '/other');
  const wholeMs = process.cpuUsage(before).user / 1_000;
  // One schema reaches all 1,500 components here: the worst that an operation can ask for.
  assert.ok(wholeMs < 20_000, `${wholeMs} ms of CPU`);
});
