import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { startTestGateway, type TestGateway } from '../harness/gateway.ts';
import { type DirectRequest, sendDirect } from './direct-client.ts';
import { type EchoBackend, startEcho, valuesOf } from './echo-backend.ts';

const DOCUMENT = readFileSync(new URL('../vectors/openapi/every-style.yaml', import.meta.url), 'utf8');
const CASES = JSON.parse(readFileSync(new URL('../vectors/openapi/refused-requests.json', import.meta.url), 'utf8'));

interface RefusedCase extends DirectRequest {
  readonly why: string;
  readonly status: number;
  readonly code: string;
  readonly pointer?: string;
}

let backend: EchoBackend;
let gateway: TestGateway;

before(async () => {
  backend = await startEcho();
  gateway = await startTestGateway(
    {
      agents: { desk: {} },
      routes: [
        {
          name: 'api',
          path: '/api',
          upstream: backend.url,
          openapi: './api.yaml',
          headers: ['X-Trace', 'X-Passed'],
          tools: [{ name: '*', writes: false }],
        },
      ],
    },
    { files: { 'api.yaml': DOCUMENT } },
  );
});

after(async () => {
  await gateway.close();
  await backend.close();
});

for (const { why, status, code, pointer, ...request } of CASES as readonly RefusedCase[]) {
  test(`refused, and nothing is forwarded: ${why}`, async () => {
    backend.arrived.length = 0;
    const answer = await sendDirect(`${gateway.url}/api`, request, { 'toolgate-session': 'refusals' });
    assert.equal(answer.status, status, answer.text);
    const problem: { type: string; pointer?: string; check?: { pointer?: string; reason: string } } = JSON.parse(
      answer.text,
    );
    assert.equal(problem.type, `urn:toolgate:${code}`);
    if (pointer !== undefined) assert.equal(problem.check?.pointer, pointer, answer.text);
    assert.deepEqual(backend.arrived, []);
  });
}

test('undeclared arguments of a call by name are refused with their pointer', async () => {
  backend.arrived.length = 0;
  for (const [tool, args, pointer] of [
    ['query', { text: 'a', text2: 'b' }, '/text2'],
    ['query', { spread: { from: 'a', 'text&id': 'b' } }, '/spread/text&id'],
    ['putItem', { id: 'a', name: 'b', admin: true }, '/admin'],
    ['putItem', { id: 'a/b', name: 'b' }, '/id'],
    ['putItem', { id: 'a', name: 'b', created: '2026-01-01T00:00:00Z' }, '/created'],
    ['headers', { 'X-Trace': 'a\r\nX-Admin: 1' }, '/X-Trace'],
    ['headers', { Authorization: 'Bearer x' }, '/Authorization'],
    ['form', { name: 'a', point: { x: 1, z: 2 } }, '/point/z'],
  ] as const) {
    const body = { tool: `api/${tool}`, arguments: args, session: 'by-call' };
    const answer = await gateway.request('POST', '/v1/call', { body });
    const { check } = answer.json as { check?: { reason: string; pointer: string } };
    assert.deepEqual([check?.reason, check?.pointer], ['argument_schema', pointer], answer.text);
  }
  assert.deepEqual(backend.arrived, []);
});

test('headers that no operation declares are dropped, and a declared one comes from the checked argument alone', async () => {
  backend.arrived.length = 0;
  const headers = { 'x-trace': 'one', 'x-admin': 'yes', 'x-passed': 'kept', cookie: 'theme=dark; session=secret' };
  const request = { method: 'GET', target: '/headers', headers };
  const answer = await sendDirect(`${gateway.url}/api`, request, { 'toolgate-session': 'headers' });
  assert.equal(answer.status, 200, answer.text);
  const [arrived] = backend.arrived;
  assert.ok(arrived !== undefined);
  assert.deepEqual(valuesOf(arrived, 'x-trace'), ['one']);
  assert.deepEqual(valuesOf(arrived, 'x-passed'), ['kept']);
  assert.deepEqual(valuesOf(arrived, 'x-admin'), []);
  assert.deepEqual(valuesOf(arrived, 'cookie'), ['theme=dark']);
});
