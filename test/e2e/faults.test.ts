import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { startTestGateway, type TestAnswer, type TestGateway } from '../harness/gateway.ts';
import { headerMap, json, Moody } from './moody.ts';
import { type Called, digestOf, KEYS, readAudit } from './world.ts';

type Json = Record<string, unknown>;

const HOST = { origins: { id: 'computed' } };
const INPUT = { type: 'object', properties: { id: { type: 'integer' } } };

function config(upstream: string): Json {
  return {
    agents: {
      desk: {
        credentials: [
          { key: digestOf(KEYS.app), host: true, name: 'app' },
          { key: digestOf(KEYS.otherApp), host: true, name: 'other' },
        ],
      },
    },
    routes: [
      {
        name: 'm',
        path: '/m',
        upstream,
        agents: ['desk'],
        timeout: '1s',
        limit: '1KiB',
        http: [
          { name: 'look', method: 'GET', path: '/look' },
          { name: 'peek', method: 'HEAD', path: '/look' },
          { name: 'do', method: 'POST', path: '/do', writes: true, input: INPUT },
          { name: 'plain', method: 'POST', path: '/plain', writes: true, input: INPUT },
        ],
        tools: [
          { name: 'do', confirm: 'reasons', undo: 'none', idempotency: { header: 'Idempotency-Key' } },
          { name: 'plain', confirm: 'reasons', undo: 'none' },
        ],
      },
    ],
  };
}

let moody: Moody;
let gateway: TestGateway;
before(async () => {
  moody = await Moody.start();
  gateway = await startTestGateway(config(moody.url));
});
after(async () => {
  await gateway.close();
  await moody.close();
});

let sessions = 0;

function call(body: Json, headers: Record<string, string> = {}, key: string = KEYS.app): Promise<TestAnswer> {
  return gateway.request('POST', '/v1/call', { key, headers, body: { ...HOST, ...body } });
}

function route(
  path: string,
  body: unknown,
  headers: Record<string, string> = {},
  key: string = KEYS.app,
): Promise<TestAnswer> {
  return gateway.request('POST', path, { key, body, headers: { 'toolgate-origins': 'id=computed', ...headers } });
}

/** What the history of a session says of its newest entry. */
async function newest(session: string): Promise<Json> {
  for (let attempt = 0; attempt < 100; attempt += 1) {
    const answer = await gateway.request('GET', `/v1/sessions/${session}`, { key: KEYS.app });
    const entry = (answer.json as { entries?: Json[] }).entries?.at(-1);
    if (entry?.['outcome'] !== undefined) return entry;
    await pause(20);
  }
  throw new Error(`no outcome is known in ${session}`);
}

function audited(session: string): Json | undefined {
  return readAudit(gateway.folder).find((line) => line['event'] === 'outcome' && line['session'] === session);
}

