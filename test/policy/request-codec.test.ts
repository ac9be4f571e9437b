import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { buildRequest as build } from '../../policy/openapi/codec.ts';
import type { Operation, Parameter, ParameterPlace, ParameterStyle } from '../../policy/openapi/operation.ts';
import { plainOperation } from '../../policy/openapi/operation.ts';
import { readRequest } from '../../policy/openapi/reading.ts';
import type { BuiltRequest, Carried, RequestBody } from '../../policy/openapi/request.ts';
import { RoutingError } from '../../policy/route-template.ts';
import { Router } from '../../policy/routing.ts';
import { compileSchema } from '../../policy/schema/compile.ts';
import { normalisePath } from '../../policy/target.ts';
import type { JsonObject, JsonValue } from '../../receipts/json-value.ts';
import { threadMs } from '../thread-time.ts';

function read(
  operation: Operation,
  target: string,
  headers: Record<string, string[]> = {},
  body?: RequestBody,
): string[] | JsonObject {
  const path = normalisePath(target, { matrix: true });
  if (!path.ok) return [path.fault];
  const match = new Router([operation]).match(operation.method, path.segments);
  if (match.kind !== 'match') return [match.kind];
  const result = readRequest(operation, {
    rawParameters: match.rawParameters,
    rawQuery: path.rawQuery,
    header: (name) => headers[name] ?? [],
    body,
    parseJson: JSON.parse,
  });
  return result.ok ? result.value : result.faults.map((fault) => `${fault.rule} ${fault.pointer}`);
}

function buildRequest(operation: Operation, args: JsonObject): Carried<BuiltRequest> {
  return build(operation, args, JSON.parse);
}

function readBuilt(operation: Operation, built: BuiltRequest): string[] | JsonObject {
  const target = built.rawQuery === '' ? built.rawPath : `${built.rawPath}?${built.rawQuery}`;
  const headers: Record<string, string[]> = {};
  for (const [name, value] of built.headers) headers[name] = [value];
  return read(operation, target, headers, built.body);
}

const SEARCH = plainOperation({
  name: 'search',
  method: 'GET',
  path: '/shops/{shop}/orders',
  input: compileSchema({
    type: 'object',
    properties: {
      shop: { type: 'string' },
      p: { type: 'integer' },
      open: { type: 'boolean' },
      tag: { type: 'array', items: { type: 'string' } },
      q: { type: 'string' },
    },
    required: ['shop'],
  }),
});

test('a query is read by the types of the schema', () => {
  assert.deepEqual(read(SEARCH, '/shops/a/orders?p=5&open=true&tag=x&tag=y&q=a+b%2Bc'), {
    shop: 'a',
    p: 5,
    open: true,
    tag: ['x', 'y'],
    q: 'a b+c',
  });
  assert.deepEqual(read(SEARCH, '/shops/a/orders?p=9223372036854775807'), { shop: 'a', p: 9_223_372_036_854_775_807n });
});

test('texts that only resemble a number or boolean stay texts, which the schema refuses', () => {
  const input = compileSchema({ type: 'object', properties: { p: { type: 'integer' }, open: { type: 'boolean' } } });
  const operation = plainOperation({ name: 'list', method: 'GET', path: '/list', input });
  for (const query of [
    'p=%205',
    'p=+5',
    'p=0x10',
    'p=5.0',
    'p=05',
    'p=1e2',
    'p=',
    'p=-0',
    'p=%D9%A5',
    'open=yes',
    'open=TRUE',
    'open=1',
    'open',
  ]) {
    const args = read(operation, `/list?${query}`);
    assert.ok(!Array.isArray(args), query);
    assert.equal(input.validate(args)[0]?.rule, 'type', query);
  }
});

test('a second value, an undeclared parameter and brackets are faults with a pointer', () => {
  assert.deepEqual(read(SEARCH, '/shops/a/orders?p=5&p=6'), ['style /p']);
  assert.deepEqual(read(SEARCH, '/shops/a/orders?p[x]=1'), ['additionalProperties /p[x]']);
  assert.deepEqual(read(SEARCH, '/shops/a/orders?P=5'), ['additionalProperties /P']);
  assert.deepEqual(read(SEARCH, '/shops/a/orders?_method=DELETE'), ['additionalProperties /_method']);
  assert.deepEqual(read(SEARCH, '/shops/a/orders?shop=b'), ['additionalProperties /shop']);
  assert.deepEqual(read(SEARCH, '/shops/a/orders?q=%ff'), ['style /q']);
});

