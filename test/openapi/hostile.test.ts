import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { loadGateway } from '../../gateway/catalogue/load-gateway.ts';
import { catalogueDeps } from '../../gateway/load/catalogue-deps.ts';
import { startTestGateway, type TestGateway } from '../harness/gateway.ts';
import { type EchoBackend, startEcho } from './echo-backend.ts';

function properties(count: number): Record<string, object> {
  return Object.fromEntries(
    Array.from({ length: count }, (_, i) => [`property_${i}`, { type: 'string', maxLength: 40 }]),
  );
}

/** Nested so deep that nothing could be nested so by hand. */
function deepSchema(depth: number): object {
  let schema: object = { type: 'string' };
  for (let i = 0; i < depth; i++) schema = { type: 'object', properties: { a: schema } };
  return schema;
}

const LINKS = 400;

/** Schemas of which each refers to the next one. */
function chain(name: string, link: (next: object) => object): Record<string, object> {
  const links = Array.from({ length: LINKS }, (_, i) => [
    `${name}${i}`,
    i === LINKS - 1 ? { type: 'object' } : link({ $ref: `#/components/schemas/${name}${i + 1}` }),
  ]);
  return Object.fromEntries(links);
}

const BODIES: Readonly<Record<string, object>> = {
  catastrophic: {
    type: 'object',
    properties: {
      text: { type: 'string', pattern: '^(a+)+$' },
      mail: { type: 'string', pattern: '^(([a-z])+.)+[A-Z]([a-z])+$' },
    },
  },
  lookaround: { type: 'object', properties: { text: { type: 'string', pattern: '^(?!.*\\.\\.)a+$' } } },
  // Listed, and called with fewer: test/policy compiles one of 10,000.
  many: { type: 'object', properties: properties(10_000) },
  several: { type: 'object', properties: properties(1_000) },
  cyclic: { $ref: '#/components/schemas/Node' },
  selfish: { $ref: '#/components/schemas/Selfish' },
  ping: { $ref: '#/components/schemas/Ping' },
  nowhere: { type: 'object', properties: { a: { $ref: '#/components/schemas/Nowhere' }, b: { type: 'integer' } } },
  remote: { type: 'object', properties: { a: { $ref: 'http://169.254.169.254/latest/meta-data' } } },
  local: { type: 'object', properties: { a: { $ref: '../../../../etc/passwd' } } },
  format: { type: 'object', properties: { phone: { type: 'string', format: 'phone-number' } } },
  proto: {
    type: 'object',
    properties: { ok: { type: 'string' } },
    anyOf: [{ required: ['ok'] }, { required: ['no'] }],
  },
  wrong: { type: 'object', properties: { a: { type: 'strin' }, b: { minimum: 'five' } } },
  chain: { $ref: '#/components/schemas/Link0' },
  allOfChain: { $ref: '#/components/schemas/All0' },
  good: { type: 'object', required: ['name'], properties: { name: { type: 'string' } } },
};

const DOCUMENT = {
  openapi: '3.1.0',
  info: { title: 'Hostile', version: '1' },
  paths: {
    ...Object.fromEntries(
      Object.entries(BODIES).map(([name, schema]) => [
        `/${name}`,
        { post: { operationId: name, requestBody: { required: true, content: { 'application/json': { schema } } } } },
      ]),
    ),
    '/gone': { $ref: '#/components/pathItems/Nowhere' },
    '/loop': { $ref: '#/paths/~1loop' },
    '/lost': { post: { operationId: 'lost', parameters: [{ $ref: '#/components/parameters/Nowhere' }] } },
    '/lost-body': { post: { operationId: 'lostBody', requestBody: { $ref: '#/components/requestBodies/Nowhere' } } },
    '/undeclared/{id}': { get: { operationId: 'undeclared' } },
    '/elsewhere': { get: { operationId: 'elsewhere', servers: [{ url: 'http://169.254.169.254/' }] } },
    '/broken/{id': { get: { operationId: 'brokenPath' } },
  },
  components: {
    schemas: {
      Node: {
        type: 'object',
        properties: { name: { type: 'string' }, next: { $ref: '#/components/schemas/Node' } },
      },
      ...chain('Link', (next) => ({ type: 'object', properties: { a: next } })),
      ...chain('All', (next) => ({ allOf: [next] })),
      Selfish: { $ref: '#/components/schemas/Selfish' },
      Ping: { allOf: [{ $ref: '#/components/schemas/Pong' }], type: 'object' },
      Pong: { anyOf: [{ $ref: '#/components/schemas/Ping' }, { type: 'object' }] },
    },
  },
};

