import assert from 'node:assert/strict';
import { connect, createServer, type Socket } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { startTestGateway, type TestGateway } from '../harness/gateway.ts';
import { act, answerOnly, doAndCut, type RecordingBackend, startBackend } from './backend.ts';
import { call, get, post, type RunReport, unknowns, until, worldConfig } from './world.ts';

const WORDS = {
  charge: { retry: { attempts: 2 } },
  tell: { failed_when: [404, { field: 'status', is: 'refused' }] },
};

test('what an owner saw is neither told nor lost while whoever took its call over is still at work', async () => {
  const backend = await startBackend();
  const { url, gateway, close } = await startTestGateway(worldConfig(backend.url, {}, {}, '60s'));
  const { store } = gateway;
  const answer = Promise.withResolvers<void>();
  backend.next('book', async (seen, response) => {
    await answer.promise;
    act(backend, seen);
    response.writeHead(200, { 'content-type': 'application/json' }).end('{"id":"late"}');
  });
  try {
    const members = { session: 's', idempotency_key: 'k' };
    const begun = call(url, 'book', { order: 'x' }, members);
    await until('it was sent', async () => (backend.seen.length === 1 ? true : undefined));
    const later = Date.now() + 3_600_000;
    const [taken] = await store.takeLapsedClaims('elsewhere', later, later + 60_000, 1);
    assert.ok(taken !== undefined);
    answer.resolve();
    // It ran, and whoever has the call now may yet say that nobody knows.
    assert.equal((await begun).json.outcome, 'outcome_unknown');
    const { link, fence } = taken;
    const end = { op: 'move_claim', link, fence, from: ['sending'], to: 'outcome_unknown', atMs: Date.now() } as const;
    assert.equal((await store.commit([end])).ok, true);
    await until('what was seen is recorded', async () => {
      return (await store.findClaim({ link }))?.state === 'ran' ? true : undefined;
    });
    const again = await call(url, 'book', { order: 'x' }, members);
    assert.deepEqual([again.json.outcome, again.json.replayed, backend.seen.length], ['ran', true, 1]);
  } finally {
    answer.resolve();
    await close();
    await backend.close();
  }
});

