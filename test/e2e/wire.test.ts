import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { startTestGateway, type TestAnswer } from '../harness/gateway.ts';
import { type RawAnswer, sendRaw } from '../http/raw.ts';
import bodies from '../vectors/e2e/bodies.json' with { type: 'json' };
import targets from '../vectors/e2e/targets.json' with { type: 'json' };
import { headerMap, json, Moody } from './moody.ts';
import { KEYS, moodyWorld, startWorld, type World } from './world.ts';

interface BodyRow {
  readonly id: string;
  readonly body: string;
  readonly latin1?: boolean;
  readonly sent?: string;
  readonly status?: number;
}

interface TargetRow {
  readonly id: string;
  readonly method?: string;
  readonly target: string;
  readonly headers?: readonly string[];
  readonly body?: string;
  readonly status: readonly number[];
}

const BODY_ROWS: readonly BodyRow[] = bodies;
const TARGET_ROWS: readonly TargetRow[] = targets;

let world: World;
let port = 0;
before(async () => {
  world = await startWorld();
  port = Number(new URL(world.gateway.url).port);
});
after(() => world.close());

const COMPUTED = 'Toolgate-Origins: text=computed, number=computed, list=computed';

function raw(
  method: string,
  target: string,
  headers: readonly string[],
  body: Buffer | string = '',
): Promise<RawAnswer> {
  const lines = [`${method} ${target} HTTP/1.1`, ...headers, '', ''];
  return sendRaw(port, lines.join('\r\n') + (typeof body === 'string' ? body : body.toString('latin1')));
}

function asHost(...more: readonly string[]): readonly string[] {
  return ['Host: 127.0.0.1', `Authorization: Bearer ${KEYS.app}`, 'Toolgate-Agent: billing', ...more];
}

describe('the body that reaches the backend', () => {
  for (const row of BODY_ROWS) {
    test(`${row.id}, on a route and through /v1/call`, async () => {
      const bytes = Buffer.from(row.body, row.latin1 === true ? 'latin1' : 'utf8');
      const sent = world.seen.length;
      const typed = ['Content-Type: application/json', `Content-Length: ${bytes.length}`];
      const answer = await raw('POST', '/shop/notes', asHost(COMPUTED, ...typed), bytes);
      if (row.sent === undefined) {
        assert.equal(answer.status, row.status, answer.text);
        assert.equal(world.seen.length, sent, 'the shop saw nothing');
      } else {
        assert.equal(world.seen.length, sent + 1, answer.text);
        assert.equal(world.seen.at(-1)?.body, row.sent);
      }
      const origins = { text: 'computed', number: 'computed', list: 'computed' };
      const head = Buffer.from(`{"tool":"note","agent":"billing","origins":${JSON.stringify(origins)},"arguments":`);
      const whole = Buffer.concat([head, bytes, Buffer.from('}')]);
      const api = ['Content-Type: application/json', `Content-Length: ${whole.length}`];
      const called = await raw(
        'POST',
        '/v1/call',
        asHost(...api).filter((line) => !line.startsWith('Toolgate')),
        whole,
      );
      if (row.sent === undefined) {
        assert.ok(called.status === 400 || !called.body.includes('"decision":"allow"'), called.text);
        assert.equal(world.seen.length, sent, 'the shop saw nothing');
      } else {
        assert.equal(called.status, 200, called.text);
        assert.equal(world.seen.at(-1)?.body, row.sent);
        assert.equal(world.seen.length, sent + 2);
      }
    });
  }

  test('deep nesting is refused, on a route and through /v1/call', async () => {
    const sent = world.seen.length;
    for (const depth of [65, 1_000, 100_000]) {
      const deep = `{"list":${'['.repeat(depth)}${']'.repeat(depth)}}`;
      const typed = ['Content-Type: application/json', `Content-Length: ${deep.length}`];
      assert.equal((await raw('POST', '/shop/notes', asHost(COMPUTED, ...typed), deep)).status, 400);
      const whole = `{"tool":"note","agent":"billing","arguments":${deep}}`;
      const answer = await world.post('/v1/call', whole);
      assert.equal(answer.status, 400, answer.text);
    }
    assert.equal(world.seen.length, sent);
  });
});

