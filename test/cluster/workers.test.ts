import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';
import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import { stringify } from 'yaml';
import { type Shop, startShop } from '../../deploy/examples/shop/backend.ts';
import { verifyAudit } from '../../gateway/audit/verify.ts';
import { leftBy, mergeMetrics } from '../../gateway/workers/merge-metrics.ts';
import { Restarts } from '../../gateway/workers/restarts.ts';
import { nodeCrypto } from '../../receipts/crypto-node.ts';
import { parseSigningKey } from '../../receipts/keys.ts';
import { childEnv } from '../child-env.ts';
import { type Served, serveGateway } from '../deploy/served.ts';
import { type Collector, startCollector } from '../gateway/otlp-collector.ts';
import { connectClient, textOf } from '../mcp/clients.ts';
import { type RawServer, said, startRawServer, tool } from '../mcp/raw-server.ts';
import { startPostgres, type TestPostgres } from '../postgres.ts';
import { programFile } from '../programs.ts';
import { Load } from './load.ts';
import { type RoundRobin, startRoundRobin } from './round-robin.ts';
import {
  KEYS,
  playCarried,
  playHeldConfirmation,
  playOrderAndLimits,
  playReceipt,
  playUndo,
  scenarioConfig,
  seen,
  send,
} from './scenario.ts';

const MAIN = programFile('gateway/cli/main.ts');

/** A command that ended with another code than 0. */
interface Ended {
  readonly code?: number;
  readonly stdout: string;
}

/** A server that asks each caller of its tool before it answers. */
function startAsking(): Promise<RawServer> {
  const waiting = new Map<unknown, (result: unknown) => void>();
  let asked = 0;
  return startRawServer({
    pages: () => [{ tools: [tool('ask')] }],
    first: ({ message, response }) => {
      const answered = message.method === undefined ? waiting.get(message.id) : undefined;
      if (answered === undefined) return false;
      answered(message.result);
      response.writeHead(202).end();
      return true;
    },
    handle: async ({ message, stream }) => {
      const id = `q-${asked++}`;
      const events = stream();
      const answer = new Promise((resolve) => waiting.set(id, resolve));
      const requestedSchema = { type: 'object', properties: { yes: { type: 'boolean' } } };
      events.send({ jsonrpc: '2.0', id, method: 'elicitation/create', params: { message: 'sure?', requestedSchema } });
      events.send({ jsonrpc: '2.0', id: message.id, result: said(`got ${JSON.stringify(await answer)}`) });
      events.end();
    },
  });
}

test('a worker that dies is started again, later each time that it dies at once, until that is no use', () => {
  const restarts = new Restarts();
  const quick = [1, 2, 3, 4, 5].map(() => restarts.next(50));
  assert.deepEqual(quick, [200, 400, 800, 1_600, undefined]);
  const later = new Restarts();
  assert.deepEqual([later.next(50), later.next(60_000), later.next(50)], [200, 100, 200]);
});

test('sums never fall: what ended workers had counted is kept, what they measured of now is not', async () => {
  const saidBy = async (calls: number): Promise<readonly object[]> => {
    const registry = new Registry();
    const registers = [registry];
    new Counter({ name: 'calls_total', help: 'c', registers, labelNames: ['tool'] }).inc({ tool: 'a' }, calls);
    new Gauge({ name: 'open', help: 'g', registers }).set(calls);
    new Histogram({ name: 'took', help: 'h', registers, buckets: [1] }).observe(calls);
    return registry.getMetricsAsJSON();
  };
  const left = await leftBy(await leftBy([], await saidBy(5)), await saidBy(7));
  const text = await mergeMetrics(new Registry(), [await saidBy(1), left]);
  for (const line of ['calls_total{tool="a"} 13', 'open 1', 'took_count 3', 'took_sum 13', 'took_bucket{le="1"} 1'])
    assert.ok(text.split('\n').includes(line), `${line} is not in\n${text}`);
});