describe('an upstream that', () => {
  const cases: readonly (readonly [
    string,
    Parameters<Moody['on']>[1],
    { outcome: string; status: number; why?: RegExp },
  ])[] = [
    ['answers 201', (response) => json(response, 201, { id: 1 }), { outcome: 'ran', status: 201 }],
    ['answers 204', (response) => response.writeHead(204).end(), { outcome: 'ran', status: 204 }],
    ['answers 404', (response) => json(response, 404, {}), { outcome: 'failed', status: 404 }],
    ['answers 409', (response) => json(response, 409, {}), { outcome: 'outcome_unknown', status: 409 }],
    ['answers 429', (response) => json(response, 429, {}), { outcome: 'outcome_unknown', status: 429 }],
    ['answers 500', (response) => json(response, 500, {}), { outcome: 'outcome_unknown', status: 500 }],
    ['answers 503', (response) => json(response, 503, {}), { outcome: 'outcome_unknown', status: 503 }],
    ['resets', (response) => response.socket?.resetAndDestroy(), { outcome: 'outcome_unknown', status: 504 }],
    ['closes', (response) => response.socket?.end(), { outcome: 'outcome_unknown', status: 504 }],
    ['says nothing', () => undefined, { outcome: 'outcome_unknown', status: 504 }],
    [
      'answers nonsense',
      (response) => response.socket?.end('SSH-2.0-x\r\n\r\n'),
      { outcome: 'outcome_unknown', status: 504 },
    ],
    [
      'sends two lengths',
      (response) => response.socket?.end('HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}x'),
      { outcome: 'outcome_unknown', status: 504 },
    ],
    [
      'sends half an answer',
      (response) => {
        response.writeHead(200, { 'content-type': 'application/json', 'content-length': 100 });
        response.write('{"half":');
        setTimeout(() => response.socket?.destroy(), 30);
      },
      { outcome: 'outcome_unknown', status: 504 },
    ],
    [
      'sends half a stream',
      (response) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' });
        response.write('data: 1\n\n');
        setTimeout(() => response.socket?.destroy(), 30);
      },
      { outcome: 'outcome_unknown', status: 200 },
    ],
  ];
  for (const [name, behaviour, { outcome, status }] of cases) {
    test(`${name} to a write: ${outcome} in the answer, the history and the audit log`, async () => {
      moody.on('POST /plain', behaviour);
      const session = `up-${++sessions}`;
      const before = moody.seen.length;
      const answer = await call({ tool: 'plain', arguments: { id: 1 }, session });
      const called = answer.json as Called;
      assert.equal(called.outcome, outcome, answer.text);
      assert.equal((await newest(session))['outcome'], outcome);
      assert.equal(audited(session)?.['outcome'], outcome);
      const proxied = await route('/m/plain', { id: 1 }, { 'toolgate-session': `${session}-r` }).catch(
        (error: Error) => error,
      );
      if (proxied instanceof Error) assert.equal(name, 'sends half a stream', String(proxied.cause));
      else {
        assert.equal(proxied.status, status, proxied.text);
        assert.equal(proxied.headers.get('toolgate-decision'), 'allow');
      }
      assert.equal((await newest(`${session}-r`))['outcome'], outcome);
      assert.equal(moody.seen.length, before + 2, 'each was sent once');
    });
  }

  test('fails again and again gets the same key each time, and no more than a few times', async () => {
    moody.on('POST /do', (response) => json(response, 500, {}));
    const before = moody.seen.length;
    const answer = await call({ tool: 'do', arguments: { id: 1 } });
    assert.equal((answer.json as Called).outcome, 'outcome_unknown');
    const sent = moody.seen.slice(before);
    assert.ok(sent.length >= 1 && sent.length <= 3, `${sent.length} times`);
    assert.equal(new Set(sent.map(({ headers }) => headerMap(headers).get('idempotency-key'))).size, 1);
    assert.equal(new Set(sent.map(({ body }) => body.toString())).size, 1);
  });

  test('is not there: the call failed and may be made again', async () => {
    const other = await Moody.start();
    const { url } = other;
    await other.close();
    const alone = await startTestGateway(config(url));
    try {
      const answer = await alone.request('POST', '/v1/call', {
        key: KEYS.app,
        body: { ...HOST, tool: 'do', arguments: { id: 1 }, session: 's' },
      });
      assert.equal((answer.json as Called).outcome, 'failed', answer.text);
      const proxied = await alone.request('GET', '/m/look', { key: KEYS.app });
      assert.equal(proxied.status, 502);
      const keyed = {
        key: KEYS.app,
        body: { id: 2 },
        headers: { 'toolgate-origins': 'id=computed', 'idempotency-key': 'k' },
      };
      assert.equal((await alone.request('POST', '/m/do', keyed)).status, 502);
      const back = await Moody.start(Number(new URL(url).port));
      try {
        const again = await alone.request('POST', '/m/do', keyed);
        assert.equal(again.status, 200, `what was not sent may be sent with the same key: ${again.text}`);
        assert.equal(back.seen.length, 1);
      } finally {
        await back.close();
      }
    } finally {
      await alone.close();
    }
  });
});