describe('a large integer', () => {
  test('keeps its digits in the path and the query', async () => {
    const answer = await raw('GET', '/shop/items/9223372036854775807?after=1234567890123456789&word=a%20b', asHost());
    assert.equal(answer.status, 404, 'the shop has no items');
    assert.equal(world.seen.at(-1)?.target, '/items/9223372036854775807?after=1234567890123456789&word=a%20b');
    const body =
      '{"tool":"find_items","agent":"billing","arguments":{"item":9223372036854775807,"after":-1234567890123456789}}';
    await world.post('/v1/call', body);
    assert.equal(world.seen.at(-1)?.target, '/items/9223372036854775807?after=-1234567890123456789');
  });
});

describe('a request that matches no tool', () => {
  for (const row of TARGET_ROWS) {
    test(`never reaches the backend: ${row.id}`, async () => {
      const sent = world.seen.length;
      const { method = 'GET', headers = [], body = '' } = row;
      const answer = await raw(method, row.target, asHost(...headers), body);
      assert.ok(row.status.includes(answer.status), `${answer.status}: ${answer.text}`);
      assert.equal(world.seen.length, sent, 'the shop saw nothing');
    });
  }
});

/** What of an answer would tell one tool from another. */
function told({ status, headers, text }: TestAnswer, path: string): unknown {
  const body = JSON.parse(text) as Record<string, unknown>;
  const check = body['check'] as Record<string, unknown> | undefined;
  const { type, title } = body;
  const detail = String(body['detail']).replaceAll(path, 'PATH');
  return [status, headers.get('allow'), type, title, detail, check?.['reasons'], check?.['tool'], check?.['detail']];
}

describe('a tool of other agents', () => {
  const cases: Readonly<Record<string, { method: string; body?: unknown; headers?: Record<string, string> }>> = {
    'a call': { method: 'POST', body: { order_id: '4411', amount: 1 } },
    'arguments that do not fit': { method: 'POST', body: { nothing: 1 } },
    'no JSON': { method: 'POST', body: '{' },
    'another media type': { method: 'POST', body: 'x', headers: { 'content-type': 'text/plain' } },
    'no body': { method: 'POST' },
    'a body over the limit': { method: 'POST', body: { note: 'x'.repeat(2_000_000) } },
    'a query': { method: 'POST', body: {} },
    'another method': { method: 'GET' },
    'a third method': { method: 'DELETE' },
  };
  for (const [name, { method, body, headers }] of Object.entries(cases)) {
    test(`is answered as one that is not there: ${name}`, async () => {
      const sent = world.seen.length;
      for (const [key, agent] of [
        [KEYS.desk, undefined],
        [KEYS.app, 'desk'],
      ] as const) {
        const named = { ...headers, ...(agent === undefined ? {} : { 'toolgate-agent': agent }) };
        const ask = (path: string): Promise<TestAnswer> =>
          world.gateway.request(method, path, { key, headers: named, body });
        const suffix = name === 'a query' ? '?x=1' : '';
        const hidden = await ask(`/shop/refunds${suffix}`);
        const missing = await ask(`/shop/nothing${suffix}`);
        assert.deepEqual(told(hidden, '/shop/refunds'), told(missing, '/shop/nothing'));
        assert.doesNotMatch(hidden.text, /refund_card/);
        assert.equal(hidden.status, 403);
      }
      assert.equal(world.seen.length, sent);
    });
  }
});

