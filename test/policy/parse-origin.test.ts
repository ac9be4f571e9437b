import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { parseOrigin } from '../../policy/origins/parse-origin.ts';

test('the words for origins are themselves', () => {
  for (const kind of ['typed', 'reply', 'context', 'computed', 'model']) assert.deepEqual(parseOrigin(kind), { kind });
});

test('a result names its step, and may name a field by a dotted path', () => {
  assert.deepEqual(parseOrigin('result:0'), { kind: 'result', step: 0 });
  assert.deepEqual(parseOrigin('result:12'), { kind: 'result', step: 12 });
  assert.deepEqual(parseOrigin('result:3.id'), { kind: 'result', step: 3, field: 'id' });
  assert.deepEqual(parseOrigin('result:3.items.0.order-id'), { kind: 'result', step: 3, field: 'items.0.order-id' });
  assert.deepEqual(parseOrigin('result:3.preço'), { kind: 'result', step: 3, field: 'preço' });
});

test('whatever is not exactly an origin is the model', () => {
  const words = [
    '',
    'Typed',
    ' typed',
    'typed ',
    'user',
    'constructor',
    '__proto__',
    'result',
    'result:',
    'result:x',
    'result:-1',
  ];
  const results = [
    'result:01',
    'result:1.',
    'result:1..a',
    'result:1.a.',
    'result:.a',
    'result:1 .a',
    'result:1.a b',
    'Result:1',
  ];
  for (const text of [
    ...words,
    ...results,
    'result:1e3',
    'result:1\n',
    'result:9999999999',
    `result:1.${'a'.repeat(600)}`,
  ]) {
    assert.deepEqual(parseOrigin(text), { kind: 'model' }, JSON.stringify(text));
  }
});

test('any text is read without a throw', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => assert.equal(typeof parseOrigin(text).kind, 'string')),
  );
});
