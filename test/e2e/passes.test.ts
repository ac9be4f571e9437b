import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { startTestGateway, type TestGateway } from '../harness/gateway.ts';
import { eventually } from '../http/backends.ts';
import { sendRaw } from '../http/raw.ts';
import { digestOf } from './world.ts';

/** Request lines and headers that the backend was sent, in lower case. */
const seen: string[] = [];
let server: Server;
let gateway: TestGateway;
let port = 0;

function config(pass: readonly string[]): object {
  const { port: backend } = server.address() as AddressInfo;
  return {
    agents: {
      desk: { credentials: [{ key: digestOf('desk-key'), name: 'desk-bot' }] },
      other: { credentials: [digestOf('other-key')] },
    },
    approvers: [{ name: 'ana', credentials: [digestOf('approver-key')] }],
    routes: [
      {
        name: 'shop',
        path: '/shop',
        upstream: `http://127.0.0.1:${backend}/v1`,
        upstream_headers: { 'X-Shop': 'token' },
        agents: ['desk'],
        limit: '1KiB',
        timeout: '5s',
        pass,
        http: [
          { name: 'get_order', method: 'GET', path: '/orders/{order_id}' },
          { name: 'charge', method: 'POST', path: '/charges', writes: true, input: { type: 'object' } },
        ],
      },
    ],
  };
}

const PASS = ['/health', '/files/*', '/live/**'];

