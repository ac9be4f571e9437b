import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { loadApiFiles, parseText } from '../../gateway/openapi/load.ts';
import { validateApiDocument } from '../../gateway/openapi/validate.ts';
import { type Api, ApiError, type ApiOperation, type ApiSelection } from '../../policy/openapi/api.ts';
import { buildRequest } from '../../policy/openapi/codec.ts';
import { readApi } from '../../policy/openapi/read-api.ts';
import { readRequest } from '../../policy/openapi/reading.ts';
import { Router } from '../../policy/routing.ts';
import { normalisePath } from '../../policy/target.ts';
import type { JsonObject } from '../../receipts/json-value.ts';

async function load(name: string, selection?: ApiSelection): Promise<Api> {
  return readApi(await loadApiFiles(fileURLToPath(new URL(`../vectors/openapi/${name}`, import.meta.url))), selection);
}

function operationOf(api: Api, name: string): ApiOperation {
  return api.operations.find((operation) => operation.name === name) ?? assert.fail(`no operation \`${name}\``);
}

function faultsOf(operation: ApiOperation, args: JsonObject): string[] {
  return operation.input.validate(args).map((fault) => `${fault.rule} ${fault.pointer}`);
}

/** Builds the request, routes it among all operations, reads it back. */
function roundTrip(api: Api, name: string, args: JsonObject): { target: string; args: unknown } {
  const operation = operationOf(api, name);
  assert.deepEqual(faultsOf(operation, args), []);
  const built = buildRequest(operation, args, JSON.parse);
  assert.ok(built.ok, JSON.stringify(built));
  const { rawPath, rawQuery, headers, body } = built.value;
  const target = rawQuery === '' ? rawPath : `${rawPath}?${rawQuery}`;
  const path = normalisePath(target, { matrix: true });
  assert.ok(path.ok, target);
  const match = new Router(api.operations).match(operation.method, path.segments);
  assert.ok(match.kind === 'match' && match.operation === operation, target);
  const back = readRequest(operation, {
    rawParameters: match.rawParameters,
    rawQuery: path.rawQuery,
    header: (header) => headers.filter(([key]) => key === header).map(([, value]) => value),
    body,
    parseJson: JSON.parse,
  });
  return { target, args: back.ok ? back.value : back.faults };
}

test('every parameter style goes out as documented and comes back as the same arguments', async () => {
  const api = await load('every-style.yaml');
  assert.equal(api.version, '3.1');
  assert.equal(api.basePath, '/v1');
  const point = { x: 1, y: -2 };
  const cases: readonly [string, JsonObject, string][] = [
    ['simple', { one: 5, list: ['a', 'b'], object: point }, '/simple/5/a,b/x,1,y,-2'],
    ['simpleExploded', { object: point }, '/simple-exploded/x=1,y=-2'],
    ['label', { one: 'a', list: [3, 4], object: point }, '/label/.a/.3.4/.x=1.y=-2'],
    ['matrix', { one: 'a', list: [3, 4], object: point }, '/matrix/;one=a/;list=3;list=4/;object=x,1,y,-2'],
    [
      'query',
      {
        text: 'a&b=c',
        flag: true,
        number: 1.5,
        id: 7,
        list: [1, 2],
        joined: ['a', 'b,c'],
        spaced: ['a', 'b'],
        piped: ['a', 'b'],
        deep: point,
        spread: { from: 'f', to: 't' },
        filter: point,
      },
      '/query?text=a%26b%3Dc&flag=true&number=1.5&id=7&list=1&list=2&joined=a,b%2Cc&spaced=a%20b&piped=a%7Cb' +
        '&deep%5Bx%5D=1&deep%5By%5D=-2&from=f&to=t&filter=%7B%22x%22%3A1%2C%22y%22%3A-2%7D',
    ],
    ['headers', { 'X-Trace': 'a b', 'X-List': [1, 2], 'X-Point': point, theme: 'dark', sizes: [1, 2] }, '/headers'],
    ['putItem', { id: 'a', name: 'n', price: null, tags: ['x'] }, '/items/a'],
    ['patchItem', { id: 'a', price: 2 }, '/items/a'],
    ['clashItem', { id: 'a', body: { id: 'b', note: 'n' } }, '/items/a'],
    [
      'form',
      {
        name: 'a b&c',
        count: 2,
        tags: ['x', 'y'],
        point,
        lines: [{ sku: 'a', n: 1 }, { sku: 'b' }],
        meta: { k: 'v' },
        data: { a: true },
      },
      '/form',
    ],
    ['multipart', { name: 'a', count: 2, tags: ['x', 'y'], point }, '/multipart'],
    ['postList', { body: [1, 2] }, '/list'],
    ['tree', { name: 'a', children: [{ name: 'b', children: [] }] }, '/tree'],
  ];
  for (const [name, args, target] of cases) assert.deepEqual(roundTrip(api, name, args), { target, args });
});