describe('an answer', () => {
  test('streams as it comes, and its outcome is known at its end', async () => {
    moody.on('GET /look', (response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      let n = 0;
      const timer = setInterval(() => {
        response.write(`data: ${++n}\n\n`);
        if (n === 4) {
          clearInterval(timer);
          response.end();
        }
      }, 40);
    });
    const session = `stream-${++sessions}`;
    const response = await fetch(`${gateway.url}/m/look`, {
      headers: { authorization: `Bearer ${KEYS.app}`, 'toolgate-session': session },
    });
    const arrivals: number[] = [];
    for await (const _chunk of response.body ?? []) arrivals.push(Date.now());
    assert.ok(arrivals.length >= 3, `${arrivals.length} pieces`);
    assert.ok((arrivals.at(-1) ?? 0) - (arrivals[0] ?? 0) > 60, 'not all at once');
    assert.equal((await newest(session))['outcome'], 'ran');
  });

  test('that still streams is reported on by nobody', async () => {
    const held: { end(): void }[] = [];
    moody.on('GET /look', (response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write('data: 1\n\n');
      held.push(response);
    });
    const opening = Buffer.from(JSON.stringify({ history: { format: 'qls-history/1', entries: [] } })).toString(
      'base64url',
    );
    const response = await fetch(`${gateway.url}/m/look`, {
      headers: { authorization: `Bearer ${KEYS.app}`, 'toolgate-call': opening },
    });
    const header = JSON.parse(
      Buffer.from(response.headers.get('toolgate-history') ?? '', 'base64url').toString(),
    ) as Json;
    const entry = JSON.parse(Buffer.from(response.headers.get('toolgate-entry') ?? '', 'base64url').toString()) as Json;
    const said = { ...header, entries: [{ ...entry, outcome: 'ran' }] };
    const answer = await gateway.request('POST', '/v1/check', {
      key: KEYS.app,
      body: { tool: 'look', arguments: {}, history: said },
    });
    assert.equal((answer.json as Json)['reason'], 'history_invalid', answer.text);
    const told = await gateway.request('POST', '/v1/outcomes', {
      key: KEYS.app,
      body: { session: header['session'], step: 0, outcome: 'ran' },
    });
    assert.equal(told.status, 409);
    for (const one of held) one.end();
    assert.match(await response.text(), /data: 1/);
  });

  test('to HEAD, of 304 and of 204 has no body and keeps its headers', async () => {
    moody.on('HEAD /look', (response) => response.writeHead(200, { 'content-length': 1234, etag: '"x"' }).end());
    const head = await gateway.request('HEAD', '/m/look', { key: KEYS.app });
    assert.deepEqual(
      [head.status, head.text, head.headers.get('content-length'), head.headers.get('etag')],
      [200, '', '1234', '"x"'],
    );
    for (const status of [204, 304]) {
      moody.on('GET /look', (response) => response.writeHead(status, { etag: '"y"' }).end());
      const answer = await gateway.request('GET', '/m/look', { key: KEYS.app });
      assert.deepEqual([answer.status, answer.text, answer.headers.get('etag')], [status, '', '"y"']);
      assert.equal(answer.headers.get('toolgate-decision'), 'allow');
    }
  });

  test('of some megabytes comes whole, and a request over the limit is 413', async () => {
    const big = Buffer.alloc(3 << 20, 'x');
    moody.on('GET /look', (response) => response.writeHead(200, { 'content-length': big.length }).end(big));
    const answer = await gateway.request('GET', '/m/look', { key: KEYS.app });
    assert.equal(answer.text.length, big.length);
    const before = moody.seen.length;
    const large = await route('/m/do', { id: 1, note: 'x'.repeat(2_000) });
    assert.equal(large.status, 413, large.text);
    const huge = await gateway.request('POST', '/v1/call', {
      key: KEYS.app,
      body: { tool: 'do', arguments: { x: 'x'.repeat(9 << 20) } },
    });
    assert.equal(huge.status, 413);
    assert.equal(moody.seen.length, before);
  });
});

