import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { EdgeExchange } from '../../gateway/http/edge-exchange.ts';
import { pickHeaders } from '../../gateway/http/headers.ts';
import { createEdgeServer } from '../../gateway/http/server.ts';
import { createTrustedProxies } from '../../gateway/http/trusted-proxies.ts';
import { forwardedHeaders } from '../../gateway/http/upstream-headers.ts';
import { sendRaw } from './raw.ts';

/** What `read` finds in requests with these header lines, one after another over one connection. */
async function reading<T>(requests: readonly (readonly string[])[], read: (exchange: EdgeExchange) => T): Promise<T[]> {
  const found: T[] = [];
  const server = createEdgeServer({
    listen: { host: '127.0.0.1', port: 0 },
    handle: (exchange) => {
      found.push(read(exchange));
      exchange.json(200, '{}');
    },
  });
  const { port } = await server.listen();
  const text = requests.map((lines) => `GET / HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`).join('');
  await sendRaw(port, text, { answers: requests.length });
  await server.close({ graceMs: 0 });
  assert.equal(found.length, requests.length);
  return found;
}

test('only named headers are picked, and never what belongs to the connection or the gateway', async () => {
  const lines = [
    'Host: a',
    'X-A: 1',
    'x-a: 2',
    'X-B: 3',
    'Connection: x-listed',
    'X-Listed: 4',
    'TE: trailers',
    'Toolgate-Session: s',
  ];
  const names = new Set(['x-a', 'x-listed', 'te', 'toolgate-session', 'connection']);
  assert.deepEqual(await reading([lines], ({ request }) => pickHeaders(request, names)), [['x-a', '1', 'x-a', '2']]);
});

test('what a stranger says of earlier hops is dropped, and what a trusted proxy says is added to', async () => {
  const lines = ['X-Forwarded-For: 6.6.6.6', 'X-Forwarded-Proto: https', 'Forwarded: for=6.6.6.6'];
  const requests = ['a', 'b'].map((host) => [`Host: ${host}`, ...lines]);
  const anew = (host: string): string[] => [
    'x-forwarded-for',
    '127.0.0.1',
    'x-forwarded-proto',
    'http',
    'x-forwarded-host',
    host,
    'forwarded',
    `for=127.0.0.1;host="${host}";proto=http`,
  ];
  assert.deepEqual(await reading(requests, (exchange) => forwardedHeaders(exchange)), [anew('a'), anew('b')]);
  const trusts = createTrustedProxies(['127.0.0.0/8']);
  const [added] = await reading(requests.slice(0, 1), (exchange) => forwardedHeaders(exchange, trusts));
  assert.deepEqual(added, [
    'x-forwarded-for',
    '6.6.6.6, 127.0.0.1',
    'x-forwarded-proto',
    'https',
    'x-forwarded-host',
    'a',
    'forwarded',
    'for=6.6.6.6, for=127.0.0.1;host="a";proto=http',
  ]);
});

test('trusted proxies are addresses and networks', () => {
  const trusts = createTrustedProxies(['10.0.0.0/8', '192.168.1.7', 'fd00::/8']);
  for (const address of ['10.1.2.3', '192.168.1.7', 'fd12::1']) assert.ok(trusts(address), address);
  for (const address of ['11.0.0.1', '192.168.1.8', 'fe80::1', '', 'localhost']) assert.ok(!trusts(address), address);
  assert.ok(!createTrustedProxies([])('127.0.0.1'));
  for (const entry of ['localhost', '10.0.0.0/33', '10.0.0.0/', '10.0.0/8', 'fd00::/129', '10.0.0.0/8/8', '']) {
    assert.throws(() => createTrustedProxies([entry]), TypeError, entry);
  }
});
