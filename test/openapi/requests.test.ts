import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { startTestGateway, type TestGateway } from '../harness/gateway.ts';
import { type Case, makeCases, sendDirect } from './direct-client.ts';
import { type Arrived, type EchoBackend, startEcho, valuesOf } from './echo-backend.ts';

const DOCUMENT = readFileSync(new URL('../vectors/openapi/every-style.yaml', import.meta.url), 'utf8');
const REQUESTS = 100;

let backend: EchoBackend;
let gateway: TestGateway;

before(async () => {
  backend = await startEcho({ id: 'i-1' });
  backend.files.set('/openapi.yaml', DOCUMENT);
  const digest = `sha256:${createHash('sha256').update(DOCUMENT).digest('hex')}`;
  gateway = await startTestGateway({
    agents: { desk: {} },
    sessions: { max: 10_000 },
    routes: [
      {
        name: 'api',
        path: '/api',
        upstream: backend.url,
        openapi: { document: `${backend.url}/openapi.yaml`, digest },
        // What is asked before a write is tested elsewhere; here every request is to arrive.
        tools: [{ name: '*', writes: false }],
      },
    ],
  });
});

after(async () => {
  await gateway.close();
  await backend.close();
});

const HEADERS = ['x-trace', 'x-list', 'x-point', 'cookie', 'content-type'];

/** What of a request its arguments make; a multipart boundary is its sender's to choose. */
function essence(arrived: Arrived): unknown {
  const type = valuesOf(arrived, 'content-type')[0] ?? '';
  const boundary = /boundary=(\S+)/.exec(type)?.[1] ?? '\u0000';
  const headers = HEADERS.flatMap((name) => valuesOf(arrived, name).map((value) => `${name}: ${value}`));
  const { method, target, body } = arrived;
  return {
    method,
    target,
    headers: headers.map((line) => line.replace(boundary, 'B')),
    body: body.replaceAll(boundary, 'B'),
  };
}

/** Runs `send` for all cases, several at a time, and tells what arrived, in an order of its own. */
async function arrivals(cases: readonly Case[], send: (one: Case, lane: number) => Promise<void>): Promise<string[]> {
  backend.arrived.length = 0;
  const lanes = Array.from({ length: LANES }, (_, lane) => lane);
  await Promise.all(
    lanes.map(async (lane) => {
      for (const [at, one] of cases.entries()) if (at % LANES === lane) await send(one, lane);
    }),
  );
  return backend.arrived.map((arrived) => JSON.stringify(essence(arrived))).sort();
}

const LANES = 10;

test(`${REQUESTS} requests of every parameter style arrive by path and by call as from a direct client`, async () => {
  const cases = makeCases(REQUESTS, 7);
  const direct = await arrivals(cases, async ({ request }) => {
    await sendDirect(`${backend.url}/v1`, request);
  });
  assert.equal(new Set(direct).size, REQUESTS);
  const byPath = await arrivals(cases, async ({ tool, request }, lane) => {
    const answer = await sendDirect(`${gateway.url}/api`, request, { 'toolgate-session': `path-${lane}` });
    assert.equal(answer.status, 200, `${tool} ${request.target} ${request.body ?? ''} ${answer.text}`);
  });
  assert.deepEqual(byPath, direct);
  const byCall = await arrivals(cases, async ({ tool, args }, lane) => {
    const body = { tool: `api/${tool}`, arguments: args, session: `call-${lane}` };
    const answer = await gateway.request('POST', '/v1/call', { body });
    assert.equal(answer.status, 200, `${tool} ${JSON.stringify(args)} ${answer.text}`);
  });
  assert.deepEqual(byCall, direct);
});