test('a call listed by hand without a schema takes the parameters of its path, as texts', () => {
  const operation = plainOperation({ name: 'get_order', method: 'GET', path: '/orders/{order_id}' });
  assert.deepEqual(read(operation, '/orders/4411'), { order_id: '4411' });
  assert.deepEqual(buildRequest(operation, { order_id: '4411' }), {
    ok: true,
    value: { method: 'GET', rawPath: '/orders/4411', rawQuery: '', headers: [], body: undefined },
  });
  assert.equal(buildRequest(operation, {}).ok, false);
  assert.equal(buildRequest(operation, { order_id: 'a', more: 1 }).ok, false);
});

test('a path argument that could be read as more than one segment is refused, both ways', () => {
  const operation = plainOperation({ name: 'get', method: 'GET', path: '/orders/{id}' });
  for (const id of ['', '.', '..', 'a/b', 'a\\b', 'a\u0000', 'a\n', '%2e', '%252f', '100%', 'a\ud800']) {
    const built = buildRequest(operation, { id });
    assert.ok(!built.ok && built.faults[0]?.pointer === '/id', JSON.stringify(id));
  }
  for (const id of ['a b', 'é', '..a', 'a;b', 'a,b', 'a?b#c', "!'()*", '😀']) {
    const built = buildRequest(operation, { id });
    assert.ok(built.ok, id);
    assert.deepEqual(readBuilt(operation, built.value), { id });
  }
});

test('arguments outside the path are members of the JSON body where the method has one', () => {
  const input = compileSchema({
    type: 'object',
    properties: { id: { type: 'string' }, amount: { type: 'number' } },
    required: ['id'],
  });
  const operation = plainOperation({ name: 'charge', method: 'POST', path: '/orders/{id}/charges', input });
  const built = buildRequest(operation, { id: '7', amount: 40 });
  assert.ok(built.ok);
  assert.deepEqual(built.value.body, { kind: 'json', value: { amount: 40 } });
  assert.deepEqual(readBuilt(operation, built.value), { id: '7', amount: 40 });
  assert.deepEqual(read(operation, '/orders/7/charges', {}, { kind: 'json', value: { id: '8' } }), [
    'additionalProperties /id',
  ]);
  assert.deepEqual(read(operation, '/orders/7/charges', {}, { kind: 'json', value: [1] }), ['type ']);
  assert.deepEqual(read(operation, '/orders/7/charges?amount=4'), ['additionalProperties /amount']);
});

test('a path that names what the input does not declare is an error at load', () => {
  const input = compileSchema({ type: 'object', properties: {} });
  assert.throws(() => plainOperation({ name: 'x', method: 'GET', path: '/a/{b}', input }), RoutingError);
});

const KINDS = {
  text: { schema: { type: 'string' }, value: fc.string({ minLength: 1, unit: 'binary' }) },
  integer: {
    schema: { type: 'integer' },
    value: fc.oneof(fc.maxSafeInteger(), fc.bigInt({ min: 2n ** 53n, max: 2n ** 64n })),
  },
  number: {
    schema: { type: 'number' },
    value: fc.double({ noNaN: true, noDefaultInfinity: true }).filter((n) => !Object.is(n, -0)),
  },
  boolean: { schema: { type: 'boolean' }, value: fc.boolean() },
  texts: {
    schema: { type: 'array', items: { type: 'string' } },
    value: fc.array(fc.string({ minLength: 1 }), { minLength: 1, maxLength: 4 }),
  },
  integers: {
    schema: { type: 'array', items: { type: 'integer' } },
    value: fc.array(fc.maxSafeInteger(), { minLength: 1, maxLength: 4 }),
  },
  object: {
    schema: { type: 'object', properties: { k: { type: 'string' }, n: { type: 'integer' } } },
    value: fc.record({ k: fc.string({ minLength: 1 }), n: fc.integer() }, { noNullPrototype: true }),
  },
} as const satisfies Record<string, { schema: JsonObject; value: fc.Arbitrary<JsonValue> }>;

