import assert from 'node:assert/strict';
import { createServer as createHttpsServer } from 'node:https';
import { createServer as createTcpServer } from 'node:net';
import { Readable } from 'node:stream';
import { describe, test } from 'node:test';
import type { UpstreamAnswer } from '../../gateway/exchange.ts';
import { createHttpUpstream, type ForwardCall, type HttpUpstreamOptions } from '../../gateway/http/forward.ts';
import { BrokenAnswer } from '../../gateway/http/forward-faults.ts';
import {
  type Backend,
  eventually,
  httpBackend,
  makeCertificate,
  rawBackend,
  sleep,
  start,
  unusedPort,
} from './backends.ts';

const READ: ForwardCall = { method: 'GET', rawPath: '/x', headers: [], timeoutMs: 2_000, wholeUpTo: 0 };
const WRITE: ForwardCall = { ...READ, method: 'POST', body: '{"a":1}', headers: ['content-type', 'application/json'] };

/** One call to a backend of its own. */
async function callOnce(
  origin: string,
  call: ForwardCall,
  options: Partial<HttpUpstreamOptions> = {},
): Promise<UpstreamAnswer> {
  const upstream = createHttpUpstream({ origin, connectTimeoutMs: 400, ...options });
  try {
    return await upstream.forward(call);
  } finally {
    await upstream.close();
  }
}

function codeOf(answer: UpstreamAnswer): string {
  return answer.kind === 'answer' ? `answer ${answer.status}` : `${answer.kind} ${answer.code}`;
}

function textOf(answer: UpstreamAnswer): string {
  assert.equal(answer.kind, 'answer', JSON.stringify(answer));
  assert.ok(answer.kind === 'answer' && answer.body instanceof Uint8Array, 'the answer is whole');
  return Buffer.from(answer.body).toString();
}

function streamOf(answer: UpstreamAnswer): Readable {
  assert.ok(answer.kind === 'answer' && answer.body instanceof Readable, 'the answer streams');
  return answer.body;
}

function headersOf(answer: UpstreamAnswer): readonly (readonly [string, string])[] {
  assert.ok(answer.kind === 'answer');
  const pairs: [string, string][] = [];
  for (let at = 0; at < answer.headers.length; at += 2) {
    pairs.push([answer.headers[at] ?? '', answer.headers[at + 1] ?? '']);
  }
  return pairs;
}

function ignored(): undefined {
  return undefined;
}

/** What `BrokenAnswer` a stream ends with, and what came before it. */
async function readBroken(stream: Readable): Promise<{ readonly code: string; readonly text: string }> {
  let text = '';
  try {
    for await (const chunk of stream) text += String(chunk);
  } catch (error) {
    assert.ok(error instanceof BrokenAnswer, String(error));
    return { code: error.code, text };
  }
  assert.fail(`the stream ended whole: ${text}`);
}

/** Answers every request by `bytes`, then does `after` to its connection. */
function answering(bytes: string, after: 'keep' | 'end' | 'reset' = 'keep'): Promise<Backend> {
  return rawBackend((socket) => {
    socket.write(Buffer.from(bytes, 'latin1'), () => {
      if (after === 'end') socket.end();
      if (after === 'reset') setTimeout(() => socket.resetAndDestroy(), 30);
    });
  });
}

