import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { stringify } from 'yaml';
import { type Shop, startShop } from '../../deploy/examples/shop/backend.ts';
import { type Served, serveGateway } from '../deploy/served.ts';
import { startPostgres, type TestPostgres } from '../postgres.ts';
import { Load } from './load.ts';
import { type RoundRobin, startRoundRobin } from './round-robin.ts';
import { type Answer, KEYS, scenarioConfig, seen, send } from './scenario.ts';

let folder: string;
let postgres: TestPostgres | string;
before(async () => {
  [postgres, folder] = await Promise.all([startPostgres(), mkdtemp(join(tmpdir(), 'toolgate-rolling-'))]);
});
after(async () => {
  if (typeof postgres !== 'string') await postgres.close();
  await rm(folder, { recursive: true, force: true, maxRetries: 5 });
});

describe('two gateways under load', () => {
  let shop: Shop;
  let balancer: RoundRobin;
  const gateways = new Map<string, Served>();

  async function start(name: string, store: string): Promise<void> {
    const config = scenarioConfig(shop.url, {
      keys: { signing: './both.pem' },
      store,
      audit: { file: `./${name}.jsonl` },
    });
    gateways.set(name, await serveGateway({ folder, name, config, args: ['--lame-duck', '500ms'] }));
  }

  /** What a load balancer's health check does: a gateway that is not ready gets no more requests. */
  async function followReadiness(until: AbortSignal): Promise<void> {
    while (!until.aborted) {
      const ready: string[] = [];
      for (const { url } of gateways.values()) {
        const status = await fetch(`${url}/readyz`).then(
          (answer) => answer.text().then(() => answer.status),
          () => 0,
        );
        if (status === 200) ready.push(url);
      }
      if (ready.length > 0) balancer.use(ready);
      await pause(50);
    }
  }

  test('a rolling restart loses no call and writes nothing twice', async (t) => {
    if (typeof postgres === 'string') return t.skip(postgres);
    const store = await postgres.database();
    shop = await startShop();
    await Promise.all([start('first', store), start('second', store)]);
    balancer = await startRoundRobin([...gateways.values()].map(({ url }) => url));
    const done = new AbortController();
    const follower = followReadiness(done.signal);
    const load = new Load(balancer.url, 'rolling', 4);
    await load.more(24);
    for (const name of ['first', 'second']) {
      const old = gateways.get(name);
      assert.equal(await old?.stop(), 0, old?.said());
      await start(name, store);
      await load.more(24);
    }
    await load.end();
    done.abort();
    await follower;
    assert.deepEqual([load.wrong(), load.broken], [[], 0]);
    assert.equal(seen(shop, 'POST').length, load.writes);
    await balancer.close();
    for (const gateway of gateways.values()) assert.equal(await gateway.stop(), 0, gateway.said());
    await shop.close();
  });
});

describe('a reload under load', () => {
  test('a faulty file changes nothing and says where; a good one holds from the next call on', async () => {
    const shop = await startShop();
    const own = { keys: { signing: './reload.pem' }, store: './reload.db', audit: { file: './reload.jsonl' } };
    const good = scenarioConfig(shop.url, own) as { readonly routes: readonly { tools?: readonly object[] }[] };
    const gateway = await serveGateway({ folder, name: 'reload', config: good });
    const load = new Load(gateway.url, 'reload', 4);
    await load.more(20);

    await writeFile(gateway.configFile, stringify({ ...good, routess: [] }, { aliasDuplicateObjects: false }));
    gateway.child.kill('SIGHUP');
    await gateway.until(/reload\.yaml:\d+:\d+: error: .*routess.*\n(?:.*\n)*?.*the old one stays in force/);
    await load.more(20);
    assert.match(await metrics(gateway.url), /\ntoolgate_config_reloads_total\{result="refused"\} 1\n/);

    const [shopRoute, ...rest] = good.routes;
    const route = { ...shopRoute, tools: [...(shopRoute?.tools ?? []), { name: 'get_order', agents: ['desk'] }] };
    await writeFile(
      gateway.configFile,
      stringify({ ...good, routes: [route, ...rest] }, { aliasDuplicateObjects: false }),
    );
    const before = load.count;
    gateway.child.kill('SIGHUP');
    await gateway.until(/the configuration was reloaded/);
    const next: Answer = await send(gateway.url, 'GET', '/shop/orders/4411', {
      session: 'after',
      headers: { 'toolgate-agent': 'billing' },
    });
    assert.equal(next.status, 403, JSON.stringify(next.json));
    await load.end();
    const reads = load.answers.filter(({ key }) => key === undefined);
    assert.ok(
      reads.slice(-1).every(({ status }) => status === 403),
      'the calls after the reload see it',
    );
    const broken = load.answers.filter(({ status }) => ![200, 201, 403].includes(status));
    assert.deepEqual(broken, []);
    assert.deepEqual(
      load.answers.slice(0, before).filter(({ status }) => status === 403),
      [],
    );
    assert.equal(await gateway.stop(), 0, gateway.said());
    await shop.close();
  });
});

async function metrics(url: string): Promise<string> {
  const answer = await fetch(`${url}/metrics`, { headers: { authorization: `Bearer ${KEYS.ana}` } });
  return answer.text();
}