test('arguments are closed, typed and pointed at', async () => {
  const api = await load('every-style.yaml');
  const put = operationOf(api, 'putItem');
  assert.deepEqual(put.input.topLevel, ['id', 'name', 'price', 'tags']);
  assert.deepEqual(faultsOf(put, { id: 'a', name: 'n', note: 1 }), ['additionalProperties /note']);
  assert.deepEqual(faultsOf(put, { id: 'a', name: 'n', created: '2026-01-01T00:00:00Z' }), [
    'additionalProperties /created',
  ]);
  assert.deepEqual(faultsOf(put, { id: 'a', price: 0 }), ['exclusiveMinimum /price', 'required /name']);
  assert.deepEqual(put.partial, []);
  assert.equal(put.writes, true);
  assert.equal(operationOf(api, 'query').writes, false);
  assert.deepEqual(faultsOf(operationOf(api, 'patchItem'), { id: 'a', name: 'n', price: 1 }), ['oneOf ']);
  assert.deepEqual(faultsOf(operationOf(api, 'headers'), { Authorization: 'x' }), [
    'additionalProperties /Authorization',
  ]);
});

test('what cannot be enforced is partial, what cannot be called is refused, and the others work', async () => {
  const api = await load('every-style.yaml');
  const { partial } = operationOf(api, 'broken');
  assert.match(partial.join('\n'), /Nowhere.* leads to no schema/);
  assert.match(partial.join('\n'), /format `phone-number` is not known/);
  assert.match(partial.join('\n'), /look-around/);
  assert.match(partial.join('\n'), /remote\.yaml.* leads to no schema/);
  assert.deepEqual(
    api.refused.map(({ name, reason }) => `${name}: ${reason}`),
    ['upload: its body can only be sent as `application/octet-stream`'],
  );
  assert.deepEqual(operationOf(api, 'tree').partial, []);
});

test('answers declare fields for origins and facts', async () => {
  const { result } = operationOf(await load('every-style.yaml'), 'putItem');
  assert.equal(result?.declares('owner.name'), true);
  assert.equal(result?.declares('owner.age'), false);
});

test('Swagger 2.0 is read with its own parameters and bodies', async () => {
  const api = await load('swagger-2.json');
  assert.equal(api.basePath, '/v2');
  assert.deepEqual(roundTrip(api, 'listPets', { status: ['sold', 'free'], ids: [1, 2], limit: 5 }), {
    target: '/pets?status=sold&status=free&ids=1,2&limit=5',
    args: { status: ['sold', 'free'], ids: [1, 2], limit: 5 },
  });
  assert.deepEqual(faultsOf(operationOf(api, 'listPets'), { limit: 0 }), ['exclusiveMinimum /limit']);
  // A property named `$ref` is a property like any other.
  assert.deepEqual(roundTrip(api, 'addPet', { name: 'a', $ref: 'x' }).args, { name: 'a', $ref: 'x' });
  assert.deepEqual(faultsOf(operationOf(api, 'addPet'), { name: 'a', id: 5 }), ['additionalProperties /id']);
  assert.deepEqual(roundTrip(api, 'renamePet', { id: 5, name: 'a', status: 'b' }).args, {
    id: 5,
    name: 'a',
    status: 'b',
  });
  assert.deepEqual(
    api.refused.map(({ name, reason }) => `${name}: ${reason}`),
    ['uploadPhoto: it needs a file, which is no argument'],
  );
});

test('references lead across the files of a folder, and not out of it', async () => {
  const api = await load('shop/openapi.yaml');
  assert.equal(api.basePath, '/api');
  const change = operationOf(api, 'change_order');
  assert.deepEqual(faultsOf(change, { order_id: '44', status: null, parent: { amount: 1, parent: null } }), []);
  assert.deepEqual(faultsOf(change, { order_id: 'x', parent: { amount: 0, more: 1 } }), [
    'pattern /order_id',
    'anyOf /parent',
    'additionalProperties /parent/more',
  ]);
  assert.equal(operationOf(api, 'get_orders_order_id').result?.declares('parent.parent.status'), true);
  assert.match(operationOf(api, 'outside').partial.join(), /every-style\.yaml.* leads to no schema/);
});

