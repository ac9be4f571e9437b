import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { type Shop, startShop } from '../../deploy/examples/shop/backend.ts';
import { type Served, serveGateway } from '../deploy/served.ts';
import { checkOf, connectClient, textOf } from '../mcp/clients.ts';
import { initialize, post } from '../mcp/proxy-stage.ts';
import { type RawServer, said, startRawServer, tool } from '../mcp/raw-server.ts';
import { startPostgres, type TestPostgres } from '../postgres.ts';
import { type RoundRobin, startRoundRobin } from './round-robin.ts';
import {
  KEYS,
  playCarried,
  playHeldConfirmation,
  playOrderAndLimits,
  playReceipt,
  playUndo,
  scenarioConfig,
} from './scenario.ts';

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
  readonly mcp?: RawServer;
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

/** A server of the older era whose one tool tells which of its sessions it was called over. */
function startMcp(): Promise<RawServer> {
  return startRawServer({
    pages: () => [{ tools: [tool('look', { inputSchema: { type: 'object', properties: {} } })] }],
    handle: ({ request, result }) => result(said(`over ${request.headers['mcp-session-id']}`)),
  });
}

async function close({ shop, gateways, balancer, mcp }: Setting): Promise<void> {
  await balancer?.close();
  await mcp?.close();
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
    const [shop, mcp] = await Promise.all([startShop(), startMcp()]);
    const looks = { name: 'look', writes: false, reads_outside: false };
    const gateways = await Promise.all(
      ['first', 'second'].map((name) => {
        const more = { keys: { signing: './both.pem' }, store, audit: { file: `./${name}.jsonl` } };
        const config = scenarioConfig(shop.url, more) as { readonly routes: readonly object[] };
        const routes = [...config.routes, { name: 'far', mcp: mcp.url, tools: [looks] }];
        return serveGateway({ folder, name, config: { ...config, routes } });
      }),
    );
    const balancer = await startRoundRobin(gateways.map(({ url }) => url));
    setting = { base: balancer.url, shop, gateways, balancer, mcp };
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
  // Row 3 of test/vectors/mcp-proxy-cases.md.
  test('an MCP session that begins at one gateway goes on at the other', async () => {
    if (setting?.mcp === undefined) throw new Error('PostgreSQL cannot be started here');
    const [first = '', second = ''] = setting.gateways.map(({ url }) => url);
    const own = { authorization: `Bearer ${KEYS.app}` };
    const session = { ...own, 'mcp-session-id': await initialize(first, '/mcp/far', own) };
    const listed = await post(second, '/mcp/far', { jsonrpc: '2.0', id: 1, method: 'tools/list' }, session);
    assert.equal(listed.status, 200, listed.text);
    assert.match(listed.text, /"name":"look"/);
    const params = { name: 'look', arguments: {}, _meta: { 'toolgate/call': {} } };
    const call = { jsonrpc: '2.0', id: 2, method: 'tools/call', params };
    const texts = [await post(second, '/mcp/far', call, session), await post(first, '/mcp/far', call, session)];
    // One history, wherever its calls are made; each gateway has a session of its own at the server.
    assert.deepEqual(
      texts.map(({ text }) => Number(/"step":(\d+)/.exec(text)?.[1])),
      [0, 1],
    );
    assert.equal(new Set(texts.map(({ text }) => /"session":"([^"]+)"/.exec(text)?.[1])).size, 1);
    assert.equal(new Set(texts.map(({ text }) => /over (session-\d+)/.exec(text)?.[1])).size, 2);
  });
  test('an MCP client whose every request reaches another gateway is served', async () => {
    if (setting === undefined) throw new Error('PostgreSQL cannot be started here');
    const client = await connectClient(`${setting.base}/mcp`, { key: KEYS.app });
    try {
      assert.ok((await client.listTools()).tools.some(({ name }) => name === 'far__look'));
      const steps: unknown[] = [];
      for (let n = 0; n < 4; n += 1) {
        const result = await client.callTool({ name: 'far__look', arguments: {}, _meta: { 'toolgate/call': {} } });
        assert.match(textOf(result), /^over /);
        steps.push(checkOf(result).step);
      }
      assert.deepEqual(steps, [0, 1, 2, 3]);
    } finally {
      await client.close();
    }
  });
  test('both gateways had their turns', () => {
    const counts = [...(setting?.balancer?.served.values() ?? [])];
    assert.equal(counts.length, 2);
    assert.ok(counts.every((count) => count > 10));
  });
});
