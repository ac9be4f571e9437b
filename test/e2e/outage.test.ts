import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { createPublicKey } from 'node:crypto';
import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, afterEach, before, describe, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { type Shop, startShop } from '../../deploy/examples/shop/backend.ts';
import { childEnv } from '../child-env.ts';
import { programFile } from '../programs.ts';
import { canLimitFiles, limitFiles, type Served, serve } from './served.ts';
import { KEYS, shopWorld } from './world.ts';

type Json = Record<string, unknown>;

let shop: Shop;
let served: Served;
before(async () => {
  shop = await startShop();
  served = await serve(shopWorld(shop.url, {}, { pass: ['/health'] }));
});
after(async () => {
  served.process.kill('SIGKILL');
  await shop.close();
  rmSync(served.folder, { recursive: true, force: true });
});

const NOTE = {
  tool: 'note',
  agent: 'billing',
  session: 'outage',
  arguments: { text: 'a' },
  origins: { text: 'computed' },
} as const;
const AWAY = ['store', 'logs'] as const;

afterEach(async () => {
  limitIfPossible('unlimited');
  for (const name of AWAY) {
    const folder = join(served.folder, name);
    if (existsSync(`${folder}-away`)) renameSync(`${folder}-away`, folder);
  }
  await comesBack();
});

function limitIfPossible(bytes: number | 'unlimited'): void {
  if (canLimitFiles()) limitFiles(served, bytes);
}

async function post(
  path: string,
  body: unknown,
  headers: Record<string, string> = {},
): Promise<{ status: number; json: Json; text: string; retry: string | null }> {
  const response = await fetch(served.url + path, {
    method: 'POST',
    headers: { authorization: `Bearer ${KEYS.app}`, 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  });
  const text = await response.text();
  return { status: response.status, json: JSON.parse(text) as Json, text, retry: response.headers.get('retry-after') };
}

/** Every way to make a write, each under a name. */
const WRITES: Readonly<Record<string, () => ReturnType<typeof post>>> = {
  'through /v1/call': () => post('/v1/call', NOTE),
  'in a new session': () => post('/v1/call', { ...NOTE, session: undefined }),
  'on a route': () =>
    post('/shop/notes', NOTE.arguments, { 'toolgate-agent': 'billing', 'toolgate-origins': 'text=computed' }),
  'with a key': () => post('/v1/call', { ...NOTE, idempotency_key: 'outage' }),
  'through /v1/check': () => post('/v1/check', NOTE),
  'that needs a person': () => post('/v1/call', { ...NOTE, origins: {} }),
};

async function assertRefused(): Promise<void> {
  const seen = shop.seen.length;
  for (const [name, write] of Object.entries(WRITES)) {
    const answer = await write();
    assert.equal(answer.status, 503, `${name}: ${answer.text}`);
    assert.equal(answer.json['type'], 'urn:toolgate:store_unavailable', name);
    assert.ok(Number(answer.retry) > 0, name);
  }
  assert.equal(shop.seen.length, seen, 'nothing was forwarded');
}

/** Without a restart, within seconds. */
async function comesBack(): Promise<void> {
  for (let attempt = 0; attempt < 100; attempt += 1) {
    const answer = await post('/v1/call', { ...NOTE, session: `back-${Date.now()}` });
    if (answer.status === 200) {
      assert.equal((answer.json['check'] as Json)['decision'], 'allow', answer.text);
      return;
    }
    await pause(50);
  }
  throw new Error('the gateway did not go on');
}

describe('writes are refused, nothing is forwarded, the log says why, and the gateway goes on by itself', () => {
  test('where the store’s folder is away', async () => {
    await comesBack();
    const from = served.log().length;
    renameSync(join(served.folder, 'store'), join(served.folder, 'store-away'));
    await assertRefused();
    assert.match(served.log().slice(from), /could not be recorded/);
    assert.match(served.log().slice(from), /store/);
  });

  test('where the audit log’s folder is away', async () => {
    const from = served.log().length;
    renameSync(join(served.folder, 'logs'), join(served.folder, 'logs-away'));
    await assertRefused();
    assert.match(served.log().slice(from), /audit log cannot be written/);
    const seen = shop.seen.length;
    const passed = await post('/shop/health', {});
    assert.equal(passed.json['type'], 'urn:toolgate:store_unavailable', 'nor is anything passed unchecked');
    assert.equal(shop.seen.length, seen);
  });

  test('where both are', async () => {
    for (const name of AWAY) renameSync(join(served.folder, name), join(served.folder, `${name}-away`));
    await assertRefused();
  });

  test('where the disk is full', async (t) => {
    if (!canLimitFiles()) return t.skip('prlimit is not here to make the disk look full');
    const from = served.log().length;
    limitFiles(served, 0);
    // A page of the write-ahead log may still be there to be written over.
    for (let left = 200; left > 0 && (await post('/v1/call', NOTE)).status !== 503; left -= 1);
    await assertRefused();
    assert.match(served.log().slice(from), /cannot be written|could not be recorded/);
    limitFiles(served, 'unlimited');
    await comesBack();
  });

  test('and the log verifies, with every outcome of what was sent in it', async () => {
    const logs = join(served.folder, 'logs', 'audit.jsonl');
    assert.equal(await served.end('SIGTERM'), 0, served.log());
    const main = programFile('gateway/cli/main.ts');
    const key = join(served.folder, 'gateway.pub');
    const pem = createPublicKey(readFileSync(join(served.folder, 'gateway.pem'))).export({
      type: 'spki',
      format: 'pem',
    });
    writeFileSync(key, pem);
    const verified = spawnSync(process.execPath, [main, 'audit', 'verify', logs, '--public-key', key], {
      encoding: 'utf8',
      env: childEnv(),
    });
    assert.equal(verified.status, 0, verified.stdout + verified.stderr);
    const lines = readFileSync(logs, 'utf8')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Json);
    const sent = lines.filter(({ event, outcome }) => event === 'outcome' && outcome !== undefined);
    assert.ok(sent.length >= shop.seen.length, `${sent.length} outcomes of ${shop.seen.length} calls`);
    served = await serve(shopWorld(shop.url), served.folder);
  });
});