test('operations are selected and renamed by id, tag, name and path', async () => {
  const names = async (selection: ApiSelection): Promise<string[]> =>
    (await load('every-style.yaml', selection)).operations.map(({ name }) => name);
  assert.deepEqual(await names({ include: ['tag:search', 'simple*'] }), ['simple', 'simpleExploded', 'query']);
  assert.deepEqual(await names({ include: ['* /items/*'], exclude: ['PATCH /items/*'] }), ['putItem', 'clashItem']);
  assert.deepEqual(await names({ include: ['find'], rename: { query: 'find' } }), ['find']);
  await assert.rejects(
    load('every-style.yaml', { rename: { query: 'headers' } }),
    (error) =>
      error instanceof ApiError && /GET \/headers and GET \/query|GET \/query and GET \/headers/.test(error.message),
  );
});

test('files that are too large, no YAML, or no such document are refused with a sentence', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'openapi-'));
  try {
    const rejects = async (text: string, expected: RegExp, maxBytes = 1_000_000): Promise<void> => {
      const path = join(folder, 'openapi.yaml');
      await writeFile(path, text);
      await assert.rejects(async () => readApi(await loadApiFiles(path, { maxBytes })), expected);
    };
    await rejects('openapi: 3.0.0\npaths: {}\n', /too large/, 10);
    await rejects('a: [1', /openapi\.yaml/);
    await rejects('openapi: 4.0.0\n', /others are not read/);
    await rejects('- 1\n', /must be an object/);
    await rejects(
      `a: &a [x]\n${'b: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\n'.replaceAll('b', 'c')}`.repeat(1),
      /others are not read/,
    );
    const bomb = Array.from(
      { length: 12 },
      (_, i) =>
        `k${i}: &k${i} [${
          i === 0
            ? 'x'
            : Array(9)
                .fill(`*k${i - 1}`)
                .join()
        }]`,
    );
    await rejects(bomb.join('\n'), /alias/i);
    await assert.rejects(loadApiFiles(join(folder, 'none.yaml')), /does the file exist/);
  } finally {
    await rm(folder, { recursive: true });
  }
});

test('a link out of the folder is not followed', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'openapi-'));
  try {
    await mkdir(join(folder, 'api'));
    await writeFile(join(folder, 'secret.json'), '{"S": {"type": "string"}}');
    await symlink(join(folder, 'secret.json'), join(folder, 'api', 'link.json'));
    const body = {
      content: { 'application/json': { schema: { type: 'object', properties: { a: { $ref: 'link.json#/S' } } } } },
    };
    const document = { openapi: '3.1.0', paths: { '/a': { post: { requestBody: body } } } };
    await writeFile(join(folder, 'api', 'openapi.json'), JSON.stringify(document));
    const files = await loadApiFiles(join(folder, 'api', 'openapi.json'));
    assert.equal(files.files.size, 1);
    assert.match(readApi(files).operations[0]?.partial.join() ?? '', /link\.json#\/S` leads to no schema/);
  } finally {
    await rm(folder, { recursive: true });
  }
});

test('YAML is read as JSON would be', () => {
  assert.deepEqual(parseText('a: 2026-01-01\nb: yes\nc: 0x10\nd: ~\n1: x\n', 'x'), {
    a: '2026-01-01',
    b: 'yes',
    c: 16,
    d: null,
    '1': 'x',
  });
  assert.deepEqual(parseText('{a: [1, 2]}', 'x'), { a: [1, 2] });
});

test('documents are held against the schema of their version', async () => {
  const complaintsOf = async (name: string): Promise<readonly string[]> =>
    validateApiDocument(await loadApiFiles(fileURLToPath(new URL(`../vectors/openapi/${name}`, import.meta.url))));
  assert.deepEqual(await complaintsOf('every-style.yaml'), ["Can't resolve #/components/schemas/Nowhere"]);
  assert.match((await complaintsOf('swagger-2.json')).join('\n'), /responses/);
  const root = 'file:///a.json';
  const wrong = { openapi: '3.1.0', info: { title: 'x' }, paths: {} };
  assert.match((await validateApiDocument({ root, files: new Map([[root, wrong]]) })).join('\n'), /`\/info` .*version/);
});