let backend: EchoBackend;
let gateway: TestGateway;

before(async () => {
  backend = await startEcho();
  const started = process.cpuUsage();
  gateway = await startTestGateway(config(backend.url), { files: { 'api.json': JSON.stringify(DOCUMENT) } });
  const { user } = process.cpuUsage(started);
  assert.ok(user < 5_000_000, `the start took ${user / 1_000} ms of CPU`);
});

after(async () => {
  await gateway.close();
  await backend.close();
});

function config(upstream: string): object {
  return { agents: { desk: {} }, routes: [{ name: 'api', path: '/api', upstream, openapi: './api.json' }] };
}

interface Outcome {
  readonly status: number;
  readonly decision: string | undefined;
  readonly reasons: readonly string[];
  readonly pointer: string | undefined;
  readonly cpuMs: number;
}

async function call(tool: string, args: object): Promise<Outcome> {
  const started = process.cpuUsage();
  const body = { tool: `api/${tool}`, arguments: args, session: `hostile-${tool}` };
  const answer = await gateway.request('POST', '/v1/check', { body });
  const cpuMs = process.cpuUsage(started).user / 1_000;
  const check = answer.json as { decision?: string; reasons?: string[]; pointer?: string };
  return {
    status: answer.status,
    decision: check.decision,
    reasons: check.reasons ?? [],
    pointer: check.pointer,
    cpuMs,
  };
}

test('an operation that cannot be called is left out and named, and the others are tools', async () => {
  const { problems } = await loadGateway(gateway.configFile, { env: {} }, catalogueDeps());
  const refused = problems.filter(({ code }) => code === 'operation_refused').map(({ message }) => message);
  // The first three are told one by one, then how many more there are.
  assert.equal(refused.length, 4);
  const all = await gateway.request('GET', '/v1/tools');
  const { tools } = all.json as { tools: { name: string; partial?: string[] }[] };
  assert.deepEqual(
    tools.map(({ name }) => name).sort(),
    [...Object.keys(BODIES), 'lost'].map((name) => `api/${name}`).sort(),
  );
  const partial = new Map(tools.map(({ name, partial }) => [name.slice(4), partial ?? []]));
  const expected: readonly (readonly [string, RegExp])[] = [
    ['lookaround', /pattern/],
    ['nowhere', /Nowhere/],
    ['remote', /169\.254/],
    ['local', /passwd/],
    ['format', /phone-number/],
    ['wrong', /type|minimum/],
    ['lost', /reference that leads nowhere/],
  ];
  for (const [name, why] of expected) assert.match((partial.get(name) ?? []).join('; '), why, name);
  for (const name of ['catastrophic', 'many', 'several', 'cyclic', 'good'])
    assert.deepEqual(partial.get(name), [], name);
});

test('a catastrophic pattern is judged in linear time', async () => {
  const long = `${'a'.repeat(50_000)}!`;
  const { decision, pointer, cpuMs } = await call('catastrophic', { text: long });
  assert.deepEqual([decision, pointer], ['refuse', '/text']);
  assert.ok(cpuMs < 3_000, `${cpuMs} ms`);
  assert.equal((await call('catastrophic', { text: 'aaa' })).decision, 'confirm');
});

test('a schema of thousands of properties is compiled and checked in bounded time', async () => {
  const all = Object.fromEntries(Object.keys(properties(1_000)).map((name) => [name, 'x']));
  const whole = await call('several', all);
  assert.equal(whole.decision, 'confirm');
  const { pointer, cpuMs } = await call('several', { ...all, property_1000: 'x' });
  assert.equal(pointer, '/property_1000');
  assert.ok(whole.cpuMs < 5_000 && cpuMs < 3_000, `${whole.cpuMs} ms, then ${cpuMs} ms`);
});