const STYLES: Readonly<Record<ParameterPlace, readonly ParameterStyle[]>> = {
  path: ['simple', 'label', 'matrix', 'json'],
  query: ['form', 'spaceDelimited', 'pipeDelimited', 'tabDelimited', 'deepObject', 'json'],
  header: ['simple', 'json'],
  cookie: ['form'],
};

test('what is built reads back as the same arguments, in every place, style and kind', () => {
  let carried = 0;
  const cases = Object.entries(STYLES).flatMap(([place, styles]) =>
    styles.flatMap((style) =>
      [true, false].flatMap((explode) => Object.values(KINDS).map((kind) => ({ place, style, explode, kind }))),
    ),
  );
  for (const { place, style, explode, kind } of cases) {
    const input = compileSchema({ type: 'object', properties: { x: kind.schema } });
    const parameter: Parameter = {
      name: 'x',
      argument: 'x',
      place: place as ParameterPlace,
      style,
      explode,
      required: true,
      kind: input.kindOf('x') ?? assert.fail('no kind'),
    };
    const operation: Operation = {
      name: 'op',
      method: 'GET',
      pathTemplate: place === 'path' ? '/a/{x}/b' : '/a',
      parameters: [parameter],
      body: undefined,
    };
    fc.assert(
      fc.property<[JsonValue]>(kind.value, (x) => {
        const built = buildRequest(operation, { x });
        if (!built.ok) return;
        const back = readBuilt(operation, built.value);
        // Delimiters inside values cannot be told apart in some styles; then the faults say so, never another value.
        if (Array.isArray(back)) assert.fail(`${place} ${style} ${explode}: ${back.join()}`);
        assert.deepEqual(back, { x }, `${place} ${style} ${explode} ${built.value.rawPath}?${built.value.rawQuery}`);
        carried += 1;
      }),
      { numRuns: 15, seed: 7 },
    );
  }
  assert.ok(carried > 1000, `${carried} carried`);
});

test('nested arguments of a call listed by hand go into the query as JSON', () => {
  const input = compileSchema({
    type: 'object',
    properties: {
      where: { type: 'object', properties: { a: { type: 'integer' } } },
      lines: { type: 'array', items: { type: 'object', properties: { b: { type: 'string' } } } },
    },
  });
  const operation = plainOperation({ name: 'find', method: 'GET', path: '/find', input });
  const args = { where: { a: 1 }, lines: [{ b: 'x,y' }] };
  const built = buildRequest(operation, args);
  assert.ok(built.ok);
  assert.deepEqual(readBuilt(operation, built.value), args);
  assert.deepEqual(read(operation, '/find?where=%7Bx'), ['style /where']);
});

test('what may be one value or several is carried either way', () => {
  const property: JsonObject = { anyOf: [{ type: 'integer' }, { type: 'array', items: { type: 'integer' } }] };
  const input = compileSchema({ type: 'object', properties: { id: property } });
  const operation = plainOperation({ name: 'list', method: 'GET', path: '/list', input });
  for (const id of [5, [5], [5, 6]]) assert.ok(buildRequest(operation, { id }).ok, JSON.stringify(id));
  assert.deepEqual(read(operation, '/list?id=5'), { id: 5 });
  assert.deepEqual(read(operation, '/list?id=5&id=6'), { id: [5, 6] });
});

test('a query or form of too many pairs is refused at once', () => {
  const operation: Operation = {
    ...plainOperation({ name: 'post', method: 'POST', path: '/post', input: compileSchema({ properties: { a: {} } }) }),
    body: {
      format: 'form',
      contentType: 'application/x-www-form-urlencoded',
      required: false,
      argument: undefined,
      fields: new Map(),
    },
  };
  const text = Array.from({ length: 200_000 }, (_, i) => `k${i}=1`).join('&');
  const start = threadMs();
  assert.deepEqual(read(operation, '/post', {}, { kind: 'form', text }), ['maxValues ']);
  assert.deepEqual(read(operation, '/post', {}, { kind: 'form', text: 'a=1&a=2&b=3' }), ['style /a']);
  assert.ok(threadMs() - start < 2_000);
});