before(async () => {
  server = createServer((request, response) => {
    seen.push([`${request.method} ${request.url}`, ...request.rawHeaders].join('\n').toLowerCase());
    let size = 0;
    request.on('data', (chunk: Buffer) => {
      size += chunk.length;
    });
    request.on('end', () => {
      const body = JSON.stringify({ url: request.url, size });
      response.writeHead(200, { 'content-length': Buffer.byteLength(body), 'toolgate-decision': 'allow' }).end(body);
    });
  });
  server.on('upgrade', (request, socket: Socket) => {
    seen.push([`UPGRADE ${request.url}`, ...request.rawHeaders].join('\n').toLowerCase());
    socket.on('error', () => socket.destroy());
    socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n');
    // An echo of whatever frames come, as they come.
    socket.pipe(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  gateway = await startTestGateway(config(PASS));
  port = Number(new URL(gateway.url).port);
});
after(async () => {
  await gateway.close();
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

function head(line: string, ...fields: readonly string[]): string {
  return [`${line} HTTP/1.1`, `Host: 127.0.0.1:${port}`, ...fields, '', ''].join('\r\n');
}

const KEY = 'Authorization: Bearer desk-key';
const WEBSOCKET = [
  'Connection: Upgrade',
  'Upgrade: websocket',
  'Sec-WebSocket-Version: 13',
  'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
];

async function auditLines(): Promise<readonly Record<string, unknown>[]> {
  const text = await readFile(join(gateway.folder, 'logs/audit.jsonl'), 'utf8').catch(() =>
    readFile(join(gateway.folder, 'audit.jsonl'), 'utf8'),
  );
  return text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>);
}

async function passLines(): Promise<readonly Record<string, unknown>[]> {
  return (await auditLines()).filter(({ event }) => event === 'pass');
}

/** What some backends take for another path, host, client or credential than those that the request shows. */
const REROUTING = [
  'X-Original-URL: /v1/charges',
  'X-Rewrite-URL: /v1/charges',
  'X_Original_URL: /v1/charges',
  'X-Original-Host: 6.6.6.6',
  'X-Real-IP: 6.6.6.6',
  'X_Shop: no',
  'X_Own: no',
  'X_Forwarded_For: 6.6.6.6',
  'Toolgate_Agent: desk',
  'Content_Length: 7',
];

test('a passed path goes to the upstream with its headers, without a credential or a word of the gateway', async () => {
  const lines = (await passLines()).length;
  seen.length = 0;
  const fields = [
    KEY,
    'X-Own: 1',
    'Toolgate-Session: s',
    'Toolgate-Agent: desk',
    'X-Forwarded-For: 6.6.6.6',
    'X-Shop: no',
    ...REROUTING,
  ];
  const answer = await sendRaw(port, head('GET /shop/health?a=%41&b=/c', ...fields));
  assert.equal(answer.status, 200, answer.text);
  assert.equal(answer.headers['toolgate-decision'], undefined);
  const [request = ''] = seen;
  assert.match(request, /^get \/v1\/health\?a=%41&b=\/c\n/);
  assert.match(request, /x-own\n1/);
  assert.match(request, /x-shop\ntoken/);
  assert.match(request, /x-forwarded-for\n127\.0\.0\.1/);
  assert.doesNotMatch(request, /authorization|toolgate|6\.6\.6\.6|\nno(\n|$)|charges|content.length/);
  const written = (await passLines()).slice(lines);
  const [line = {}] = written;
  assert.equal(written.length, 1);
  const { route, caller, agent, method, pattern } = line;
  assert.deepEqual(
    { route, caller, agent, method, pattern },
    { route: 'shop', caller: 'desk-bot', agent: 'desk', method: 'GET', pattern: '/health' },
  );
  const metrics = await gateway.request('GET', '/metrics', { key: 'approver-key' });
  assert.match(metrics.text, /toolgate_passed_total\{route="shop",path="\/health"\} [1-9]/);
});

test('the start of the gateway says in the audit log what is let through', async () => {
  const start = (await auditLines()).find(({ event, act }) => event === 'config' && act === 'start');
  assert.deepEqual(start?.['passes'], ['shop /health', 'shop /files/*', 'shop /live/**']);
});

test('an upload of any type goes through up to the limit of the route', async () => {
  const upload = (size: number): string =>
    `${head('PUT /shop/files/a%20b', KEY, 'Content-Type: application/zip', `Content-Length: ${size}`)}${'x'.repeat(size)}`;
  const answer = await sendRaw(port, upload(1024));
  assert.deepEqual(JSON.parse(answer.body), { url: '/v1/files/a%20b', size: 1024 });
  const lines = (await passLines()).length;
  assert.equal((await sendRaw(port, upload(1025))).status, 413);
  assert.equal((await passLines()).length, lines);
});

/** What must never reach the backend: who may not, and every way of writing a path that is a little like a passed one. */
const REFUSED: readonly (readonly [line: string, status: number, ...fields: readonly string[]])[] = [
  ['GET /shop/health', 401],
  ['GET /shop/health', 401, 'Authorization: Bearer wrong'],
  ['GET /shop/health', 403, 'Authorization: Bearer approver-key'],
  ['GET /shop/health', 403, 'Authorization: Bearer other-key'],
  ['GET /shop/health', 403, KEY, 'Toolgate-Agent: other'],
  ['GET /shop/health', 400, KEY, 'Toolgate-Undoes: x'],
  ['GET /shop/health', 400, KEY, 'X-HTTP-Method-Override: DELETE'],
  ['GET /shop/health', 400, KEY, 'X_HTTP_Method_Override: DELETE'],
  ['GET /shop/health?_method=DELETE', 400, KEY],
  ['GET /shop/health?_Method=DELETE', 400, KEY],
  ['GET /shop/health?a=b;_method=DELETE', 400, KEY],
  ['GET /shop/Health', 403, KEY],
  ['GET /shop/health/', 403, KEY],
  ['GET /shop/health/x', 403, KEY],
  ['GET /shop/%68ealth', 403, KEY],
  ['GET /shop/healthz', 403, KEY],
  ['GET /Shop/health', 404, KEY],
  ['GET /shop//health', 400, KEY],
  ['GET /shop/health;x', 400, KEY],
  ['GET /shop/health%00', 400, KEY],
  ['GET /shop/health#x', 400, KEY],
  ['GET http://127.0.0.1/shop/health', 400, KEY],
  ['GET /shop/live/../charges', 400, KEY],
  ['POST /shop/live/..%2fcharges', 400, KEY, 'Content-Length: 0'],
  ['POST /shop/live/%2e%2e/charges', 400, KEY, 'Content-Length: 0'],
  ['POST /shop/live/.%2e/charges', 400, KEY, 'Content-Length: 0'],
  ['POST /shop/live/%252e%252e/charges', 400, KEY, 'Content-Length: 0'],
  ['POST /shop/live/..;/charges', 400, KEY, 'Content-Length: 0'],
  ['POST /shop/live\\..\\charges', 400, KEY, 'Content-Length: 0'],
  ['POST /shop/files/..', 400, KEY, 'Content-Length: 0'],
  ['GET /shop/files/', 403, KEY],
  ['GET /shop/files/a/b', 403, KEY],
  ['POST /shop/live/%3Fx', 403, KEY, 'Content-Length: 0'],
  ['POST /shop/live/..%20/charges', 403, KEY, 'Content-Length: 0'],
  ['GET /shop/live', 403, KEY],
  ['GET /shop/live/', 403, KEY],
  ['POST /shop/CHARGES', 403, KEY, 'Content-Length: 0'],
  ['GET /shop/files/a', 400, KEY, 'Connection: Upgrade', 'Upgrade: h2c'],
  ['GET /shop/orders/1', 400, KEY, ...WEBSOCKET],
  ['GET /shop/live/x', 401, ...WEBSOCKET],
  ['GET /shop/live/x', 403, 'Authorization: Bearer approver-key', ...WEBSOCKET],
  ['GET /shop/live/x', 400, 'Authorization: Bearer other-key', ...WEBSOCKET],
  ['GET /shop/live/x', 400, KEY, KEY, ...WEBSOCKET],
  ['GET /shop/live/%2e%2e/x', 400, KEY, ...WEBSOCKET],
  ['GET /shop/live/x', 403, KEY, 'Origin: https://evil.example', ...WEBSOCKET],
];

test('nothing that is not a passed path, letter by letter and by a caller of the route, reaches the backend', async () => {
  seen.length = 0;
  const lines = (await passLines()).length;
  for (const [line, status, ...fields] of REFUSED) {
    const answer = await sendRaw(port, head(line, ...fields));
    assert.equal(answer.status, status, `${line} ${fields.join(', ')}\n${answer.text}`);
  }
  assert.deepEqual(seen, []);
  assert.equal((await passLines()).length, lines);
});

/** A WebSocket text frame of a client (RFC 6455 section 5.2), its mask all zeros; the echo has the same bytes. */
const FRAME = Buffer.from([0x81, 0x85, 0, 0, 0, 0, ...Buffer.from('hello')]);

async function openSocket(): Promise<{ readonly socket: Socket; readonly text: () => string }> {
  const socket = connect({ host: '127.0.0.1', port });
  let text = '';
  socket.on('error', () => socket.destroy());
  socket.on('data', (chunk: Buffer) => {
    text += chunk.toString('latin1');
  });
  // The first frame comes together with the request, as an eager client sends it.
  socket.write(Buffer.concat([Buffer.from(head('GET /shop/live/a/b?c=d', KEY, ...WEBSOCKET)), FRAME]));
  assert.ok(await eventually(() => text.endsWith(FRAME.toString('latin1'))), text);
  return { socket, text: () => text };
}

test('a WebSocket is passed on with every frame, and ends when the rules change', async () => {
  seen.length = 0;
  const { socket, text } = await openSocket();
  assert.match(text(), /^HTTP\/1\.1 101 /);
  socket.write(FRAME);
  assert.ok(await eventually(() => text().endsWith(FRAME.toString('latin1').repeat(2))));
  const [request = ''] = seen;
  assert.match(request, /^upgrade \/v1\/live\/a\/b\?c=d\n/);
  assert.match(request, /x-forwarded-for\n127\.0\.0\.1/);
  assert.doesNotMatch(request, /authorization|toolgate/);
  assert.equal((await passLines()).at(-1)?.['pattern'], '/live/**');
  const problems = await gateway.reconfigure(config([]));
  assert.deepEqual(
    problems.filter(({ severity }) => severity === 'error'),
    [],
  );
  assert.ok(await eventually(() => socket.destroyed));
  assert.equal((await sendRaw(port, head('GET /shop/live/a', KEY, ...WEBSOCKET))).status, 400);
  assert.equal((await sendRaw(port, head('GET /shop/health', KEY))).status, 403);
  assert.equal(seen.length, 1);
});

test('a pattern that would cover a tool is refused when it is loaded, and the old rules stay', async () => {
  const problems = await gateway.reconfigure(config(['/Charges/']));
  assert.deepEqual(
    problems.filter(({ severity }) => severity === 'error').map(({ code }) => code),
    ['pass_covers_tool'],
  );
  assert.equal((await sendRaw(port, head('POST /shop/Charges/', KEY, 'Content-Length: 0'))).status, 403);
});