test('schemas that refer to themselves are followed as far as the arguments go', async () => {
  let nested: object = { name: 'last' };
  for (let i = 0; i < 40; i++) nested = { name: 'x', next: nested };
  assert.equal((await call('cyclic', nested)).decision, 'confirm');
  assert.equal((await call('cyclic', { next: { next: { nmae: 'x' } } })).pointer, '/next/next/nmae');
  const deep = `${'{"next":'.repeat(5_000)}{}${'}'.repeat(5_000)}`;
  const body = `{"tool":"api/cyclic","session":"deep","arguments":${deep}}`;
  const { status } = await gateway.request('POST', '/v1/check', { body });
  assert.ok(status >= 400 && status < 500, String(status));
  for (const tool of ['selfish', 'ping']) {
    const { decision, cpuMs } = await call(tool, { body: { a: 1 } });
    assert.notEqual(decision, 'allow', tool);
    assert.ok(cpuMs < 1_000, `${tool}: ${cpuMs} ms`);
  }
});

test('what a partial tool cannot judge is asked, what it can judge is refused', async () => {
  assert.ok((await call('nowhere', { b: 1 })).reasons.includes('schema_partial'));
  assert.equal((await call('nowhere', { b: 'x' })).pointer, '/b');
  assert.equal((await call('nowhere', { c: 1 })).pointer, '/c');
  assert.ok((await call('format', { phone: '1' })).reasons.includes('schema_partial'));
});

test('names that every object has are undeclared here too', async () => {
  for (const name of ['constructor', 'toString', '__proto__', 'valueOf', 'hasOwnProperty']) {
    const body = `{"tool":"api/proto","session":"s-${name}","arguments":{"ok":"x","${name}":1}}`;
    const answer = await gateway.request('POST', '/v1/check', { body });
    const { reason, pointer } = answer.json as { reason?: string; pointer?: string };
    if (answer.status !== 400) assert.deepEqual([reason, pointer], ['argument_schema', `/${name}`], answer.text);
  }
});

test('a chain of thousands of references is bounded, and the good operation works', async () => {
  for (const tool of ['chain', 'allOfChain']) {
    const { decision, cpuMs } = await call(tool, { a: { a: {} } });
    assert.notEqual(decision, 'allow');
    assert.ok(cpuMs < 5_000, `${tool}: ${cpuMs} ms`);
  }
  assert.equal((await call('good', { name: 'x' })).decision, 'confirm');
  assert.equal(backend.arrived.length, 0);
});

const WHOLE: readonly (readonly [string, string, RegExp])[] = [
  ['no OpenAPI document', '{"hello": 1}', /openapi|swagger/],
  ['YAML that is broken', 'openapi: 3.1.0\npaths: [', /api\.json/],
  ['YAML that grows by its aliases', bomb(), /api\.json|alias/i],
  ['another version', '{"openapi": "4.0.0", "paths": {}}', /version|3\.0/],
  [
    'two operations of one name',
    '{"openapi":"3.1.0","paths":{"/a":{"get":{"operationId":"x"}},"/b":{"get":{"operationId":"x"}}}}',
    /GET \/b and GET \/a/,
  ],
  ['a document nested beyond every bound', JSON.stringify(deepSchema(1_000)), /deep/],
  [
    'a base path that is not plain',
    '{"openapi":"3.1.0","servers":[{"url":"/a%2fb"}],"paths":{"/a":{"get":{"operationId":"x"}}}}',
    /base path/,
  ],
];

function bomb(): string {
  const lines = ['a0: &a0 [x, x, x, x, x, x, x, x, x, x]'];
  for (let i = 1; i < 9; i++)
    lines.push(`a${i}: &a${i} [${Array.from({ length: 10 }, () => `*a${i - 1}`).join(', ')}]`);
  return `openapi: 3.1.0\n${lines.join('\n')}\n`;
}

for (const [what, text, why] of WHOLE) {
  test(`refused when it is loaded, with its place: ${what}`, async () => {
    const started = process.cpuUsage();
    await assert.rejects(startTestGateway(config(backend.url), { files: { 'api.json': text } }), (error: Error) => {
      assert.match(error.message, /gateway\.yaml:\d+:\d+: error: the document of `api` is not served/);
      assert.match(error.message, why);
      return true;
    });
    assert.ok(process.cpuUsage(started).user < 3_000_000);
  });
}
