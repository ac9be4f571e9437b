import assert from 'node:assert/strict';
import { connect, type Socket } from 'node:net';
import { test } from 'node:test';
import type { EnforceAnswer, ToolCheck, UpstreamAnswer } from '../../gateway/exchange.ts';
import { writeRouteAnswer } from '../../gateway/http/answer.ts';
import type { EdgeExchange } from '../../gateway/http/edge-exchange.ts';
import { createHttpUpstream } from '../../gateway/http/forward.ts';
import { fault } from '../../gateway/http/problems.ts';
import { createEdgeServer } from '../../gateway/http/server.ts';
import { type Backend, eventually, httpBackend, rawBackend, sleep } from './backends.ts';
import { type RawAnswer, sendRaw } from './raw.ts';

const GET = 'GET /x HTTP/1.1\r\nHost: a\r\n\r\n';

const CHECK: ToolCheck = {
  format: 'qls-tool-check/1',
  decision: 'allow',
  reason: 'allow',
  reasons: ['allow'],
  detail: {},
  sentence: 'nothing held the call',
  tool: 'shop/get_order',
  agent: 'desk',
  session: 'chat-17',
  step: 3,
};

const RAN = Promise.resolve('ran' as const);

/** Serves `answer` as the answer of every request. */
async function serve(
  answer: (exchange: EdgeExchange) => EnforceAnswer | Promise<EnforceAnswer>,
  run: (port: number, errors: unknown[]) => Promise<void>,
  stallMs = 1_000,
): Promise<void> {
  const errors: unknown[] = [];
  const server = createEdgeServer({
    listen: { host: '127.0.0.1', port: 0 },
    handle: async (exchange) => writeRouteAnswer(exchange, await answer(exchange), stallMs),
    onError: (error) => errors.push(error),
  });
  const { port } = await server.listen();
  try {
    await run(port, errors);
  } finally {
    await server.close({ graceMs: 0 });
  }
}

