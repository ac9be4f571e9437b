import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { createServer, type ServerResponse } from 'node:http';
import { request } from 'node:https';
import { join } from 'node:path';
import { test } from 'node:test';
import { connect } from 'node:tls';
import { startTestGateway, type TestGateway } from '../harness/gateway.ts';
import { type Backend, eventually, makeCertificate, start } from '../http/backends.ts';

function configOf(upstream: string, more: object[] = []): object {
  return {
    agents: { desk: {} },
    routes: [
      {
        name: 'shop',
        upstream,
        http: [{ name: 'get_order', method: 'GET', path: '/orders/{order_id}' }, ...more],
      },
    ],
  };
}

/** A backend that answers when it is told to. */
async function heldBackend(): Promise<{ readonly backend: Backend; readonly waiting: ServerResponse[] }> {
  const waiting: ServerResponse[] = [];
  const backend = await start(createServer((_request, response) => void waiting.push(response)));
  return { backend, waiting };
}

function answerAll(waiting: ServerResponse[]): void {
  for (const response of waiting.splice(0)) response.setHeader('content-type', 'application/json').end('{}');
}

test('a call that is under way when the configuration changes ends as it began, and the next one sees the new', async () => {
  const [old, next] = [await heldBackend(), await heldBackend()];
  const gateway = await startTestGateway(configOf(old.backend.origin));
  try {
    const first = gateway.request('GET', '/shop/orders/1');
    assert.ok(await eventually(() => old.waiting.length === 1));
    assert.deepEqual(await gateway.reconfigure(configOf(next.backend.origin)), []);
    const second = gateway.request('GET', '/shop/orders/2');
    assert.ok(await eventually(() => next.waiting.length === 1));
    answerAll(next.waiting);
    assert.equal((await second).status, 200);
    answerAll(old.waiting);
    assert.equal((await first).status, 200);
  } finally {
    await gateway.close();
    await Promise.all([old.backend.close(), next.backend.close()]);
  }
});

test('under load a faulty file changes nothing, and a good one takes no call with it', async () => {
  const backend = await start(createServer((_request, response) => response.end('{}')));
  const gateway = await startTestGateway(configOf(backend.origin));
  try {
    const statuses: number[] = [];
    let going = true;
    const load = Array.from({ length: 4 }, async (_, i) => {
      while (going) statuses.push((await gateway.request('GET', `/shop/orders/${i}`)).status);
    });
    const policies = new Set<string>([gateway.gateway.loaded.policy]);
    for (let round = 0; round < 3; round++) {
      const before = gateway.gateway.loaded.policy;
      const problems = await gateway.reconfigure(
        configOf(backend.origin, [{ name: 'broken', method: 'POST', path: '/x' }]),
      );
      assert.ok(problems.some(({ code, line }) => code === 'writes_not_said' && line > 0));
      assert.equal(gateway.gateway.loaded.policy, before);
      await gateway.reconfigure(configOf(backend.origin, [{ name: `more_${round}`, method: 'GET', path: '/more' }]));
      policies.add(gateway.gateway.loaded.policy);
    }
    going = false;
    await Promise.all(load);
    assert.equal(policies.size, 4);
    assert.ok(statuses.length > 0);
    assert.deepEqual([...new Set(statuses)], [200]);
  } finally {
    await gateway.close();
    await backend.close();
  }
});

const CERTIFICATES = [makeCertificate('127.0.0.1'), makeCertificate('127.0.0.1')] as const;

test('a reload takes other certificates, and keeps the old ones where they do not fit', {
  skip: !CERTIFICATES[0],
}, async () => {
  const [one, two] = CERTIFICATES;
  assert.ok(one !== undefined && two !== undefined);
  const config = {
    ...configOf('http://127.0.0.1:1'),
    listen: { host: '127.0.0.1', port: 0, tls: { cert: './cert.pem', key: './key.pem' } },
  };
  const files = { 'cert.pem': one.cert, 'key.pem': one.key };
  const gateway = await startTestGateway(config, { files });
  try {
    assert.ok(gateway.url.startsWith('https://'));
    const first = await fingerprintOf(gateway);
    assert.equal(await statusOf(gateway, one.cert), 200);
    await writeFile(join(gateway.folder, 'cert.pem'), two.cert);
    const problems = await gateway.reload();
    assert.deepEqual(
      problems.map(({ code, line }) => [code, line > 0]),
      [['bad_tls', true]],
    );
    assert.equal(await fingerprintOf(gateway), first);
    await writeFile(join(gateway.folder, 'key.pem'), two.key);
    assert.deepEqual(await gateway.reload(), []);
    assert.notEqual(await fingerprintOf(gateway), first);
    assert.equal(await statusOf(gateway, two.cert), 200);
    const asking = { ...config, listen: { ...config.listen, tls: { ...config.listen.tls, client_ca: './cert.pem' } } };
    assert.ok((await gateway.reconfigure(asking)).some(({ code }) => code === 'needs_restart'));
  } finally {
    await gateway.close();
  }
});

function fingerprintOf({ url }: TestGateway): Promise<string> {
  return new Promise((resolve, reject) => {
    const { hostname, port } = new URL(url);
    const socket = connect({ host: hostname, port: Number(port), rejectUnauthorized: false }, () => {
      resolve(socket.getPeerCertificate().fingerprint256);
      socket.destroy();
    });
    socket.on('error', reject);
  });
}

function statusOf({ url }: TestGateway, ca: string): Promise<number> {
  return new Promise((resolve, reject) => {
    request(`${url}/healthz`, { ca, agent: false }, (response) => {
      response.resume();
      resolve(response.statusCode ?? 0);
    })
      .on('error', reject)
      .end();
  });
}
