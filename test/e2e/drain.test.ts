import assert from 'node:assert/strict';
import { readFileSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { json, Moody } from './moody.ts';
import { type Served, serve } from './served.ts';
import { KEYS, moodyWorld } from './world.ts';

type Json = Record<string, unknown>;

let moody: Moody;
const folders: string[] = [];
before(async () => {
  moody = await Moody.start();
});
after(async () => {
  await moody.close();
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

async function start(): Promise<Served> {
  const served = await serve(moodyWorld(moody.url));
  folders.push(served.folder);
  return served;
}

function outcomes(served: Served): Map<string, string> {
  const lines = readFileSync(join(served.folder, 'logs', 'audit.jsonl'), 'utf8')
    .trim()
    .split('\n');
  const found = lines.map((line) => JSON.parse(line) as Json).filter(({ event }) => event === 'outcome');
  return new Map(found.map(({ session, outcome }) => [String(session), String(outcome)]));
}

test('SIGTERM under load: no accepted call is lost, every effect has its outcome, exit 0', async () => {
  const served = await start();
  const effects = new Set<string>();
  moody.on('POST /do', (response, _request, seen) => {
    setTimeout(
      () => {
        const { id } = JSON.parse(seen.body.toString()) as { id: number };
        effects.add(`load-${id}`);
        json(response, 201, { id });
      },
      40 + Math.random() * 60,
    );
  });
  let next = 0;
  let ended = false;
  const answered = new Set<string>();
  const broken: string[] = [];
  const worker = async (): Promise<void> => {
    while (!ended) {
      const id = ++next;
      const request = fetch(`${served.url}/m/do`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${KEYS.app}`,
          'content-type': 'application/json',
          'toolgate-session': `load-${id}`,
          'toolgate-origins': 'id=computed',
        },
        body: JSON.stringify({ id }),
      });
      try {
        const response = await request;
        await response.text();
        if (response.status === 201) answered.add(`load-${id}`);
        else if (response.status !== 503) broken.push(`${id}: ${response.status}`);
      } catch (error) {
        const { code } = (error as { cause?: { code?: string } }).cause ?? {};
        if (code === 'ECONNREFUSED') return;
        // A connection that was idle when the gateway ended it: nothing of this call was taken.
        await pause(200);
        if (effects.has(`load-${id}`)) broken.push(`${id}: ${code}`);
      }
    }
  };
  const workers = Array.from({ length: 12 }, worker);
  while (answered.size < 40) await pause(10);
  const code = await served.end('SIGTERM');
  ended = true;
  await Promise.all(workers);
  assert.equal(code, 0, served.log());
  assert.deepEqual(broken, []);
  const known = outcomes(served);
  for (const effect of effects) assert.equal(known.get(effect), 'ran', effect);
  for (const session of answered) assert.ok(effects.has(session));
  assert.equal(effects.size, [...effects].filter((effect) => answered.has(effect)).length, 'every effect was answered');
});

test('SIGTERM while an answer streams and a client has hung up: both calls end, and their outcomes are stored', async () => {
  const served = await start();
  moody.on('POST /do', (response) => setTimeout(() => json(response, 201, { ok: 1 }), 700));
  moody.on('GET /look', (response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.write('data: first\n\n');
    setTimeout(() => response.end('data: last\n\n'), 400);
  });
  const seen = moody.seen.length;
  const socket = connect(Number(new URL(served.url).port), '127.0.0.1');
  socket.write(
    `POST /m/do HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer ${KEYS.app}\r\nToolgate-Session: gone\r\n` +
      `Toolgate-Origins: id=computed\r\nContent-Type: application/json\r\nContent-Length: 8\r\n\r\n{"id":1}`,
  );
  while (moody.seen.length === seen) await pause(5);
  socket.resetAndDestroy();
  const headers = { authorization: `Bearer ${KEYS.app}`, 'toolgate-session': 'stream' };
  const response = await fetch(`${served.url}/m/look`, { headers });
  const [code, text] = await Promise.all([served.end('SIGTERM'), response.text()]);
  assert.equal(code, 0, served.log());
  assert.equal(text, 'data: first\n\ndata: last\n\n');
  assert.equal(outcomes(served).get('stream'), 'ran');
  assert.equal(outcomes(served).get('gone'), 'ran');
});
