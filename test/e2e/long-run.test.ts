import assert from 'node:assert/strict';
import { Agent, request } from 'node:http';
import { after, before, test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { startTestGateway, type TestGateway } from '../harness/gateway.ts';
import { json, Moody } from './moody.ts';
import { digestOf, KEYS } from './world.ts';

let moody: Moody;
let gateway: TestGateway;
const agent = new Agent({ keepAlive: true, maxSockets: 16 });

function config(language: string): Record<string, unknown> {
  return {
    language,
    agents: { desk: { credentials: [{ key: digestOf(KEYS.app), host: true, name: 'app' }] } },
    routes: [
      {
        name: 'm',
        path: '/m',
        upstream: moody.url,
        agents: ['desk'],
        http: [
          { name: 'look', method: 'GET', path: '/look' },
          {
            name: 'do',
            method: 'POST',
            path: '/do',
            writes: true,
            input: { type: 'object', properties: { id: { type: 'integer' } } },
          },
        ],
        tools: [{ name: 'do', confirm: 'reasons', undo: 'none' }],
      },
    ],
  };
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
