import assert from 'node:assert/strict';
import { createServer, request as httpRequest } from 'node:http';
import { connect, type Socket } from 'node:net';
import { test } from 'node:test';
import { createPassThrough, type PassThroughOptions } from '../../gateway/http/pass-through.ts';
import { createEdgeServer } from '../../gateway/http/server.ts';
import { forwardedHeaders } from '../../gateway/http/upstream-headers.ts';
import { type Backend, eventually, httpBackend, sleep, start, unusedPort } from './backends.ts';
import { sendRaw } from './raw.ts';

const FORWARDED = ['x-forwarded-for', '127.0.0.1', 'x-forwarded-host', 'a'];

const MAX_BYTES = 2_000_000;

/** A gateway whose every path is passed on. */
async function withGateway(
  options: Partial<PassThroughOptions> & { readonly origin: string },
  run: (port: number) => Promise<void>,
): Promise<void> {
  const passage = createPassThrough({ passAuthorization: false, connectTimeoutMs: 500, ...options });
  const server = createEdgeServer({
    listen: { host: '127.0.0.1', port: 0 },
    handle: (exchange) => {
      const problem = passage.faultOf(exchange, MAX_BYTES);
      if (problem !== undefined) return exchange.problem(problem);
      const rawPath = exchange.query === '' ? exchange.path : `${exchange.path}?${exchange.query}`;
      passage.web(exchange, { rawPath, forwarded: forwardedHeaders(exchange) }, MAX_BYTES);
    },
    wantsUpgrade: (path) => path === '/ws',
    upgrade: (upgrade) => passage.upgrade(upgrade, { rawPath: upgrade.target.path, forwarded: FORWARDED }),
  });
  const { port } = await server.listen();
  try {
    await run(port);
  } finally {
    await server.close({ graceMs: 0 });
    passage.close();
  }
}

function echoHeaders(): Promise<Backend> {
  return httpBackend((request, response) => {
    response.setHeader('Toolgate-Decision', 'allow');
    response.setHeader('X-Hop', '1');
    response.setHeader('Connection', 'keep-alive, X-Hop');
    response.setHeader('Set-Cookie', ['a=1', 'b=2']);
    let size = 0;
    request.on('data', (chunk: Buffer) => {
      size += chunk.length;
    });
    request.on('end', () => response.end(JSON.stringify({ url: request.url, size, headers: request.headers })));
  });
}

test('a passed request keeps what is its own and loses what is for the gateway', async () => {
  const backend = await echoHeaders();
  await withGateway({ origin: backend.origin, headers: ['X-Fixed', 'yes'] }, async (port) => {
    const fields = [
      'Host: a',
      'Authorization: Bearer agent-key',
      'Cookie: c=1',
      'Toolgate-Session: s',
      'Idempotency-Key: k',
      'X-Forwarded-For: 6.6.6.6',
      'Forwarded: for=6.6.6.6',
      'Connection: close, X-Secret',
      'X-Secret: 1',
      'X-Fixed: no',
    ];
    const answer = await sendRaw(port, `GET /health HTTP/1.1\r\n${fields.join('\r\n')}\r\n\r\n`);
    assert.equal(answer.status, 200);
    assert.equal(answer.headers['toolgate-decision'], undefined);
    assert.equal(answer.headers['x-hop'], undefined);
    assert.match(answer.text, /set-cookie: a=1\r\nset-cookie: b=2/i);
    const { headers } = JSON.parse(answer.body.slice(answer.body.indexOf('{'), answer.body.lastIndexOf('}') + 1)) as {
      headers: Record<string, string>;
    };
    assert.deepEqual(headers, {
      host: `127.0.0.1:${backend.port}`,
      cookie: 'c=1',
      connection: 'keep-alive',
      'x-forwarded-for': '127.0.0.1',
      'x-forwarded-proto': 'http',
      'x-forwarded-host': 'a',
      forwarded: 'for=127.0.0.1;host="a";proto=http',
      'x-fixed': 'yes',
    });
  });
  await backend.close();
});

