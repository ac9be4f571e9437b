import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { type Shop, startShop } from '../../deploy/examples/shop/backend.ts';
import { startPostgres, type TestPostgres } from '../postgres.ts';
import { type RoundRobin, startRoundRobin } from './round-robin.ts';
import {
  playCarried,
  playHeldConfirmation,
  playOrderAndLimits,
  playReceipt,
  playUndo,
  scenarioConfig,
} from './scenario.ts';
import { type Served, serveGateway } from './served.ts';

let postgres: TestPostgres | string;
let folder: string;
before(async () => {
  [postgres, folder] = await Promise.all([startPostgres(), mkdtemp(join(tmpdir(), 'toolgate-replicas-'))]);
});
after(async () => {
  if (typeof postgres !== 'string') await postgres.close();
  await rm(folder, { recursive: true, force: true });
});

interface Setting {
  readonly base: string;
  readonly shop: Shop;
  readonly gateways: readonly Served[];
  readonly balancer?: RoundRobin;
}

function playAll(setting: () => Setting): void {
  test('order rules, limits, confirmations and keys', async () => {
    await playOrderAndLimits(setting().base, setting().shop);
  });
  test('a confirmation that a person gives', () => playHeldConfirmation(setting().base, setting().shop));
  test('a history that its caller carries', () => playCarried(setting().base));
  test('a receipt is spent once', async () => {
    await playReceipt(setting().base, setting().shop, 'receipts');
  });
  test('a failed run is undone', () => playUndo(setting().base, setting().shop));
}

async function close({ shop, gateways, balancer }: Setting): Promise<void> {
  await balancer?.close();
  for (const gateway of gateways) assert.equal(await gateway.stop(), 0, gateway.said());
  await shop.close();
}

describe('one gateway on SQLite', () => {
  let setting: Setting;
  before(async () => {
    const shop = await startShop();
    const config = scenarioConfig(shop.url, {
      keys: { signing: './one.pem' },
      store: './one.db',
      audit: { file: './one.jsonl' },
    });
    const gateway = await serveGateway({ folder, name: 'one', config });
    setting = { base: gateway.url, shop, gateways: [gateway] };
  });
  after(() => close(setting));
  playAll(() => setting);
});

describe('two gateways on one PostgreSQL, each call at another than the one before', () => {
  let setting: Setting | undefined;
  before(async () => {
    if (typeof postgres === 'string') return;
    const store = await postgres.database();
    const shop = await startShop();
    const gateways = await Promise.all(
      ['first', 'second'].map((name) => {
        const more = { keys: { signing: './both.pem' }, store, audit: { file: `./${name}.jsonl` } };
        return serveGateway({ folder, name, config: scenarioConfig(shop.url, more) });
      }),
    );
    const balancer = await startRoundRobin(gateways.map(({ url }) => url));
    setting = { base: balancer.url, shop, gateways, balancer };
  });
  after(async () => {
    if (setting !== undefined) await close(setting);
  });
  test('PostgreSQL runs', (t) => {
    if (typeof postgres === 'string') t.skip(postgres);
  });
  playAll(() => {
    if (setting === undefined) throw new Error('PostgreSQL cannot be started here');
    return setting;
  });
  test('both gateways had their turns', () => {
    const counts = [...(setting?.balancer?.served.values() ?? [])];
    assert.equal(counts.length, 2);
    assert.ok(counts.every((count) => count > 10));
  });
});
