import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { nodeCrypto } from '../../receipts/crypto-node.ts';
import { parseHistory } from '../../receipts/history-parse.ts';
import { verifyHistory } from '../../receipts/history-verify.ts';
import { parseJson } from '../../receipts/json.ts';
import { startTestGateway, type TestGateway } from '../harness/gateway.ts';
import { json, Moody } from './moody.ts';
import { KEYS, moodyWorld } from './world.ts';

let moody: Moody;
let gateway: TestGateway;
const agent = new Agent({ keepAlive: true, maxSockets: 16 });

function config(language: string): Record<string, unknown> {
  return { language, ...moodyWorld(moody.url) };
}

before(async () => {
  moody = await Moody.start();
  gateway = await startTestGateway(config('en'));
});
after(async () => {
  agent.destroy();
  await gateway.close();
  await moody.close();
});

function call(method: string, path: string, headers: Record<string, string>, body = ''): Promise<number> {
  return new Promise((resolve, reject) => {
    const sent = request(`${gateway.url}${path}`, {
      agent,
      method,
      headers: { authorization: `Bearer ${KEYS.app}`, ...headers },
    });
    sent.once('error', reject);
    sent.once('response', (response) => {
      response.resume().once('end', () => resolve(response.statusCode ?? 0));
    });
    sent.end(body);
  });
}

function write(id: number): Promise<number> {
  const headers = {
    'content-type': 'application/json',
    'toolgate-origins': 'id=computed',
    'toolgate-session': `w-${id % 50}`,
  };
  return call('POST', '/m/do', headers, JSON.stringify({ id }));
}

/** Runs `work` for 0, 1, 2 … below `count`, sixteen at a time. */
async function times(count: number, work: (n: number) => Promise<number>): Promise<Map<number, number>> {
  const statuses = new Map<number, number>();
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < count) {
      const status = await work(next++);
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
    }
  };
  await Promise.all(Array.from({ length: 16 }, worker));
  return statuses;
}

test('reloads while calls come lose none of them, fail none of them, and double none of them', async () => {
  moody.on('POST /do', (response) => setTimeout(() => json(response, 201, { ok: 1 }), 20));
  const before = moody.seen.length;
  let running = true;
  const reloads = (async () => {
    let count = 0;
    for (; running; count += 1) await gateway.reconfigure(config(count % 2 === 0 ? 'pt-BR' : 'en'));
    return count;
  })();
  const statuses = await times(300, write);
  running = false;
  assert.ok((await reloads) >= 2, 'it was reloaded meanwhile');
  assert.deepEqual([...statuses], [[201, 300]]);
  assert.equal(moody.seen.length - before, 300);
});

test('reads that wait for nothing and writes of one session at once make one history, each decision logged before its outcome', async () => {
  const decidedAt = new Map<number, number>();
  moody.on('GET /look', (response) => json(response, 200, { ok: 1 }));
  moody.on('POST /do', (response) => setTimeout(() => json(response, 201, { ok: 1 }), 2));
  const session = { 'toolgate-session': 'mixed' };
  const body = { 'content-type': 'application/json', 'toolgate-origins': 'id=computed', ...session };
  const statuses = await times(160, (n) =>
    n % 8 === 0 ? call('POST', '/m/do', body, JSON.stringify({ id: n })) : call('GET', '/m/look', session),
  );
  assert.deepEqual(Object.fromEntries(statuses), { 200: 140, 201: 20 });
  const told = await gateway.request('GET', '/v1/sessions/mixed', { key: KEYS.app });
  const history = parseHistory(parseJson(told.text));
  assert.ok(history.kind === 'whole', 'the session is told whole');
  const { audience, checkIssuers: issuers } = gateway.gateway.loaded;
  verifyHistory(history.history, { crypto: nodeCrypto, now: Date.now(), audience, issuers, session: 'mixed' });
  const { entries } = history.history;
  assert.deepEqual(
    entries.map(({ step, decision }) => [step, decision]),
    Array.from({ length: 160 }, (_, step) => [step, 'allow']),
  );
  await gateway.gateway.audit.checkpoint();
  for (const line of readFileSync(join(gateway.folder, 'audit.jsonl'), 'utf8').trim().split('\n')) {
    const { event, session: of, step, seq } = JSON.parse(line);
    if (of !== 'mixed') continue;
    if (event === 'decision') assert.ok(!decidedAt.has(step), `one decision of step ${step}`);
    else
      assert.ok((decidedAt.get(step) ?? seq) < seq, `the outcome of step ${step} comes once, and behind its decision`);
    // What follows an outcome is behind nothing.
    decidedAt.set(step, event === 'decision' ? seq : Number.POSITIVE_INFINITY);
  }
  assert.deepEqual(new Set(decidedAt.values()), new Set([Number.POSITIVE_INFINITY]));
  assert.equal(decidedAt.size, 160);
});

/** The bytes of the heap that are still reachable: what is garbage is collected first. */
function heapInUse(): number {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  collect();
  return process.memoryUsage().heapUsed;
}

test('some thousand calls leave nothing behind in memory', async () => {
  moody.on('GET /look', (response) => json(response, 200, { ok: 1 }));
  moody.on('POST /do', (response) => json(response, 201, { ok: 1 }));
  const round = (offset: number): Promise<Map<number, number>> =>
    times(800, (n) =>
      n % 10 === 0 ? write(offset + n) : call('GET', '/m/look', { 'toolgate-session': `r-${n % 50}` }),
    );
  await round(0);
  assert.equal(await gateway.gateway.underWay.idle(5_000), 0, 'no call is under way before');
  moody.seen.length = 0;
  const before = heapInUse();
  await round(10_000);
  assert.equal(await gateway.gateway.underWay.idle(5_000), 0, 'no call is still under way');
  moody.seen.length = 0;
  const grown = heapInUse() - before;
  // 50 sessions grow by 16 entries each, which the store keeps on disk: what stays in memory is caches with bounds.
  assert.ok(grown < 10e6, `${(grown / 1e6).toFixed(1)} MB more after 800 calls`);
});