describe('two workers on one PostgreSQL, each request over a connection of its own', () => {
  let folder: string;
  let postgres: TestPostgres | string;
  let shop: Shop;
  let asking: RawServer;
  let collector: Collector;
  let config: { readonly routes: readonly object[] };
  let gateway: Served;
  /** Connections go to the workers in turn. */
  let balancer: RoundRobin;
  const skipped = (): string | false => (typeof postgres === 'string' ? postgres : false);

  before(async () => {
    [folder, postgres] = await Promise.all([mkdtemp(join(tmpdir(), 'toolgate-workers-')), startPostgres()]);
    if (typeof postgres === 'string') return;
    [shop, asking, collector] = await Promise.all([startShop(), startAsking(), startCollector()]);
    const more = { keys: { signing: './w.pem' }, store: await postgres.database(), audit: { file: './w.jsonl' } };
    const scenario = scenarioConfig(shop.url, { ...more, workers: 2 }) as typeof config;
    const words = [{ name: 'ask', writes: false, reads_outside: false }];
    const raw = { name: 'raw', mcp: asking.url, agents: ['billing'], annotations: 'trusted', tools: words };
    config = { ...scenario, routes: [...scenario.routes, raw] };
    // Spans that are left when a worker ends are exported then; before, only where there are many.
    const env = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.origin, OTEL_BSP_SCHEDULE_DELAY: '3600000' };
    gateway = await serveGateway({ folder, name: 'workers', config, env });
    balancer = await startRoundRobin([gateway.url], { keepAlive: false });
  });
  after(async () => {
    if (typeof postgres !== 'string') {
      await balancer?.close();
      gateway?.child.kill('SIGKILL');
      await Promise.all([shop?.close(), asking?.close(), collector?.close()]);
      await postgres.close();
    }
    await rm(folder, { recursive: true, force: true, maxRetries: 5 });
  });

  const logOf = (worker: number): string => join(folder, worker === 1 ? 'w.jsonl' : `w-${worker}.jsonl`);
  /** A worker names itself in the lock beside its audit log. */
  const pidOf = (worker: number): number => Number(JSON.parse(readFileSync(`${logOf(worker)}.lock`, 'utf8')).pid);

  async function metric(name: string): Promise<number> {
    const answer = await fetch(`${balancer.url}/metrics`, { headers: { authorization: `Bearer ${KEYS.ana}` } });
    const text = await answer.text();
    const line = text.split('\n').find((one) => one.startsWith(`${name} `));
    assert.notEqual(line, undefined, `${name} is not in ${text}`);
    return Number(line?.split(' ')[1]);
  }

  async function untilWorkers(count: number): Promise<void> {
    for (const since = Date.now(); (await metric('toolgate_workers')) !== count; await pause(50))
      assert.ok(Date.now() - since < 180_000, `there are not ${count} workers:\n${gateway.said()}`);
  }

  function reconfigure(routes: readonly object[], more: object = {}): Promise<void> {
    return writeFile(gateway.configFile, stringify({ ...config, ...more, routes }, { aliasDuplicateObjects: false }));
  }

  test('calls of one session go to both, and every rule holds', async (t) => {
    if (skipped() !== false) return t.skip(String(skipped()));
    assert.match(gateway.said(), /2 workers/);
    await playOrderAndLimits(balancer.url, shop);
    await playHeldConfirmation(balancer.url, shop);
    await playCarried(balancer.url);
    await playReceipt(balancer.url, shop, 'receipts');
    await playUndo(balancer.url, shop);
    const decisions = [1, 2].map(
      (worker) => readFileSync(logOf(worker), 'utf8').split('"event":"decision"').length - 1,
    );
    assert.ok(
      decisions.every((count) => count > 5),
      `decisions of each: ${decisions}`,
    );
    assert.ok((await metric('toolgate_store_seconds_count')) > 10);
    assert.equal(await metric('toolgate_config_reloads_total{result="taken"}'), 1);
  });

  test('what an MCP client is asked is answered where it was asked, whoever gets the answer', async (t) => {
    if (skipped() !== false) return t.skip(String(skipped()));
    for (const era of ['legacy', 'modern'] as const) {
      const answers = await Promise.all(
        [1, 2, 3, 4].map(async (who) => {
          const client = await connectClient(`${balancer.url}/mcp/raw`, {
            key: KEYS.app,
            era,
            name: `client-${who}`,
            capabilities: { elicitation: { form: {} } },
            prepare: (made) =>
              made.setRequestHandler('elicitation/create', () => ({ action: 'accept', content: { yes: true } })),
          });
          const result = await client.callTool({ name: 'ask', arguments: { who } });
          await client.close();
          return textOf(result);
        }),
      );
      for (const text of answers) assert.match(text, /^got .*"action":"accept"/, era);
    }
  });

  test('a worker that is killed under load loses nothing, and another takes its place', async (t) => {
    if (skipped() !== false) return t.skip(String(skipped()));
    const before = seen(shop, 'POST').length;
    const counted = await metric('toolgate_store_seconds_count');
    const load = new Load(balancer.url, 'killed', 4);
    await load.more(16);
    const killed = pidOf(2);
    process.kill(killed, 'SIGKILL');
    await load.more(16);
    await untilWorkers(2);
    assert.notEqual(pidOf(2), killed);
    // What the dead one had said goes on to count: a sum that fell would look like a counter that began anew.
    const after = await metric('toolgate_store_seconds_count');
    assert.ok(after >= counted, `${counted} commits, then ${after}`);
    await load.more(16);
    await load.end();
    // What had been sent and not answered when its worker died is in doubt, and said to be: never done twice.
    const doubt = load.wrong();
    assert.ok(doubt.length <= 4 && doubt.every((what) => /outcome_unknown|in_flight/.test(what)), String(doubt));
    const done = seen(shop, 'POST').length - before;
    const answered = load.writes - doubt.length;
    assert.ok(done >= answered && done <= load.writes, `${done} done, ${answered} of ${load.writes} answered`);
  });

  test('a reload is taken by all or by none', async (t) => {
    if (skipped() !== false) return t.skip(String(skipped()));
    const load = new Load(balancer.url, 'reload', 2);
    await load.more(8);
    await reconfigure(config.routes, { routess: [] });
    gateway.child.kill('SIGHUP');
    await gateway.until(/workers\.yaml:\d+:\d+: error: .*routess.*\n(?:.*\n)*?.*the old one stays in force/);
    await load.more(8);
    assert.deepEqual(load.wrong(), []);
    assert.equal(await metric('toolgate_config_reloads_total{result="refused"}'), 1);

    const [shopRoute, ...rest] = config.routes as readonly { readonly tools: readonly object[] }[];
    const tools = [...(shopRoute?.tools ?? []), { name: 'get_order', agents: ['desk'] }];
    await reconfigure([{ ...shopRoute, tools }, ...rest]);
    // A worker that dies now would come back with what nobody has taken yet.
    process.kill(pidOf(2), 'SIGKILL');
    await gateway.until(/a worker is missing: the files say something else/);
    const read = (): Promise<number> =>
      send(balancer.url, 'GET', '/shop/orders/4411', { headers: { 'toolgate-agent': 'billing' } }).then(
        (a) => a.status,
      );
    assert.deepEqual([await read(), await read(), await metric('toolgate_workers')], [200, 200, 1]);

    gateway.child.kill('SIGHUP');
    await gateway.until(/the configuration was reloaded/);
    await untilWorkers(2);
    assert.deepEqual([await read(), await read(), await read()], [403, 403, 403]);
    await load.end();
  });

  test('SIGUSR2 and SIGTERM reach every worker, each log is a whole chain, and the last spans are exported', async (t) => {
    if (skipped() !== false) return t.skip(String(skipped()));
    const load = new Load(balancer.url, 'drain', 2);
    await load.more(4);
    gateway.child.kill('SIGUSR2');
    await load.more(4);
    assert.equal(await gateway.stop(), 0, gateway.said());
    await load.end();
    // After the end nobody answers; until then every call was, reads by the configuration that was taken last.
    const wrong = load.wrong().filter((what) => !/^(?:0 |403 .*unknown_tool)/.test(what));
    assert.deepEqual(wrong, []);
    const makers = new Set(collector.spans.map(({ resource }) => resource['service.instance.id']));
    const logs = [1, 2].map((worker) => JSON.parse(readFileSync(logOf(worker), 'utf8').split('\n')[0] ?? '{}').replica);
    assert.deepEqual(
      logs.map((replica) => makers.has(replica)),
      [true, true],
    );
    const key = nodeCrypto.signingKey(parseSigningKey(readFileSync(join(folder, 'w.pem'), 'utf8')));
    const keys = [nodeCrypto.publicKey(key.publicBytes)];
    for (const worker of [1, 2]) {
      const { report } = await verifyAudit([logOf(worker)], { keys });
      assert.equal(report.verdict, 'intact', report.why);
      assert.match(readFileSync(logOf(worker), 'utf8').trim().split('\n').at(-2) ?? '', /"act":"stop"/);
    }
    // The command tells logs apart, and one that was changed is not hidden by one that was not.
    await writeFile(logOf(2), readFileSync(logOf(2), 'utf8').replace('"agent":"billing"', '"agent":"bilking"'));
    const args = [MAIN, 'audit', 'verify', logOf(1), logOf(2), '--public-key', join(folder, 'w.pem'), '--json'];
    const { code, stdout }: Ended = await promisify(execFile)(process.execPath, args, { env: childEnv() }).catch(
      (error: unknown) => error as Ended,
    );
    const verdicts = (JSON.parse(stdout) as { verdict: string }[]).map(({ verdict }) => verdict);
    assert.deepEqual([code, verdicts], [1, ['intact', 'tampered']]);
  });
});