async function answerOf(answer: EnforceAnswer, request = GET): Promise<RawAnswer> {
  let got: RawAnswer | undefined;
  await serve(
    () => answer,
    async (port) => {
      got = await sendRaw(port, request.replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n'));
    },
  );
  assert.ok(got !== undefined);
  return got;
}

function json(answer: RawAnswer): unknown {
  return JSON.parse(answer.body);
}

function upstreamSays(status: number, headers: readonly string[], body: string): UpstreamAnswer {
  return { kind: 'answer', status, headers, body: Buffer.from(body) };
}

test('a refusal is a 403 problem that holds the whole check, every digit of it', async () => {
  const check: ToolCheck = {
    ...CHECK,
    decision: 'refuse',
    reason: 'argument_schema',
    reasons: ['argument_schema'],
    pointer: '/id',
    detail: { id: 9007199254740993n },
  };
  const answer = await answerOf({ kind: 'decided', check });
  assert.equal(answer.status, 403);
  assert.equal(answer.headers['content-type'], 'application/problem+json');
  assert.equal(answer.headers['toolgate-decision'], 'refuse');
  assert.equal(answer.headers['toolgate-session'], 'chat-17');
  assert.equal(answer.headers['toolgate-step'], '3');
  assert.match(answer.body, /"detail":\{"id":9007199254740993\}/);
  const { type, status, detail, pointer, check: got } = json(answer) as Record<string, unknown>;
  assert.deepEqual(
    { type, status, detail, pointer },
    {
      type: 'urn:toolgate:argument_schema',
      status: 403,
      detail: check.sentence,
      pointer: '/id',
    },
  );
  assert.equal((got as ToolCheck).reason, 'argument_schema');
});

test('a confirm is a 428 problem, and a rule of the rulebook is named by its family', async () => {
  const asked = await answerOf({
    kind: 'decided',
    check: { ...CHECK, decision: 'confirm', reason: 'argument_origin: amount' },
  });
  assert.equal(asked.status, 428);
  assert.equal(asked.headers['toolgate-decision'], 'confirm');
  assert.equal((json(asked) as { type: string }).type, 'urn:toolgate:argument_origin');
  const ruled = await answerOf({
    kind: 'decided',
    check: { ...CHECK, decision: 'refuse', reason: 'Too Late To Refund' },
  });
  assert.equal((json(ruled) as { type: string }).type, 'urn:toolgate:rulebook_refused');
  const store = await answerOf({
    kind: 'decided',
    check: { ...CHECK, decision: 'refuse', reason: 'store_unavailable' },
  });
  assert.deepEqual([store.status, store.headers['retry-after']], [503, '1']);
});

test('an allow that was not forwarded is never shown as an answer', async () => {
  assert.equal((await answerOf({ kind: 'decided', check: CHECK })).status, 500);
});

test('a refused receipt is a 403 problem that holds it', async () => {
  const receipt = {
    format: 'qls-tool-receipt/1',
    decision: 'refuse',
    reason: 'receipt_spent',
    reasons: ['receipt_spent'],
    tool: 'shop/get_order',
    agent: 'desk',
    session: 's',
    step: 4,
    resend: false,
    detail: {},
  } as const;
  const answer = await answerOf({ kind: 'receipt', receipt });
  assert.equal(answer.status, 403);
  const body = json(answer) as Record<string, unknown>;
  assert.equal(body['type'], 'urn:toolgate:receipt_spent');
  assert.deepEqual(body['receipt'], receipt);
  assert.ok(!('check' in body));
});

test('a problem says what its status asks for', async () => {
  const limited = await answerOf({
    kind: 'problem',
    problem: fault('key_in_flight', 'wait', { retryAfterSeconds: 2 }),
  });
  assert.deepEqual([limited.status, limited.headers['retry-after']], [409, '2']);
  const anonymous = await answerOf({ kind: 'problem', problem: fault('no_credential', 'who') });
  assert.deepEqual([anonymous.status, anonymous.headers['www-authenticate']], [401, 'Bearer realm="toolgate"']);
});

test("an upstream's answer passes with its status, headers and body, and what the gateway says of the call", async () => {
  const answer = await answerOf({
    kind: 'forwarded',
    check: { ...CHECK, entry: { step: 3 }, history: { session: 'chat-17' } },
    upstreamKey: 'k-1',
    answer: upstreamSays(201, ['content-type', 'text/x', 'content-length', '999', 'set-cookie', 'a=1'], 'made'),
    outcome: RAN,
  });
  assert.equal(answer.status, 201);
  assert.equal(answer.body, 'made');
  assert.deepEqual(
    [
      'toolgate-decision',
      'toolgate-session',
      'toolgate-step',
      'toolgate-idempotency-key',
      'content-length',
      'set-cookie',
    ].map((name) => answer.headers[name]),
    ['allow', 'chat-17', '3', 'k-1', '4', 'a=1'],
  );
  assert.equal(Buffer.from(answer.headers['toolgate-entry'] ?? '', 'base64url').toString(), '{"step":3}');
  assert.equal(Buffer.from(answer.headers['toolgate-history'] ?? '', 'base64url').toString(), '{"session":"chat-17"}');
});

test('answers without a body stay so', async () => {
  const head = GET.replace('GET', 'HEAD');
  const forwarded = { kind: 'forwarded', check: CHECK, outcome: RAN } as const;
  const headed = await answerOf({ ...forwarded, answer: upstreamSays(200, ['content-length', '100000'], '') }, head);
  assert.deepEqual([headed.status, headed.headers['content-length'], headed.body], [200, '100000', '']);
  const empty = await answerOf({ ...forwarded, answer: upstreamSays(204, [], '') });
  assert.deepEqual([empty.status, empty.headers['content-length'], empty.body], [204, undefined, '']);
});

test('a session that cannot stand in a header is left out of it', async () => {
  const check = { ...CHECK, session: 'caf\u00e9 \u2603' };
  const answer = await answerOf({ kind: 'forwarded', check, outcome: RAN, answer: upstreamSays(200, [], 'x') });
  assert.deepEqual([answer.status, answer.headers['toolgate-session']], [200, undefined]);
});

test('a replay repeats status, media type and body, and says that it is one', async () => {
  const stored = { kind: 'kept', status: 201, contentType: 'text/x', body: Buffer.from('made') } as const;
  const call = { kind: 'replayed', outcome: 'ran', session: 's', step: 1, upstreamKey: 'k' } as const;
  const answer = await answerOf({ ...call, answer: stored });
  assert.deepEqual(
    [answer.status, answer.body, answer.headers['content-type'], answer.headers['idempotency-replayed']],
    [201, 'made', 'text/x', 'true'],
  );
  const gone = await answerOf({ ...call, answer: { kind: 'tombstone', status: 200 } });
  assert.equal(gone.status, 409);
  assert.match(gone.body, /urn:toolgate:answer_not_kept/);
});

test('a call that was not sent is 502, one that may have been done 504', async () => {
  const call = { kind: 'forwarded', check: CHECK } as const;
  const notSent = { kind: 'not_sent', code: 'connection_refused', why: 'the upstream refused the connection' } as const;
  const unclear = { kind: 'unclear', code: 'connection_lost', why: 'the connection was lost' } as const;
  const failed = await answerOf({ ...call, answer: notSent, outcome: Promise.resolve('failed') });
  assert.equal(failed.status, 502);
  assert.match(failed.body, /urn:toolgate:upstream_unreachable/);
  const unknown = await answerOf({ ...call, answer: unclear, outcome: Promise.resolve('outcome_unknown') });
  assert.equal(unknown.status, 504);
  assert.match(unknown.body, /urn:toolgate:outcome_unknown/);
  assert.equal(unknown.headers['toolgate-session'], 'chat-17');
});

test('an answer waits for its outcome, and is no success where that cannot be recorded', async () => {
  let settled = false;
  const outcome = sleep(80).then(() => {
    settled = true;
    return 'ran' as const;
  });
  const answer = await answerOf({ kind: 'forwarded', check: CHECK, answer: upstreamSays(200, [], 'x'), outcome });
  assert.ok(settled);
  assert.equal(answer.status, 200);
  await serve(
    () => ({
      kind: 'forwarded',
      check: CHECK,
      answer: upstreamSays(200, [], 'x'),
      outcome: Promise.reject(new Error('disk full')),
    }),
    async (port, errors) => {
      const lost = await sendRaw(port, GET);
      assert.equal(lost.status, 504);
      assert.match(lost.body, /urn:toolgate:outcome_unknown/);
      assert.equal(errors.length, 1);
    },
  );
});

/** Serves what `backend` streams. */
async function relay(
  backend: Backend,
  run: (port: number, errors: unknown[]) => Promise<void>,
  {
    outcome = RAN,
    write = false,
    stallMs = 1_000,
  }: { outcome?: Promise<'ran'>; write?: boolean; stallMs?: number } = {},
): Promise<void> {
  const upstream = createHttpUpstream({ origin: backend.origin });
  const served = serve(
    async (exchange) => {
      const call = { method: 'GET', rawPath: exchange.path, headers: [], timeoutMs: 5_000, wholeUpTo: 0 };
      const answer = await upstream.forward(write ? call : { ...call, abort: exchange.gone });
      return { kind: 'forwarded', check: CHECK, answer, outcome, ...(write ? { upstreamKey: 'k' } : {}) };
    },
    run,
    stallMs,
  );
  try {
    await served;
  } finally {
    await upstream.close();
    await backend.close();
  }
}

test('a stream passes live, and its last byte waits for the outcome', async () => {
  for (const head of [{ 'content-type': 'text/event-stream' }, { 'content-length': '40000' }]) {
    const seen = Promise.withResolvers<void>();
    const backend = await httpBackend(async (_, response) => {
      response.writeHead(200, head);
      response.write('first'.padEnd(20_000, '.'));
      await seen.promise;
      response.end('last'.padEnd(20_000, '.'));
    });
    const recorded = Promise.withResolvers<'ran'>();
    await relay(
      backend,
      async (port) => {
        const socket = connect({ host: '127.0.0.1', port });
        let text = '';
        socket.on('data', (chunk: Buffer) => {
          text += chunk.toString('latin1');
        });
        socket.write(GET);
        const isWhole = (): boolean =>
          text.endsWith('0\r\n\r\n') || text.slice(text.indexOf('\r\n\r\n') + 4).length === 40_000;
        assert.ok(await eventually(() => text.includes('first')));
        seen.resolve();
        assert.ok(await eventually(() => text.includes('last')));
        await sleep(60);
        assert.ok(!isWhole(), 'the end waits');
        recorded.resolve('ran');
        assert.ok(await eventually(isWhole));
        socket.destroy();
      },
      { outcome: recorded.promise },
    );
  }
});

test('half an answer of the upstream never looks whole to the client', async () => {
  for (const head of ['Content-Length: 100000', 'Transfer-Encoding: chunked']) {
    const backend = await rawBackend((socket) => {
      socket.write(`HTTP/1.1 200 OK\r\n${head}\r\n\r\n4e20\r\n${'x'.repeat(20_000)}`);
      setTimeout(() => socket.destroy(), 40);
    });
    await relay(backend, async (port) => {
      const { text } = await sendRaw(port, GET);
      assert.match(text, /^HTTP\/1\.1 200/);
      assert.doesNotMatch(text, /0\r\n\r\n$/);
      assert.ok(text.length < 30_000);
    });
  }
});

/** A client that asks and can hang up. */
function ask(port: number): Socket {
  const socket = connect({ host: '127.0.0.1', port });
  socket.on('error', () => socket.destroy());
  socket.resume();
  socket.write(GET);
  return socket;
}

test('50 clients that hang up leave no read open upstream, before or within the answer', async () => {
  for (const streams of [false, true]) {
    let taken = 0;
    const backend = await httpBackend((_, response) => {
      taken += 1;
      if (!streams) return;
      const timer = setInterval(() => response.write('x'.repeat(1_000)), 10);
      response.on('close', () => clearInterval(timer));
    });
    await relay(backend, async (port) => {
      const clients = Array.from({ length: 50 }, () => ask(port));
      assert.ok(await eventually(() => taken === 50 && (!streams || clients.every((client) => client.bytesRead > 0))));
      for (const client of clients) client.destroy();
      assert.ok(await eventually(() => backend.open() === 0), `${backend.open()} connections are open`);
    });
  }
});

test('a write whose client hangs up is read to its end', async () => {
  let finished = 0;
  const backend = await httpBackend(async (_, response) => {
    response.write('x'.repeat(20_000));
    await sleep(200);
    for (let n = 0; n < 30; n += 1) {
      if (!response.write('x'.repeat(100_000))) await new Promise((resolve) => response.once('drain', resolve));
    }
    response.end(() => {
      finished += 1;
    });
  });
  await relay(
    backend,
    async (port) => {
      const client = ask(port);
      assert.ok(await eventually(() => client.bytesRead > 0));
      client.destroy();
      assert.ok(await eventually(() => finished === 1));
    },
    { write: true },
  );
});

test('a client that takes nothing is given up, and no read stays open for it', async () => {
  const backend = await httpBackend((_, response) => {
    const write = (): void => {
      while (response.write('x'.repeat(100_000)));
      response.once('drain', write);
    };
    write();
  });
  await relay(
    backend,
    async (port) => {
      const socket = connect({ host: '127.0.0.1', port });
      socket.on('error', () => socket.destroy());
      socket.pause();
      socket.write(GET);
      assert.ok(await eventually(() => backend.open() === 1));
      assert.ok(await eventually(() => backend.open() === 0, 3_000));
      socket.destroy();
    },
    { stallMs: 200 },
  );
});
