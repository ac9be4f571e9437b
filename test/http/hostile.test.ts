import assert from 'node:assert/strict';
import { hash } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, test } from 'node:test';
import { callerOf, createAuthenticator } from '../../gateway/http/authenticate.ts';
import { readJsonBody } from '../../gateway/http/body.ts';
import { readCallHeaders } from '../../gateway/http/call-headers.ts';
import type { EdgeExchange } from '../../gateway/http/edge-exchange.ts';
import { createHttpUpstream, type HttpUpstream } from '../../gateway/http/forward.ts';
import { createOriginCheck } from '../../gateway/http/origin.ts';
import { fault } from '../../gateway/http/problems.ts';
import { createEdgeServer, type EdgeServer } from '../../gateway/http/server.ts';
import vectors from '../vectors/http/hostile.json' with { type: 'json' };
import { sendRaw } from './raw.ts';

interface Row {
  readonly id: string;
  readonly request: string;
  readonly status: number;
  readonly code?: string;
  readonly pointer?: string;
  /** Requests that the backend sees. */
  readonly forwarded?: number;
}

const rows: readonly Row[] = vectors;
const seen: { readonly url: string; readonly headers: readonly string[] }[] = [];
const authenticate = createAuthenticator({
  credentials: [{ digest: digest('agent-key'), name: 'desk', host: false, agents: new Set(['desk']) }],
  approvers: [{ name: 'ana', digests: [digest('approver-key')] }],
  agents: new Set(['desk']),
});

let backend: Server;
let upstream: HttpUpstream;
let edge: EdgeServer;
let port = 0;

function digest(key: string): string {
  return `sha256:${hash('sha256', key, 'hex')}`;
}

/** A route of two calls, put together from the parts under test as the gateway puts them together. */
async function route(exchange: EdgeExchange): Promise<void> {
  const identity = authenticate(exchange.header('authorization'), exchange.request.socket);
  if ('problem' in identity) return exchange.problem(identity.problem);
  const caller = callerOf(identity);
  if ('problem' in caller) return exchange.problem(caller.problem);
  const allow = { '/shop/orders/a1': 'GET', '/shop/charges': 'POST' }[exchange.path];
  if (allow === undefined) return exchange.problem(fault('no_route', 'nothing is served at this path'));
  if (allow !== exchange.method) {
    return exchange.problem(fault('method_not_allowed', 'the path takes another method'), [allow]);
  }
  const call = readCallHeaders(exchange);
  if ('problem' in call) return exchange.problem(call.problem);
  let body: string | undefined;
  if (exchange.method === 'POST') {
    const read = await readJsonBody(exchange, 1024);
    if ('problem' in read) return exchange.problem(read.problem);
    body = JSON.stringify(read.value);
  }
  const answer = await upstream.forward({
    method: exchange.method,
    rawPath: exchange.path,
    headers: [],
    ...(body === undefined ? {} : { body }),
    timeoutMs: 2_000,
    wholeUpTo: 1024,
  });
  assert.equal(answer.kind, 'answer');
  exchange.json(200, '{}');
}

before(async () => {
  backend = createServer((request, response) => {
    seen.push({ url: request.url ?? '', headers: request.rawHeaders });
    request.resume().on('end', () => response.end('{}'));
  });
  await new Promise<void>((resolve) => backend.listen(0, '127.0.0.1', resolve));
  upstream = createHttpUpstream({ origin: `http://127.0.0.1:${(backend.address() as AddressInfo).port}` });
  edge = createEdgeServer({
    listen: { host: '127.0.0.1', port: 0 },
    checkOrigin: createOriginCheck({ loopback: true }),
    handle: route,
    onError: (error) => {
      throw error;
    },
  });
  port = (await edge.listen()).port;
});

after(async () => {
  await edge.close({ graceMs: 1_000 });
  await upstream.close();
  backend.close();
});

for (const row of rows) {
  test(`hostile request ${row.id} is answered ${row.status}`, async () => {
    seen.length = 0;
    const answer = await sendRaw(port, row.request);
    assert.equal(answer.status, row.status, answer.text);
    if (row.code !== undefined) {
      assert.equal(answer.headers['content-type'], 'application/problem+json');
      const problem: unknown = JSON.parse(answer.body);
      assert.ok(typeof problem === 'object' && problem !== null && 'type' in problem && 'detail' in problem);
      assert.equal(problem.type, `urn:toolgate:${row.code}`, answer.body);
      if (row.pointer !== undefined) assert.equal('pointer' in problem ? problem.pointer : undefined, row.pointer);
    }
    assert.equal(seen.length, row.forwarded ?? 0, 'what the backend saw');
    for (const { headers } of seen) {
      const names = headers.filter((_, at) => at % 2 === 0).map((name) => name.toLowerCase());
      assert.deepEqual(
        names.filter((name) => name.startsWith('toolgate-') || name === 'authorization' || name === 'idempotency-key'),
        [],
      );
    }
  });
}