test('the Authorization of a caller goes on only where the route says so', async () => {
  const backend = await echoHeaders();
  await withGateway({ origin: backend.origin, passAuthorization: true }, async (port) => {
    const answer = await sendRaw(
      port,
      'GET /x HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer k\r\nConnection: close\r\n\r\n',
      {
        waitMs: 300,
      },
    );
    assert.match(answer.body, /"authorization":"Bearer k"/);
  });
  await backend.close();
});

test('uploads stream through, with a length or in chunks, over connections that are kept', async () => {
  const backend = await echoHeaders();
  const upload = (port: number, headers: Record<string, string>, method = 'POST'): Promise<string> =>
    new Promise((resolve, reject) => {
      const request = httpRequest(
        { host: '127.0.0.1', port, path: '/upload', method, headers, agent: false },
        (answer) => {
          let text = '';
          answer.on('data', (chunk: Buffer) => {
            text += chunk.toString();
          });
          answer.on('end', () => resolve(text));
        },
      );
      request.on('error', reject);
      for (let n = 0; n < 20; n += 1) request.write(Buffer.alloc(100_000));
      request.end();
    });
  await withGateway({ origin: backend.origin }, async (port) => {
    assert.match(await upload(port, { 'content-type': 'application/zip' }), /"size":2000000/);
    assert.match(await upload(port, { 'content-length': '2000000' }), /"size":2000000/);
    const continued = { expect: '100-continue', 'content-length': '2000000' };
    assert.match(await upload(port, continued), /"size":2000000/);
    const unframed = 'DELETE /upload HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n';
    assert.equal((await sendRaw(port, unframed)).status, 400);
    assert.equal(backend.connections(), 1);
    // One byte too many: told at once where a length is announced, else when it comes; its connection upstream ends.
    const announced = 'POST /upload HTTP/1.1\r\nHost: a\r\nContent-Length: 2000001\r\n\r\n';
    assert.match((await sendRaw(port, announced)).text, /^HTTP\/1\.1 413 [\s\S]*urn:toolgate:too_large/);
    const chunk = `${(2_000_001).toString(16)}\r\n${'x'.repeat(2_000_001)}\r\n`;
    const counted = `POST /upload HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n${chunk}`;
    assert.match((await sendRaw(port, counted)).text, /^HTTP\/1\.1 413 [\s\S]*urn:toolgate:too_large/);
    assert.ok(await eventually(() => backend.open() === 0));
  });
  await backend.close();
});

test('an upstream that is not there is 502', () =>
  unusedPort().then((unused) =>
    withGateway({ origin: `http://127.0.0.1:${unused}` }, async (port) => {
      const answer = await sendRaw(port, 'GET /x HTTP/1.1\r\nHost: a\r\n\r\n');
      assert.equal(answer.status, 502);
      assert.match(answer.body, /urn:toolgate:upstream_unreachable/);
      const socket = await sendRaw(port, UPGRADE);
      assert.equal(socket.status, 502);
    }),
  ));

const UPGRADE =
  'GET /ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n' +
  'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nAuthorization: Bearer agent-key\r\nToolgate-Session: s\r\n\r\n';

function webSockets(): Promise<{ readonly backend: Backend; readonly seen: string[] }> {
  const seen: string[] = [];
  const server = createServer((_, response) => response.writeHead(426).end('no'));
  server.on('upgrade', (request, socket: Socket) => {
    seen.push(request.rawHeaders.join('\n').toLowerCase());
    socket.write(
      'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nToolgate-X: 1\r\n\r\n',
    );
    socket.on('error', () => socket.destroy());
    socket.on('end', () => socket.end());
    socket.on('data', (chunk: Buffer) => socket.write(`echo ${chunk.toString()}`));
  });
  return start(server).then((backend) => ({ backend, seen }));
}