describe('a client that hangs up during a write', () => {
  test('does not cancel it: its outcome is known, and a repeat with its key gets the answer', async () => {
    moody.on('POST /plain', (response) => setTimeout(() => json(response, 201, { id: 7 }), 250));
    const session = `gone-${++sessions}`;
    const body = '{"id":7}';
    const socket = connect(Number(new URL(gateway.url).port), '127.0.0.1');
    const before = moody.seen.length;
    socket.write(
      `POST /m/plain HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer ${KEYS.app}\r\nToolgate-Session: ${session}\r\n` +
        `Toolgate-Origins: id=computed\r\nIdempotency-Key: gone\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    );
    while (moody.seen.length === before) await pause(5);
    socket.resetAndDestroy();
    assert.equal((await newest(session))['outcome'], 'ran');
    const repeat = await route('/m/plain', { id: 7 }, { 'idempotency-key': 'gone', 'toolgate-session': session });
    assert.equal(repeat.status, 201);
    assert.equal(repeat.text, '{"id":7}');
    assert.equal(repeat.headers.get('idempotency-replayed'), 'true');
    assert.equal(moody.seen.length, before + 1);
  });
});

describe('an idempotency key', () => {
  const ways: Readonly<Record<string, (id: number, key: string, as?: string) => Promise<TestAnswer>>> = {
    'on a route': (id, key, as) => route('/m/plain', { id }, { 'idempotency-key': key }, as),
    'through /v1/call, in the header': (id, key, as) =>
      call({ tool: 'plain', arguments: { id } }, { 'idempotency-key': key }, as),
    'through /v1/call, as a member': (id, key, as) =>
      call({ tool: 'plain', arguments: { id }, idempotency_key: key }, {}, as),
  };
  for (const [way, send] of Object.entries(ways)) {
    test(`${way}: replayed when done, 409 in flight, 422 for another call, apart for another caller`, async () => {
      let made = 0;
      moody.on('POST /plain', (response) => setTimeout(() => json(response, 201, { made: ++made }), 150));
      const key = `key ${++sessions}`;
      const before = moody.seen.length;
      const first = send(1, key);
      while (moody.seen.length === before) await pause(5);
      const inFlight = await send(1, key);
      assert.equal(inFlight.status, 409, inFlight.text);
      assert.match(inFlight.text, /urn:toolgate:key_in_flight/);
      assert.ok(Number(inFlight.headers.get('retry-after')) >= 1);
      const other = await send(2, key);
      assert.equal(other.status, 422, other.text);
      const answer = await first;
      const replay = await send(1, key);
      assert.equal(replay.status, answer.status);
      assert.match(replay.text, /"made":1/);
      if (way === 'on a route') assert.equal(replay.headers.get('idempotency-replayed'), 'true');
      else assert.equal((replay.json as Called).replayed, true);
      assert.equal(moody.seen.length, before + 1);
      const theirs = await send(1, key, KEYS.otherApp);
      assert.match(theirs.text, /"made":2/);
      assert.equal(moody.seen.length, before + 2);
    });
  }

  test('that comes many times at once runs its call once; the others are 409', async () => {
    let made = 0;
    moody.on('POST /plain', (response) => setTimeout(() => json(response, 201, { made: ++made }), 100));
    const before = moody.seen.length;
    for (const named of [true, false]) {
      const key = `many-${++sessions}`;
      const answers = await Promise.all(
        Array.from({ length: 8 }, () =>
          route('/m/plain', { id: 3 }, { 'idempotency-key': key, ...(named ? { 'toolgate-session': key } : {}) }),
        ),
      );
      const statuses = answers.map(({ status }) => status).sort();
      assert.deepEqual(
        statuses,
        [201, ...Array.from({ length: 7 }, () => 409)],
        answers.map(({ text }) => text).join('\n'),
      );
      for (const { status, text } of answers) if (status === 409) assert.match(text, /key_in_flight/);
    }
    assert.equal(moody.seen.length, before + 2);
  });

  test('is one key quoted or not, on a route and through the API; what is none is refused', async () => {
    moody.on('POST /plain', (response) => json(response, 201, { ok: 1 }));
    const before = moody.seen.length;
    const key = `a"b\\c ${++sessions}`;
    const quoted = `"${key.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`;
    const answers = [
      await route('/m/plain', { id: 4 }, { 'idempotency-key': quoted }),
      await call({ tool: 'plain', arguments: { id: 4 } }, { 'idempotency-key': quoted }),
      await call({ tool: 'plain', arguments: { id: 4 }, idempotency_key: key }),
    ];
    assert.deepEqual(
      answers.map(({ status }) => status),
      [201, 200, 200],
      answers.map(({ text }) => text).join('\n'),
    );
    assert.equal(moody.seen.length, before + 1);
    for (const bad of ['é', 'x'.repeat(256), '"open', '"a";p=1', '"a", "b"', '']) {
      for (const answer of [
        await route('/m/plain', { id: 5 }, { 'idempotency-key': bad }),
        await call({ tool: 'plain', arguments: { id: 5 } }, { 'idempotency-key': bad }),
      ]) {
        assert.equal(answer.status, 400, `${bad}: ${answer.text}`);
      }
    }
    assert.equal(moody.seen.length, before + 1);
  });

  test('of a refused call, or one that waits for a person, is free', async () => {
    moody.on('POST /plain', (response) => json(response, 201, { ok: 1 }));
    const key = `free-${++sessions}`;
    const asked = await route('/m/plain', { id: 6 }, { 'idempotency-key': key, 'toolgate-origins': 'id=model' });
    assert.equal(asked.status, 428);
    const token = (asked.json as { check: { confirmation: { token: string } } }).check.confirmation.token;
    const session = asked.headers.get('toolgate-session') ?? '';
    const headers = { 'idempotency-key': key, 'toolgate-origins': 'id=model', 'toolgate-session': session };
    const ran = await route('/m/plain', { id: 6 }, { ...headers, 'toolgate-confirmation': token });
    assert.equal(ran.status, 201, ran.text);
    const again = await route('/m/plain', { id: 6 }, { ...headers, 'toolgate-confirmation': token });
    assert.equal(again.status, 201, 'a repeat asks nobody again');
    assert.equal(again.headers.get('idempotency-replayed'), 'true');
    assert.equal(again.headers.get('toolgate-session'), session);
  });

  test('of the client does not reach the backend; one that others cannot guess does', async () => {
    moody.on('POST /do', (response) => json(response, 201, { ok: 1 }));
    const keys = new Set<string>();
    for (const as of [KEYS.app, KEYS.otherApp]) {
      const answer = await route('/m/do', { id: 8 }, { 'idempotency-key': 'same' }, as);
      const sent = headerMap(moody.seen.at(-1)?.headers ?? []).get('idempotency-key') ?? '';
      assert.equal(sent, `"${answer.headers.get('toolgate-idempotency-key')}"`);
      assert.doesNotMatch(sent, /same/);
      keys.add(sent);
    }
    assert.equal(keys.size, 2);
  });
});