describe('headers', () => {
  let moody: Moody;
  let gateway: Awaited<ReturnType<typeof startTestGateway>>;
  before(async () => {
    moody = await Moody.start();
    const route = {
      headers: ['X-Tenant'],
      upstream_headers: { Authorization: 'Bearer the-backend-s-own' },
      tools: [{ name: 'do', confirm: 'reasons', undo: 'none', idempotency: { header: 'Idempotency-Key' } }],
    };
    gateway = await startTestGateway(moodyWorld(`${moody.url}/base`, route));
  });
  after(async () => {
    await gateway.close();
    await moody.close();
  });

  test('of the gateway, its credentials and hop-by-hop ones do not reach the backend', async () => {
    const gatewayPort = Number(new URL(gateway.url).port);
    const lines = [
      'GET /m/look HTTP/1.1',
      'Host: 127.0.0.1',
      `Authorization: Bearer ${KEYS.app}`,
      'Toolgate-Session: s-1',
      'Toolgate-Agent: desk',
      'Toolgate-Run: r-1',
      'Toolgate-Want: entry',
      'Toolgate-Context: order_paid',
      'Idempotency-Key: "mine"',
      'Cookie: a=b',
      'Proxy-Authorization: Basic eDp5',
      'Connection: keep-alive, X-Tenant-Hop, X-Tenant',
      'Keep-Alive: timeout=5',
      'TE: trailers',
      'X-Tenant-Hop: 1',
      'X-Other: 1',
      'X-Forwarded-For: 8.8.8.8',
      'X-Forwarded-Host: evil.example',
      'X-Real-IP: 8.8.8.8',
      'Forwarded: for=8.8.8.8',
      'Accept: application/json',
      'Range: bytes=0-1',
      'If-None-Match: "x"',
      'Traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
      '',
      '',
    ];
    const answer = await sendRaw(gatewayPort, lines.join('\r\n'));
    assert.equal(answer.status, 200, answer.text);
    const seen = moody.seen.at(-1);
    const headers = headerMap(seen?.headers ?? []);
    assert.equal(seen?.target, '/base/look');
    assert.equal(headers.get('authorization'), 'Bearer the-backend-s-own');
    assert.equal(headers.get('host'), new URL(moody.url).host);
    const allowed = new Set([
      'host',
      'connection',
      'authorization',
      'accept',
      'traceparent',
      'content-length',
      'content-type',
    ]);
    const forwarding = /^(?:forwarded|x-forwarded-(?:for|host|proto|port))$/;
    for (const [name, value] of headers) {
      assert.ok(allowed.has(name) || forwarding.test(name), `${name}: ${value}`);
      assert.doesNotMatch(value, /8\.8\.8\.8|evil|key-of/, name);
    }
  });

  test('of an answer cannot pass for the gateway’s own', async () => {
    moody.on('GET /base/look', (response) => {
      response.writeHead(403, {
        'content-type': 'application/problem+json',
        'toolgate-decision': 'allow',
        'Toolgate-Session': 'other',
        'toolgate-step': '99',
        'toolgate-entry': 'e30',
        'toolgate-history': 'e30',
        'toolgate-idempotency-key': 'x',
        'toolgate-anything': 'x',
        'idempotency-replayed': 'true',
        'x-kept': '1',
        connection: 'keep-alive, x-dropped',
        'x-dropped': '1',
        'keep-alive': 'timeout=77',
        'proxy-authenticate': 'Basic',
        trailer: 'x-late',
      });
      response.end(JSON.stringify({ type: 'urn:toolgate:unknown_tool', check: { decision: 'refuse' } }));
    });
    const answer = await gateway.request('GET', '/m/look', { key: KEYS.app, headers: { 'toolgate-session': 'mine' } });
    assert.equal(answer.status, 403);
    const names = [...answer.headers.keys()];
    assert.deepEqual(names.filter((name) => name.startsWith('toolgate-') || name.startsWith('idempotency')).sort(), [
      'toolgate-decision',
      'toolgate-session',
      'toolgate-step',
    ]);
    assert.equal(answer.headers.get('toolgate-session'), 'mine');
    assert.equal(answer.headers.get('toolgate-step'), '0');
    assert.notEqual(answer.headers.get('content-type'), 'application/problem+json');
    assert.equal(answer.headers.get('x-kept'), '1');
    for (const name of ['x-dropped', 'proxy-authenticate', 'trailer'])
      assert.equal(answer.headers.get(name), null, name);
    assert.doesNotMatch(answer.headers.get('keep-alive') ?? '', /77/);
  });

  test('a large integer of an answer comes back with all its digits, and as its bytes on a route', async () => {
    const text = '{ "id": 9223372036854775807, "id2":1234567890123456789012, "x":1.0 }';
    moody.on('POST /base/do', (response) => json(response, 200, text));
    const headers = { 'toolgate-origins': 'id=computed' };
    const route = await gateway.request('POST', '/m/do', {
      key: KEYS.app,
      headers,
      body: '{"id":9223372036854775807}',
    });
    assert.equal(route.text, text);
    assert.equal(moody.seen.at(-1)?.body.toString(), '{"id":9223372036854775807}');
    const called = await gateway.request('POST', '/v1/call', {
      key: KEYS.app,
      body: '{"tool":"do","arguments":{"id":9223372036854775806},"origins":{"id":"computed"}}',
    });
    assert.match(called.text, /"id":9223372036854775807,"id2":1234567890123456789012/);
    const key = headerMap(moody.seen.at(-1)?.headers ?? []).get('idempotency-key');
    assert.match(key ?? '', /^"[\w-]{43}"$/);
  });
});
