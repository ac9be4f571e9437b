import assert from 'node:assert/strict';
import { Agent, request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { describe, test } from 'node:test';
import { readBody } from '../../gateway/http/body.ts';
import type { EdgeExchange } from '../../gateway/http/edge-exchange.ts';
import { createEdgeServer, type EdgeOptions, type EdgeServer } from '../../gateway/http/server.ts';
import { eventually, makeCertificate, sleep } from './backends.ts';
import { sendRaw } from './raw.ts';

const POST = 'POST /x HTTP/1.1\r\nHost: a\r\n';
const GET = 'GET /x HTTP/1.1\r\nHost: a\r\n\r\n';

async function echo(exchange: EdgeExchange): Promise<void> {
  const body = await readBody(exchange, 1_000);
  if ('problem' in body) return exchange.problem(body.problem);
  exchange.json(200, JSON.stringify({ path: exchange.path, body: body.bytes.toString() }));
}

async function withServer(
  options: Partial<EdgeOptions>,
  run: (port: number, server: EdgeServer) => Promise<void>,
): Promise<void> {
  const server = createEdgeServer({ listen: { host: '127.0.0.1', port: 0 }, handle: echo, ...options });
  const { port }: AddressInfo = await server.listen();
  try {
    await run(port, server);
  } finally {
    await server.close({ graceMs: 0 });
  }
}

/** Everything that comes over a connection until it closes. */
function readAll(socket: Socket): Promise<string> {
  return new Promise((resolve) => {
    let text = '';
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString('latin1');
    });
    socket.on('error', () => socket.destroy());
    socket.on('close', () => resolve(text));
  });
}

function statuses(text: string): readonly string[] {
  return [...text.matchAll(/HTTP\/1\.1 (\d{3})/g)].map((match) => match[1] ?? '');
}

