import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import type { TLSSocket } from 'node:tls';
import { startTestGateway } from '../harness/gateway.ts';
import { makeCertificate } from '../http/backends.ts';

const ORDERS = [{ name: 'get_order', method: 'GET', path: '/orders/{order_id}' }];
const TRACE = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';

test('an upstream is believed by the authority that its route names, and shown the certificate of the route', async (t) => {
  const server = makeCertificate('orders.internal');
  const client = makeCertificate('gateway.internal');
  const other = makeCertificate('orders.internal');
  if (server === undefined || client === undefined || other === undefined) {
    return t.skip('the openssl program is not installed');
  }
  const shown: unknown[] = [];
  const traces: unknown[] = [];
  const backend = createServer({ ...server, ca: client.cert, requestCert: true, rejectUnauthorized: true });
  backend.on('request', (request, response) => {
    shown.push((request.socket as TLSSocket).getPeerCertificate().subject.CN);
    traces.push(request.headers['traceparent']);
    response.setHeader('content-type', 'application/json').end('{"status":"open"}');
  });
  backend.listen(0, '127.0.0.1');
  await once(backend, 'listening');
  const { port } = backend.address() as AddressInfo;
  const route = (name: string, upstream_tls: object | undefined): object => ({
    name,
    upstream: `https://127.0.0.1:${port}`,
    http: ORDERS,
    ...(upstream_tls === undefined ? {} : { upstream_tls }),
  });
  const whole = { ca: 'server.crt', cert: 'client.crt', key: 'client.key', server_name: 'orders.internal' };
  const { cert: _cert, key: _key, ...nothingShown } = whole;
  const gateway = await startTestGateway(
    {
      agents: { desk: {} },
      routes: [
        route('good', whole),
        route('other-authority', { ...whole, ca: 'other.crt' }),
        route('nothing-shown', nothingShown),
        route('other-name', { ...whole, server_name: 'stock.internal' }),
        route('public', undefined),
      ],
    },
    {
      files: {
        'server.crt': server.cert,
        'client.crt': client.cert,
        'client.key': client.key,
        'other.crt': other.cert,
      },
    },
  );
  try {
    const headers = { traceparent: TRACE };
    assert.equal((await gateway.request('GET', '/good/orders/1', { headers })).status, 200);
    assert.deepEqual([shown, traces], [['gateway.internal'], [TRACE]]);
    const bad = { traceparent: TRACE.toUpperCase() };
    assert.equal((await gateway.request('GET', '/good/orders/1', { headers: bad })).status, 200);
    const call = { tool: 'good/get_order', arguments: { order_id: '1' } };
    assert.equal((await gateway.request('POST', '/v1/call', { body: call, headers })).status, 200);
    assert.deepEqual(traces.splice(1), [undefined, TRACE]);
    shown.splice(1);
    for (const name of ['other-authority', 'other-name', 'public']) {
      assert.equal((await gateway.request('GET', `/${name}/orders/1`)).status, 502, name);
    }
    // With TLS 1.3 a server that misses a certificate says so after the handshake: the call may have been sent.
    assert.ok([502, 504].includes((await gateway.request('GET', '/nothing-shown/orders/1')).status));
    assert.equal(shown.length, 1);
  } finally {
    await gateway.close();
    backend.close();
    backend.closeAllConnections();
  }
});

test('files that are no certificates, halves of a pair, and an upstream without TLS are told at their places', async () => {
  const config = (upstream: string, upstream_tls: object): object => ({
    agents: { desk: {} },
    routes: [{ name: 'shop', upstream, http: ORDERS, upstream_tls }],
  });
  const files = { 'text.crt': 'no certificate' };
  await assert.rejects(
    startTestGateway(config('https://x', { ca: 'text.crt' }), { files }),
    /`text\.crt` cannot be used/,
  );
  await assert.rejects(startTestGateway(config('https://x', { cert: 'text.crt' }), { files }), /come together/);
  await assert.rejects(startTestGateway(config('http://x', { server_name: 'y' })), /begins with `https:/);
  await assert.rejects(startTestGateway(config('https://x', { ca: 'none.crt' })), /`none\.crt` cannot be read/);
});