test('a target goes on letter by letter', async () => {
  const backend = await echoHeaders();
  await withGateway({ origin: backend.origin }, async (port) => {
    for (const target of ["/a'(b)/%41%c3%a9?x=[1]|'&u=http://c//d?e", '/a/', '/a?']) {
      const answer = await sendRaw(port, `GET ${target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`);
      assert.ok(answer.body.includes(JSON.stringify({ url: target.replace(/\?$/, '') }).slice(1, -1)), answer.body);
    }
  });
  await backend.close();
});

test('an upstream that takes too long over an upgrade is given up, and its plain answer says nothing of ours', async () => {
  const silent = await start(createServer().on('upgrade', (_, socket: Socket) => socket.on('error', () => undefined)));
  await withGateway({ origin: silent.origin, idleTimeoutMs: 200 }, async (port) => {
    assert.match((await sendRaw(port, UPGRADE)).text, /urn:toolgate:upstream_unreachable/);
  });
  await silent.close();
  const plain = await httpBackend((_, response) => {
    response.writeHead(403, { 'Toolgate-Decision': 'allow', 'Content-Length': '2' }).end('no');
  });
  await withGateway({ origin: plain.origin }, async (port) => {
    const answer = await sendRaw(port, UPGRADE);
    assert.equal(answer.status, 403);
    assert.equal(answer.headers['toolgate-decision'], undefined);
  });
  await plain.close();
});

test('an upgrade of a passed path joins the connections, and leaves none open when the client goes', async () => {
  const { backend, seen } = await webSockets();
  await withGateway({ origin: backend.origin }, async (port) => {
    const socket = connect({ host: '127.0.0.1', port });
    let text = '';
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString();
    });
    socket.write(UPGRADE);
    assert.ok(await eventually(() => text.includes('\r\n\r\n')));
    assert.match(text, /^HTTP\/1\.1 101 /);
    assert.doesNotMatch(text, /toolgate/i);
    socket.write('hello');
    assert.ok(await eventually(() => text.endsWith('echo hello')));
    const [headers = ''] = seen;
    assert.match(headers, /sec-websocket-key/);
    assert.match(headers, /x-forwarded-for\n127\.0\.0\.1/);
    assert.doesNotMatch(headers, /authorization|toolgate/);
    socket.destroy();
    assert.ok(await eventually(() => backend.open() === 0));
  });
  await backend.close();
});

test('an upgrade of any other path, or to another protocol, is refused', async () => {
  const { backend, seen } = await webSockets();
  await withGateway({ origin: backend.origin }, async (port) => {
    for (const request of [
      UPGRADE.replace('/ws', '/other'),
      UPGRADE.replace('GET', 'POST'),
      UPGRADE.replace('websocket', 'h2c'),
      UPGRADE.replace('Host: a\r\n', 'Host: a\r\nHost: b\r\n'),
      UPGRADE.replace('/ws', '/%2e%2e/ws'),
    ]) {
      assert.equal((await sendRaw(port, request)).status, 400, request);
    }
    await sleep(20);
    assert.deepEqual(seen, []);
  });
  await backend.close();
});

test('upgraded connections end when the grace of closing is over', async () => {
  const { backend } = await webSockets();
  const passage = createPassThrough({ origin: backend.origin, passAuthorization: false });
  const server = createEdgeServer({
    listen: { host: '127.0.0.1', port: 0 },
    handle: (exchange) => exchange.json(200, '{}'),
    wantsUpgrade: () => true,
    upgrade: (upgrade) => passage.upgrade(upgrade, { rawPath: '/ws', forwarded: FORWARDED }),
  });
  const { port } = await server.listen();
  const socket = connect({ host: '127.0.0.1', port });
  socket.on('error', () => socket.destroy());
  socket.write(UPGRADE);
  assert.ok(await eventually(() => socket.bytesRead > 0));
  await server.close({ graceMs: 100 });
  assert.ok(await eventually(() => backend.open() === 0));
  passage.close();
  await backend.close();
});