describe('the edge server', () => {
  test('a body that is too large is answered with its limit, and the connection serves the next call', () =>
    withServer({}, async (port) => {
      const large = `${POST}Content-Length: 5000\r\n\r\n${'x'.repeat(5_000)}`;
      const answer = await sendRaw(port, large + GET, { answers: 2 });
      assert.deepEqual(statuses(answer.text), ['413', '200']);
      assert.match(answer.text, /limit of 1000 bytes/);
    }));

  test('a body that is far too large ends the connection, after its answer', () =>
    withServer({ limits: { drainBytes: 10_000 }, timeouts: { lingerMs: 200 } }, async (port) => {
      const chunk = 'x'.repeat(60_000);
      const answer = await sendRaw(port, [`${POST}Content-Length: 900000\r\n\r\n${chunk}`, chunk, chunk], { gapMs: 5 });
      assert.equal(answer.status, 413);
      assert.equal(answer.headers['connection'], 'close');
      assert.match(answer.body, /limit of 1000 bytes/);
      const socket = connect({ host: '127.0.0.1', port });
      socket.write(`${POST}Transfer-Encoding: chunked\r\n\r\nea60\r\n${chunk}`);
      assert.deepEqual(statuses(await readAll(socket)), ['413']);
    }));

  test('a client that asks whether to go on is told so, or gets its answer without sending the body', () =>
    withServer({}, async (port) => {
      const good = await sendRaw(port, [`${POST}Expect: 100-continue\r\nContent-Length: 2\r\n\r\n`, 'hi'], {
        gapMs: 50,
      });
      assert.match(good.text, /^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200/);
      const bad = await sendRaw(port, `${POST}Expect: 100-continue\r\nContent-Length: 2000\r\n\r\n`);
      assert.equal(bad.status, 413);
      assert.doesNotMatch(bad.text, /100 Continue/);
    }));

  test('slow headers and slow bodies are answered 408', () =>
    withServer({ timeouts: { headersMs: 200, requestMs: 400 } }, async (port) => {
      const [headers, body, nothing] = await Promise.all([
        sendRaw(port, ['GET / HTTP/1.1\r\n', 'Host: a\r\n', 'X-A: b\r\n', 'X-B: c\r\n'], { gapMs: 150 }),
        sendRaw(port, [`${POST}Content-Length: 9\r\n\r\n`, 'a', 'b', 'c', 'd'], { gapMs: 150 }),
        readAll(connect({ host: '127.0.0.1', port })),
      ]);
      assert.equal(headers.status, 408);
      assert.equal(body.status, 408);
      assert.match(body.body, /urn:toolgate:request_timeout/);
      assert.deepEqual(statuses(nothing), ['408']);
    }));

  test('a handler that takes longer than any request timeout is not cut off', () =>
    withServer(
      {
        timeouts: { headersMs: 100, requestMs: 100, keepAliveMs: 100 },
        handle: async (exchange) => {
          await sleep(500);
          exchange.json(200, '{}');
        },
      },
      async (port) => assert.equal((await sendRaw(port, GET)).status, 200),
    ));

  test('idle connections are ended', () =>
    withServer({ timeouts: { keepAliveMs: 100 } }, async (port) => {
      const socket = connect({ host: '127.0.0.1', port });
      socket.write(GET);
      assert.deepEqual(statuses(await readAll(socket)), ['200']);
    }));

  test('pipelined requests are answered in order, and too many of them are refused', () =>
    withServer({ limits: { pipelined: 4 } }, async (port) => {
      const three = await sendRaw(port, GET.replace('/x', '/1') + GET.replace('/x', '/2') + GET.replace('/x', '/3'), {
        answers: 3,
      });
      assert.deepEqual(statuses(three.text), ['200', '200', '200']);
      assert.deepEqual(
        [...three.text.matchAll(/"path":"\/(\d)"/g)].map((match) => match[1]),
        ['1', '2', '3'],
      );
    }));

  test('a client that pipelines without end is stopped', async () => {
    let handled = 0;
    const { promise, resolve } = Promise.withResolvers<void>();
    const handle = async (exchange: EdgeExchange): Promise<void> => {
      handled += 1;
      await promise;
      exchange.json(200, '{}');
    };
    await withServer({ limits: { pipelined: 4 }, handle }, async (port) => {
      const socket = connect({ host: '127.0.0.1', port });
      socket.write(GET.repeat(500));
      const all = readAll(socket);
      assert.ok(await eventually(() => handled === 4));
      await sleep(50);
      assert.equal(handled, 4);
      resolve();
      assert.deepEqual(statuses(await all), ['200', '200', '200', '200', '429']);
    });
  });

  test('bytes that are no HTTP behind a request do not harm its answer', async () => {
    const handle = async (exchange: EdgeExchange): Promise<void> => {
      await sleep(50);
      exchange.json(200, '{"fine":true}');
    };
    await withServer({ handle }, async (port) => {
      const socket = connect({ host: '127.0.0.1', port });
      socket.write(`${GET}\x00\x01garbage\r\n\r\n`);
      const text = await readAll(socket);
      assert.deepEqual(statuses(text), ['200']);
      assert.match(text, /"fine":true/);
    });
  });

  test('a handler that throws is answered 500 without its words, and the error is told', async () => {
    const told: unknown[] = [];
    const handle = (exchange: EdgeExchange): Promise<void> => {
      if (exchange.path === '/sync') throw new Error('secret words');
      return Promise.reject(new Error('secret words'));
    };
    await withServer({ handle, onError: (error) => told.push(error) }, async (port) => {
      for (const path of ['/sync', '/async']) {
        const answer = await sendRaw(port, GET.replace('/x', path));
        assert.equal(answer.status, 500);
        assert.match(answer.body, /urn:toolgate:internal_error/);
        assert.doesNotMatch(answer.text, /secret/);
      }
      assert.equal(told.length, 2);
    });
  });

  test('a client that takes nothing of a whole answer is given up', () =>
    withServer(
      { timeouts: { takeMs: 150 }, handle: (exchange) => exchange.json(200, 'x'.repeat(32 * 1024 * 1024)) },
      async (port, server) => {
        const socket = connect({ host: '127.0.0.1', port });
        socket.on('error', () => socket.destroy());
        socket.pause();
        socket.write(GET);
        assert.ok(await eventually(() => server.active === 1));
        assert.ok(await eventually(() => server.active === 0));
        socket.destroy();
      },
    ));

  test('connections beyond the cap are closed', () =>
    withServer({ limits: { connections: 2 } }, async (port) => {
      const sockets = [1, 2].map(() => connect({ host: '127.0.0.1', port }));
      await Promise.all(sockets.map((socket) => new Promise((resolve) => socket.once('connect', resolve))));
      await sleep(20);
      assert.equal((await sendRaw(port, GET)).text, '');
      for (const socket of sockets) socket.destroy();
      let status = 0;
      for (let n = 0; n < 50 && status !== 200; n += 1) {
        await sleep(20);
        ({ status } = await sendRaw(port, GET));
      }
      assert.equal(status, 200);
    }));

  test('closing lets accepted requests finish, tells their clients to close, and takes no new ones', async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const handle = async (exchange: EdgeExchange): Promise<void> => {
      await promise;
      exchange.json(200, '{}');
    };
    const server = createEdgeServer({ listen: { host: '127.0.0.1', port: 0 }, handle });
    const { port } = await server.listen();
    const idle = connect({ host: '127.0.0.1', port });
    const idleEnds = readAll(idle);
    const busy = Array.from({ length: 20 }, () => {
      const socket = connect({ host: '127.0.0.1', port });
      socket.write(GET);
      return readAll(socket);
    });
    assert.ok(await eventually(() => server.active === 20));
    const closed = server.close({ graceMs: 5_000 });
    await sleep(30);
    await assert.rejects(sendRaw(port, GET), /ECONNREFUSED/);
    resolve();
    for (const text of await Promise.all(busy)) {
      assert.deepEqual(statuses(text), ['200']);
      assert.match(text, /\r\nConnection: close\r\n/i);
    }
    assert.equal(await idleEnds, '');
    assert.deepEqual(await closed, { cutOff: 0 });
    assert.equal(server.active, 0);
  });

  test('every request that reached its handler is answered whole when the server closes under load', async () => {
    let handled = 0;
    let answered = 0;
    const handle = async (exchange: EdgeExchange): Promise<void> => {
      handled += 1;
      const body = await readBody(exchange, 1_000);
      await sleep(5);
      if ('bytes' in body) exchange.json(200, body.bytes.toString());
      else exchange.problem(body.problem);
    };
    const server = createEdgeServer({ listen: { host: '127.0.0.1', port: 0 }, handle });
    const { port } = await server.listen();
    const agent = new Agent({ keepAlive: true });
    const once = (): Promise<boolean> =>
      new Promise((resolve) => {
        const request = httpRequest({ host: '127.0.0.1', port, method: 'POST', path: '/x', agent }, (answer) => {
          let text = '';
          answer.on('data', (chunk: Buffer) => {
            text += chunk.toString();
          });
          answer.on('end', () => {
            if (answer.statusCode === 200 && text === '{"a":1}') answered += 1;
            resolve(true);
          });
          answer.on('error', () => resolve(false));
        });
        request.on('error', () => resolve(false));
        request.end('{"a":1}');
      });
    const clients = Array.from({ length: 20 }, async () => {
      while (await once());
    });
    assert.ok(await eventually(() => handled > 50, 10_000));
    assert.deepEqual(await server.close({ graceMs: 5_000 }), { cutOff: 0 });
    await Promise.all(clients);
    agent.destroy();
    assert.equal(answered, handled);
  });

  test('closing ends what does not finish in its grace, and says how many', async () => {
    const handle = (): Promise<void> => new Promise(() => undefined);
    const server = createEdgeServer({ listen: { host: '127.0.0.1', port: 0 }, handle });
    const { port } = await server.listen();
    const socket = connect({ host: '127.0.0.1', port });
    socket.write(GET);
    const ends = readAll(socket);
    assert.ok(await eventually(() => server.active === 1));
    assert.deepEqual(await server.close({ graceMs: 50 }), { cutOff: 1 });
    assert.equal(await ends, '');
  });

  test('an address that is taken is told', () =>
    withServer({}, async (port) => {
      const second = createEdgeServer({ listen: { host: '127.0.0.1', port }, handle: echo });
      await assert.rejects(second.listen(), /EADDRINUSE/);
    }));

  test('TLS is served, with client certificates where an authority for them is given', async (t) => {
    const server = makeCertificate('127.0.0.1');
    const client = makeCertificate('client.example');
    if (server === undefined || client === undefined) return t.skip('the openssl program is not installed');
    const get = (port: number, more: object): Promise<number> =>
      new Promise((resolve, reject) => {
        httpsRequest({ host: '127.0.0.1', port, path: '/x', ca: server.cert, agent: false, ...more }, (answer) => {
          answer.resume().on('end', () => resolve(answer.statusCode ?? 0));
        })
          .on('error', reject)
          .end();
      });
    await withServer({ tls: server }, async (port) => {
      assert.equal(await get(port, {}), 200);
      await assert.rejects(get(port, { maxVersion: 'TLSv1.1' }));
      await assert.rejects(sendRaw(port, GET).then((answer) => assert.equal(answer.status, 200)));
    });
    await withServer({ tls: { ...server, clientCa: client.cert } }, async (port) => {
      assert.equal(await get(port, { cert: client.cert, key: client.key }), 200);
      await assert.rejects(get(port, {}));
    });
  });
});