describe('forwarding', { concurrency: 8 }, () => {
  test('the path goes upstream as it stands, with the given headers and nothing of the gateway', async () => {
    let seen = '';
    const backend = await rawBackend((socket, request) => {
      seen = request;
      socket.end('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok');
    });
    const headers = [
      'X-Trace',
      'a',
      'Toolgate-Session',
      's',
      'Connection',
      'x',
      'Host',
      'evil',
      'Expect',
      'y',
      'X-Fixed',
      'no',
    ];
    const call = { ...WRITE, rawPath: '/a/%7Eb//..%2f/./c;d?q=%20+', headers: [...WRITE.headers, ...headers] };
    const answer = await callOnce(backend.origin, call, { headers: ['X-Fixed', 'yes', 'Authorization', 'Bearer up'] });
    assert.equal(textOf(answer), 'ok');
    const [line, ...lines] = seen.split('\r\n');
    assert.equal(line, 'POST /a/%7Eb//..%2f/./c;d?q=%20+ HTTP/1.1');
    assert.deepEqual(lines.slice(0, -2).sort(), [
      'accept: */*',
      'authorization: Bearer up',
      'connection: keep-alive',
      'content-length: 7',
      'content-type: application/json',
      `host: 127.0.0.1:${backend.port}`,
      'x-fixed: yes',
      'x-trace: a',
    ]);
    await backend.close();
  });

  test('a header or path that would break the request line is not sent', async () => {
    const backend = await answering('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n');
    assert.equal((await callOnce(backend.origin, { ...READ, headers: ['x', 'a\r\nb: c'] })).kind, 'not_sent');
    assert.equal((await callOnce(backend.origin, { ...READ, rawPath: '/a b' })).kind, 'not_sent');
    assert.equal((await callOnce(backend.origin, { ...READ, rawPath: 'http://evil.example/' })).kind, 'not_sent');
    assert.equal(backend.connections(), 0);
    await backend.close();
  });

  test('a refused connection is not sent', async () => {
    const answer = await callOnce(`http://127.0.0.1:${await unusedPort()}`, WRITE);
    assert.equal(codeOf(answer), 'not_sent connection_refused');
  });

  test('a name that is not found is not sent', async () => {
    assert.equal(codeOf(await callOnce('http://nx.invalid', WRITE)), 'not_sent name_not_found');
  });

  test('a handshake that does not end is not sent', async () => {
    const backend = await start(createTcpServer(), 'https');
    assert.equal(codeOf(await callOnce(backend.origin, WRITE, { connectTimeoutMs: 200 })), 'not_sent connect_timeout');
    await backend.close();
  });

  test('TLS that fails is not sent', async (t) => {
    const own = makeCertificate('127.0.0.1');
    const other = makeCertificate('other.example');
    if (own === undefined || other === undefined) return t.skip('the openssl program is not installed');
    let requests = 0;
    const serve = (pair: { key: string; cert: string }): Promise<Backend> =>
      start(
        createHttpsServer(pair, (_, response) => {
          requests += 1;
          response.end('ok');
        }),
        'https',
      );
    const selfSigned = await serve(own);
    assert.equal(codeOf(await callOnce(selfSigned.origin, WRITE)), 'not_sent tls_failed');
    const wrongName = await serve(other);
    assert.equal(codeOf(await callOnce(wrongName.origin, WRITE, { tls: { ca: other.cert } })), 'not_sent tls_failed');
    const plain = await start(
      createTcpServer((socket) => socket.on('error', ignored).end('HTTP/1.1 400 Bad Request\r\n\r\n')),
    );
    const secure = plain.origin.replace('http:', 'https:');
    assert.equal(codeOf(await callOnce(secure, WRITE)), 'not_sent tls_failed');
    assert.equal(requests, 0);
    assert.equal(textOf(await callOnce(selfSigned.origin, WRITE, { tls: { ca: own.cert } })), 'ok');
    assert.equal(requests, 1);
    await Promise.all([selfSigned.close(), wrongName.close(), plain.close()]);
  });

  for (const [title, bytes, after, code] of [
    ['a reset before the answer', '', 'reset', 'unclear connection_lost'],
    ['a connection closed before the answer', '', 'end', 'unclear connection_lost'],
    ['a reset within the head', 'HTTP/1.1 200 OK\r\nContent-', 'reset', 'unclear connection_lost'],
    ['half of a small body', 'HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n12345', 'end', 'unclear connection_lost'],
    ['bytes that are no HTTP', 'SSH-2.0-OpenSSH\r\n\r\n', 'end', 'unclear broken_answer'],
    [
      'two lengths',
      'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab',
      'end',
      'unclear broken_answer',
    ],
    [
      'a length and chunks',
      'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
      'end',
      'unclear broken_answer',
    ],
    ['an upgrade that nobody asked for', 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n', 'keep', 'unclear'],
  ] as const) {
    for (const call of [READ, WRITE]) {
      test(`${title} leaves a ${call.method} unclear, and it is sent once`, async () => {
        let requests = 0;
        const backend = await rawBackend((socket) => {
          requests += 1;
          if (bytes !== '') socket.write(bytes);
          if (after === 'end') socket.end();
          if (after === 'reset') setTimeout(() => socket.resetAndDestroy(), 20);
        });
        const answer = await callOnce(backend.origin, { ...call, timeoutMs: 5_000 });
        assert.ok(codeOf(answer).startsWith(code), codeOf(answer));
        await sleep(30);
        assert.equal(requests, 1);
        await backend.close();
      });
    }
  }

  test('an upstream that does not begin to answer is unclear after the timeout', async () => {
    const backend = await rawBackend(() => undefined);
    const from = performance.now();
    assert.equal(codeOf(await callOnce(backend.origin, { ...WRITE, timeoutMs: 150 })), 'unclear first_byte_timeout');
    assert.ok(performance.now() - from < 15_000, 'long before any other timeout');
    await backend.close();
  });

  test('a small answer that stops halfway is unclear', async () => {
    const backend = await answering('HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n12345');
    const call = { ...WRITE, idleTimeoutMs: 150 };
    assert.equal(codeOf(await callOnce(backend.origin, call)), 'unclear idle_timeout');
    await backend.close();
  });

  test('a call that takes longer than its tool may is unclear', async () => {
    const backend = await httpBackend((_, response) => {
      response.write('begun');
      const timer = setInterval(() => response.write('x'), 20);
      response.on('close', () => clearInterval(timer));
    });
    const upstream = createHttpUpstream({ origin: backend.origin });
    const answer = await upstream.forward({ ...READ, totalTimeoutMs: 1_000 });
    const { code, text } = await readBroken(streamOf(answer));
    assert.equal(code, 'total_timeout');
    assert.match(text, /^begunx*$/);
    await upstream.close();
    await backend.close();
  });

  test('half a streamed answer ends its stream with an error', async () => {
    for (const [head, body] of [
      ['Content-Length: 100000', 'x'.repeat(20_000)],
      ['Transfer-Encoding: chunked', '5\r\nhello\r\n'],
    ] as const) {
      const backend = await answering(`HTTP/1.1 200 OK\r\n${head}\r\n\r\n${body}`, 'end');
      const { code } = await readBroken(streamOf(await callOnce(backend.origin, READ)));
      assert.ok(code === 'connection_lost' || code === 'broken_answer', code);
      await backend.close();
    }
  });

  test('a trickle is passed on piece by piece and may take longer than its timeouts', async () => {
    const backend = await httpBackend(async (_, response) => {
      for (const piece of 'abcdefgh') {
        response.write(piece);
        await sleep(200);
      }
      response.end();
    });
    const upstream = createHttpUpstream({ origin: backend.origin });
    const stream = streamOf(await upstream.forward({ ...READ, timeoutMs: 1_200 }));
    const pieces: string[] = [];
    for await (const piece of stream) pieces.push(String(piece));
    assert.equal(pieces.join(''), 'abcdefgh');
    assert.ok(pieces.length >= 3, `${pieces.length} pieces`);
    await upstream.close();
    await backend.close();
  });

  test('one call that times out hurts no other', async () => {
    const backend = await httpBackend((request, response) => {
      if (request.url === '/stall') return;
      setTimeout(() => response.end('fine'), 400);
    });
    const upstream = createHttpUpstream({ origin: backend.origin });
    const calls = Array.from({ length: 10 }, (_, at) =>
      upstream.forward({ ...READ, rawPath: at % 2 === 0 ? '/stall' : '/slow', timeoutMs: at % 2 === 0 ? 100 : 3_000 }),
    );
    const answers = await Promise.all(calls);
    assert.deepEqual(
      answers.map(codeOf),
      answers.map((_, at) => (at % 2 === 0 ? 'unclear first_byte_timeout' : 'answer 200')),
    );
    await upstream.close();
    await backend.close();
  });

  test('connections are kept, and one that the upstream closed is not used again', async () => {
    const backend = await httpBackend((request, response) => {
      if (request.url === '/last') response.shouldKeepAlive = false;
      response.end('ok');
    });
    const upstream = createHttpUpstream({ origin: backend.origin });
    for (let n = 0; n < 5; n += 1) assert.equal(textOf(await upstream.forward(READ)), 'ok');
    // A connection is free again one turn after its answer, so a call that follows at once may open a second.
    assert.ok(backend.connections() <= 2, `${backend.connections()} connections`);
    for (let n = 0; n < 3; n += 1) assert.equal(textOf(await upstream.forward({ ...READ, rawPath: '/last' })), 'ok');
    assert.equal(textOf(await upstream.forward(WRITE)), 'ok');
    await upstream.close();
    await backend.close();
  });

  test('a call that finds no connection free in time is not sent, then or later', async () => {
    const seen: string[] = [];
    const backend = await httpBackend((request, response) => {
      seen.push(request.url ?? '');
      setTimeout(() => response.end('ok'), 300);
    });
    const upstream = createHttpUpstream({ origin: backend.origin, connections: 1 });
    const first = upstream.forward({ ...WRITE, rawPath: '/first' });
    const second = upstream.forward({ ...WRITE, rawPath: '/second', timeoutMs: 80 });
    assert.equal(codeOf(await second), 'not_sent upstream_busy');
    assert.equal(textOf(await first), 'ok');
    assert.equal(textOf(await upstream.forward({ ...WRITE, rawPath: '/third' })), 'ok');
    assert.deepEqual(seen, ['/first', '/third']);
    await upstream.close();
    await backend.close();
  });

  test('nothing leaves before the call is recorded, and nothing at all where it cannot be', async () => {
    let requests = 0;
    const backend = await httpBackend((_, response) => {
      requests += 1;
      response.end('ok');
    });
    const upstream = createHttpUpstream({ origin: backend.origin });
    const { promise, resolve } = Promise.withResolvers<void>();
    const call = upstream.forward({ ...WRITE, onSending: () => promise });
    await sleep(50);
    assert.equal(requests, 0);
    resolve();
    assert.equal(textOf(await call), 'ok');
    const refused = await upstream.forward({ ...WRITE, onSending: () => Promise.reject(new Error('disk full')) });
    assert.equal(codeOf(refused), 'not_sent not_recorded');
    const gone = new AbortController();
    const onSending = async (): Promise<void> => gone.abort();
    assert.equal(codeOf(await upstream.forward({ ...READ, abort: gone.signal, onSending })), 'not_sent client_gone');
    assert.equal(requests, 1);
    await upstream.close();
    await backend.close();
  });

  test('an aborted read ends at once, and its connection with it', async () => {
    const backend = await httpBackend((request, response) => {
      if (request.url === '/body') response.write('x');
    });
    const upstream = createHttpUpstream({ origin: backend.origin });
    const gone = new AbortController();
    const call = upstream.forward({ ...READ, abort: gone.signal });
    const streaming = await upstream.forward({ ...READ, rawPath: '/body', abort: gone.signal });
    assert.ok(await eventually(() => backend.open() === 2));
    gone.abort();
    assert.equal(codeOf(await call), 'unclear client_gone');
    assert.equal((await readBroken(streamOf(streaming))).code, 'client_gone');
    assert.ok(await eventually(() => backend.open() === 0));
    await upstream.close();
    await backend.close();
  });

  test('what belongs to the connection or speaks for the gateway is stripped from an answer', async () => {
    const fields = [
      'Content-Length: 2',
      'Connection: keep-alive, X-Hop, Content-Length',
      'X-Hop: 1',
      'Keep-Alive: timeout=9',
      'Proxy-Authenticate: Basic',
      'Trailer: x',
      'Toolgate-Decision: allow',
      'TOOLGATE-Entry: x',
      'Idempotency-Replayed: true',
      'Set-Cookie: a=1',
      'Set-Cookie: b=2',
      'X-Latin: caf\xe9',
      'Content-Encoding: br',
      'Location: /elsewhere',
    ];
    const backend = await answering(`HTTP/1.1 302 Found\r\n${fields.join('\r\n')}\r\n\r\nok`);
    const answer = await callOnce(backend.origin, READ);
    assert.equal(codeOf(answer), 'answer 302');
    assert.deepEqual(headersOf(answer), [
      ['content-length', '2'],
      ['set-cookie', 'a=1'],
      ['set-cookie', 'b=2'],
      ['x-latin', 'caf\xe9'],
      ['content-encoding', 'br'],
      ['location', '/elsewhere'],
    ]);
    await backend.close();
  });

  test('informational answers are passed over', async () => {
    const early = 'HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n';
    const backend = await answering(`${early}HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\nok`);
    const answer = await callOnce(backend.origin, WRITE);
    assert.equal(codeOf(answer), 'answer 201');
    assert.deepEqual(headersOf(answer), [['content-length', '2']]);
    await backend.close();
  });

  test('answers without a body are whole', async () => {
    for (const [method, head] of [
      ['HEAD', 'HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n'],
      ['GET', 'HTTP/1.1 304 Not Modified\r\nETag: "x"\r\n\r\n'],
      ['DELETE', 'HTTP/1.1 204 No Content\r\n\r\n'],
    ] as const) {
      const backend = await answering(head);
      assert.equal(textOf(await callOnce(backend.origin, { ...READ, method })), '');
      await backend.close();
    }
  });

  test('an answer that somebody reads is whole up to the limit, and streams beyond it', async () => {
    const backend = await httpBackend((request, response) => {
      const size = Number(request.url?.slice(1));
      response.write('x'.repeat(size / 2));
      setTimeout(() => response.end('x'.repeat(size / 2)), 20);
    });
    const upstream = createHttpUpstream({ origin: backend.origin });
    const call = { ...READ, wholeUpTo: 100_000 };
    assert.equal(textOf(await upstream.forward({ ...call, rawPath: '/100000' })).length, 100_000);
    let size = 0;
    for await (const piece of streamOf(await upstream.forward({ ...call, rawPath: '/100002' })))
      size += String(piece).length;
    assert.equal(size, 100_002);
    await upstream.close();
    await backend.close();
  });

  test('an upstream is read no faster than its answer is taken', async () => {
    const total = 48 * 1024 * 1024;
    let written = 0;
    const backend = await httpBackend((_, response) => {
      const piece = Buffer.alloc(64 * 1024, 'x');
      const write = (): void => {
        while (written < total) {
          written += piece.length;
          if (!response.write(piece)) {
            response.once('drain', write);
            return;
          }
        }
        response.end();
      };
      write();
    });
    const upstream = createHttpUpstream({ origin: backend.origin });
    const stream = streamOf(await upstream.forward(READ));
    await sleep(200);
    const ahead = written;
    assert.ok(ahead < total / 3, `${ahead} bytes were read ahead`);
    let size = 0;
    for await (const piece of stream) size += (piece as Buffer).length;
    assert.equal(size, total);
    await upstream.close();
    await backend.close();
  });

  test('a problem of an upstream that claims a type of the gateway loses its media type', async () => {
    const types = {
      'urn:toolgate:allow': 'application/json',
      'URN:Toolgate:x': 'application/json',
      'about:blank': 'application/problem+json',
    };
    for (const [type, expected] of Object.entries(types)) {
      const body = JSON.stringify({ type });
      const backend = await answering(
        `HTTP/1.1 403 Forbidden\r\nContent-Type: application/problem+json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
      );
      const answer = await callOnce(backend.origin, READ);
      assert.equal(headersOf(answer).find(([name]) => name === 'content-type')?.[1], expected, type);
      assert.equal(textOf(answer), body);
      await backend.close();
    }
  });

  test('a ready upstream takes connections', async () => {
    const backend = await httpBackend((_, response) => response.end());
    const upstream = createHttpUpstream({ origin: backend.origin });
    await upstream.ready();
    await backend.close();
    await assert.rejects(upstream.ready(), /refused/);
    await upstream.close();
  });
});