describe('what became of a call', { concurrency: true }, () => {
  let backend: RecordingBackend;
  let gateway: TestGateway;

  before(async () => {
    backend = await startBackend();
    gateway = await startTestGateway(
      worldConfig(backend.url, { store: { url: './toolgate.db', max_answer: '2KiB' } }, WORDS),
    );
  });
  after(async () => {
    await gateway.close();
    await backend.close();
  });

  test('what the backend says it did not do is failed, and what nobody knows is unknown and sent once', async () => {
    const { url } = gateway;
    const outcomeOf = async (order: string, status: number): Promise<string | undefined> => {
      backend.next('book', answerOnly(status), { value: order });
      return (await call(url, 'book', { order }, {})).json.outcome;
    };
    for (const status of [400, 403, 404, 410, 422]) assert.equal(await outcomeOf(`f${status}`, status), 'failed');
    for (const status of [408, 409, 425, 429, 500, 502, 503]) {
      assert.equal(await outcomeOf(`u${status}`, status), 'outcome_unknown', String(status));
      assert.equal(backend.seen.filter(({ body }) => body['order'] === `u${status}`).length, 1);
    }
    const open = (await unknowns(url)).filter(({ tool }) => tool === 'shop/book');
    assert.ok(open.length >= 7);
  });

  test('a reset, a silence and half an answer leave the outcome unknown, and a write without a key is not sent again', async () => {
    const { url } = gateway;
    backend.next('book', doAndCut(backend), { value: 'reset' });
    assert.equal((await call(url, 'book', { order: 'reset' }, {})).json.outcome, 'outcome_unknown');
    backend.next('book', () => undefined, { value: 'silent' });
    assert.equal((await call(url, 'book', { order: 'silent' }, {})).json.outcome, 'outcome_unknown');
    backend.next(
      'book',
      (_seen, response) => {
        response.writeHead(200, { 'content-type': 'application/json', 'content-length': '100' }).write('{"id":');
        setTimeout(() => response.socket?.destroy(), 20);
      },
      { value: 'half' },
    );
    assert.equal((await call(url, 'book', { order: 'half' }, {})).json.outcome, 'outcome_unknown');
    for (const order of ['reset', 'silent', 'half']) {
      assert.equal(backend.seen.filter(({ body }) => body['order'] === order).length, 1, order);
    }
  });

  test('a keyed write and a read are sent again after an unclear end, with the same key, as often as `retry` says', async () => {
    const { url } = gateway;
    backend.next('charge', doAndCut(backend), { value: 'again', times: 2 });
    const charge = await call(url, 'charge', { order: 'again' }, {});
    assert.equal(charge.json.outcome, 'ran');
    const sent = backend.seen.filter(({ body }) => body['order'] === 'again');
    assert.deepEqual([sent.length, new Set(sent.map(({ key }) => key)).size], [3, 1]);
    assert.equal(backend.of('charge').filter(({ body }) => body['order'] === 'again').length, 1);
    backend.next('charge', answerOnly(500), { value: 'thrice', times: 3 });
    const session = 's-thrice';
    const unknown = await call(url, 'charge', { order: 'thrice' }, { session, idempotency_key: 'k-thrice' });
    assert.equal(unknown.json.outcome, 'outcome_unknown');
    assert.equal(backend.seen.filter(({ body }) => body['order'] === 'thrice').length, 3);
    backend.next('get_order', answerOnly(503), { value: 'read', times: 2 });
    assert.equal((await call(url, 'get_order', { order: 'read' }, {})).json.outcome, 'ran');

    // A repeat of the keyed write is sent again; nothing is decided anew.
    const repeat = await call(url, 'charge', { order: 'thrice' }, { session, idempotency_key: 'k-thrice' });
    assert.equal(repeat.json.outcome, 'ran');
    const keys = backend.seen.filter(({ body }) => body['order'] === 'thrice').map(({ key }) => key);
    assert.deepEqual([keys.length, new Set(keys).size], [4, 1]);
    const history = await get<{ entries: { reports?: object[] }[] }>(url, `/v1/sessions/${session}`);
    assert.equal(history.entries.length, 1);
    assert.equal((await unknowns(url)).filter(({ tool }) => tool === 'shop/charge').length, 0);
  });

  test('`failed_when` names what the backend did not do', async () => {
    const { url } = gateway;
    const outcomeOf = async (order: string, status: number, body: object): Promise<string | undefined> => {
      backend.next('tell', answerOnly(status, body), { value: order });
      return (await call(url, 'tell', { order }, {})).json.outcome;
    };
    assert.equal(await outcomeOf('w1', 404, {}), 'failed');
    assert.equal(await outcomeOf('w2', 400, {}), 'outcome_unknown');
    assert.equal(await outcomeOf('w3', 200, { status: 'refused' }), 'failed');
    assert.equal(await outcomeOf('w4', 200, { status: 'done' }), 'ran');
    assert.equal(await outcomeOf('w5', 200, {}), 'ran');
  });

  test('where nothing was connected the call failed, and its key is free again', async () => {
    const closed = createServer();
    await new Promise<void>((resolve) => closed.listen(0, '127.0.0.1', resolve));
    const { port } = closed.address() as { port: number };
    await new Promise((resolve) => closed.close(resolve));
    const plain = createServer((socket: Socket) =>
      socket.on('error', () => undefined).once('data', () => socket.end('HTTP/1.1 200 OK\r\n\r\n')),
    );
    await new Promise<void>((resolve) => plain.listen(0, '127.0.0.1', resolve));
    const tls = (plain.address() as { port: number }).port;
    for (const upstream of [`http://127.0.0.1:${port}`, 'http://no-such-host.invalid', `https://127.0.0.1:${tls}`]) {
      const off = await startTestGateway(worldConfig(upstream));
      try {
        const members = { session: 's', idempotency_key: 'k' };
        const failed = await call(off.url, 'book', { order: 'x' }, members);
        assert.equal(failed.json.outcome, 'failed', upstream);
        assert.deepEqual(await unknowns(off.url), []);
        const again = await call(off.url, 'book', { order: 'x' }, members);
        assert.equal(again.json.check?.step, 1, 'a new call');
        const route = await fetch(`${off.url}/shop/book`, {
          method: 'POST',
          headers: {
            authorization: 'Bearer desk-key',
            'content-type': 'application/json',
            'toolgate-origins': 'order=context',
          },
          body: '{"order":"x"}',
        });
        assert.equal(route.status, 502);
        await route.arrayBuffer();
      } finally {
        await off.close();
      }
    }
    plain.close();
  });

  test('a client that hangs up in the middle of a write changes nothing, and a repeat gets the answer without cookies', async () => {
    const { url } = gateway;
    const body = '{"order":"hang"}';
    let finish: () => void = () => undefined;
    const held = new Promise<void>((resolve) => {
      finish = resolve;
    });
    let arrived = false;
    backend.next(
      'book',
      async (seen, response) => {
        arrived = true;
        await held;
        act(backend, seen);
        response
          .writeHead(201, { 'content-type': 'application/json', 'set-cookie': 'a=b', 'x-own': '1' })
          .end('{"id":"b-1"}');
      },
      { value: 'hang' },
    );
    const { hostname, port } = new URL(url);
    const socket = connect(Number(port), hostname);
    const head = `POST /shop/book HTTP/1.1\r\nHost: ${hostname}:${port}\r\nAuthorization: Bearer desk-key\r\nContent-Type: application/json\r\n`;
    socket.write(
      `${head}Toolgate-Session: s-hang\r\nToolgate-Origins: order=context\r\nIdempotency-Key: "k-hang"\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    );
    await until('the request arrived', async () => (arrived ? true : undefined));
    socket.destroy();
    const repeat = (): Promise<Response> =>
      fetch(`${url}/shop/book`, {
        method: 'POST',
        headers: {
          authorization: 'Bearer desk-key',
          'content-type': 'application/json',
          'toolgate-session': 's-hang',
          'toolgate-origins': 'order=context',
          'idempotency-key': '"k-hang"',
        },
        body,
      });
    const early = await repeat();
    assert.deepEqual([early.status, early.headers.get('retry-after')], [409, '1']);
    await early.arrayBuffer();
    finish();
    const replayed = await until('the replay', async () => {
      const answer = await repeat();
      const text = await answer.text();
      return answer.status === 409 ? undefined : { answer, text };
    });
    assert.deepEqual([replayed.answer.status, replayed.text], [201, '{"id":"b-1"}']);
    assert.equal(replayed.answer.headers.get('idempotency-replayed'), 'true');
    assert.equal(replayed.answer.headers.get('set-cookie'), null);
    assert.equal(replayed.answer.headers.get('toolgate-session'), 's-hang');
    assert.equal(backend.of('book').filter(({ body: sent }) => sent['order'] === 'hang').length, 1);
    const other = await fetch(`${url}/shop/book`, {
      method: 'POST',
      headers: {
        authorization: 'Bearer desk-key',
        'content-type': 'application/json',
        'toolgate-origins': 'order=context',
        'idempotency-key': '"k-hang"',
      },
      body: '{"order":"other"}',
    });
    assert.equal(other.status, 422);
    await other.arrayBuffer();
  });

  test('an answer that streams or is too large is not kept, and its call is not run again', async () => {
    const { url } = gateway;
    backend.next(
      'note',
      (seen, response) => {
        act(backend, seen);
        response.writeHead(200, { 'content-type': 'text/event-stream' });
        response.write('data: 1\n\n');
        setTimeout(() => response.end('data: 2\n\n'), 30);
      },
      { value: 'stream' },
    );
    backend.next(
      'note',
      (seen, response) => {
        act(backend, seen);
        response.writeHead(200, { 'content-type': 'text/plain' }).end('x'.repeat(200_000));
      },
      { value: 'large' },
    );
    for (const order of ['stream', 'large']) {
      const members = { session: 's-tomb', idempotency_key: `k-${order}` };
      const first = await call(url, 'note', { order }, members);
      assert.equal(first.json.outcome, 'ran', order);
      const second = await call(url, 'note', { order }, members);
      assert.deepEqual([second.status, second.json.type], [409, 'urn:toolgate:answer_not_kept'], order);
      assert.equal(backend.of('note').filter(({ body }) => body['order'] === order).length, 1);
    }
  });

  test('only an approver lists unknown outcomes and settles them, once, with a reason', async () => {
    const { url } = gateway;
    backend.next('book', answerOnly(500), { value: 'settle' });
    const members = { session: 's-settle', idempotency_key: 'k-settle' };
    await call(url, 'book', { order: 'settle' }, members);
    assert.equal((await call(url, 'book', { order: 'settle' }, members)).json.type, 'urn:toolgate:outcome_pending');
    assert.equal((await get(url, '/v1/outcomes')).status_code, 403);
    const all = await get<{ outcomes: { id: string; session: string }[] }>(
      url,
      '/v1/outcomes?state=outcome_unknown',
      'ana-key',
    );
    const id = all.outcomes.find(({ session }) => session === 's-settle')?.id;
    const settle = (
      outcome: string,
      key = 'ana-key',
      reason: string | undefined = 'asked the shop',
    ): ReturnType<typeof post> =>
      post(url, `/v1/outcomes/${id}/settle`, { outcome, ...(reason === '' ? {} : { reason }) }, key);
    assert.equal((await settle('ran', 'desk-key')).status, 403);
    assert.equal((await settle('maybe')).status, 400);
    assert.equal((await settle('ran', 'ana-key', '')).status, 400);
    assert.equal((await settle('ran')).status, 200);
    assert.equal((await settle('failed')).status, 409);
    assert.equal(
      (await post(url, '/v1/outcomes/nothing/settle', { outcome: 'ran', reason: 'x' }, 'ana-key')).status,
      404,
    );
    assert.equal((await call(url, 'get_order', { order: 'x' }, { session: 's-settle' })).json.outcome, 'ran');
    const history = await get<{ entries: { reports?: { step: number; outcome: string }[]; outcome?: string }[] }>(
      url,
      '/v1/sessions/s-settle',
    );
    assert.equal(history.entries[0]?.outcome, 'ran');
  });

  test('a write that its host runs and never reports is listed as unknown, and its report settles it', async () => {
    const idle = await startTestGateway(worldConfig(backend.url, { runs: { idle: '1s' } }), { leaseMs: 600 });
    try {
      const { url } = idle;
      const check = async (order: string): Promise<{ step: number; idempotency_key?: string }> => {
        const asked = {
          tool: 'shop/book',
          arguments: { order },
          origins: { order: 'context' },
          session: 's',
          run: 'r',
        };
        return (await post(url, '/v1/check', asked)).json as { step: number; idempotency_key?: string };
      };
      const silent = await check('silent-host');
      assert.equal(typeof silent.idempotency_key, 'string');
      const told = await check('told-host');
      assert.equal((await post(url, '/v1/outcomes', { session: 's', step: told.step, outcome: 'ran' })).status, 200);
      const listed = await until('it is listed', async () =>
        (await unknowns(url)).find(({ step }) => step === silent.step),
      );
      assert.deepEqual([listed.run_by, listed.why], ['host', 'not_reported']);
      assert.equal((await unknowns(url)).length, 1);
      assert.equal(
        (await post(url, '/v1/outcomes', { session: 's', step: silent.step, outcome: 'failed' })).status,
        200,
      );
      assert.deepEqual(await unknowns(url), []);
      await until('the failure undid its run', async () => {
        const run = await get<RunReport>(url, '/v1/runs/r');
        return run.state === 'compensated' ? run : undefined;
      });
    } finally {
      await idle.close();
    }
  });
});
