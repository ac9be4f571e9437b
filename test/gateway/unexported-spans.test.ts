import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { renderFindings } from '../../gateway/cli/doctor.ts';
import { diagnoseTracing } from '../../gateway/cli/doctor-tracing.ts';
import { createLog } from '../../gateway/log.ts';
import { readTracingSettings } from '../../gateway/tracing/settings.ts';
import { serveGateway } from '../deploy/served.ts';
import { startTestGateway, type TestGateway } from '../harness/gateway.ts';
import { type Backend, eventually, httpBackend } from '../http/backends.ts';
import { type Collector, callerTrace, hasServer, type Manners, startCollector, withEnv } from './otlp-collector.ts';

const CALLS = 25;
/** Far beyond what a call or a drain takes, and far below what waiting for a collector would. */
const BOUND_MS = 20_000;
const WORDS = 'words-of-the-collector';

let backend: Backend;
let collector: Collector;
before(async () => {
  backend = await httpBackend((_request, response) => response.setHeader('content-type', 'application/json').end('{}'));
  collector = await startCollector();
});
after(async () => {
  await backend.close();
  await collector.close();
});

function configOf(): object {
  const http = [{ name: 'get_order', method: 'GET', path: '/orders/{order_id}' }];
  return { agents: { desk: {} }, routes: [{ name: 'shop', upstream: backend.origin, http }] };
}

/** Little waits, little is sent at once, and none of it for long. */
const SMALL = {
  OTEL_BSP_MAX_QUEUE_SIZE: '8',
  OTEL_BSP_MAX_EXPORT_BATCH_SIZE: '4',
  OTEL_BSP_SCHEDULE_DELAY: '10',
  OTEL_BSP_EXPORT_TIMEOUT: '250',
};

interface Logging {
  readonly gateway: TestGateway;
  readonly lines: Record<string, unknown>[];
}

async function start(env: Readonly<Record<string, string>>): Promise<Logging> {
  const lines: Logging['lines'] = [];
  const to = { write: (line: string) => void lines.push(JSON.parse(line) as Record<string, unknown>) };
  const gateway = await withEnv(env, () => startTestGateway(configOf(), { log: createLog({ level: 'info', to }) }));
  return { gateway, lines };
}

async function countOf(gateway: TestGateway, result: string): Promise<number> {
  const { text } = await gateway.request('GET', '/metrics');
  return Number(new RegExp(`^toolgate_trace_spans_total\\{result="${result}"\\} (\\d+)$`, 'm').exec(text)?.[1]);
}

async function makeCalls(gateway: TestGateway): Promise<void> {
  for (let at = 0; at < CALLS; at++) {
    assert.equal((await gateway.request('GET', `/shop/orders/${at}`)).status, 200);
  }
}

/** What a collector does, and what the log says of it. */
const BAD: readonly {
  readonly name: string;
  readonly manners: Manners | 'down';
  readonly why: RegExp;
  readonly fills?: true;
}[] = [
  { name: 'takes connections and never answers', manners: 'hang', why: /^(timeout|queue_full)$/, fills: true },
  {
    name: 'answers a byte at a time, for ever',
    manners: (response) => {
      response.writeHead(200, { 'content-type': 'application/x-protobuf' });
      const dripping = setInterval(() => response.write(' '), 50);
      response.once('close', () => clearInterval(dripping));
    },
    why: /^(timeout|queue_full)$/,
  },
  {
    name: 'refuses the credential, with much to say',
    manners: (response) => response.writeHead(401, WORDS).end(WORDS.repeat(10_000)),
    why: /^(status_401|queue_full)$/,
  },
  { name: 'is not there', manners: 'down', why: /^(ECONNREFUSED|timeout|queue_full)$/ },
];

describe('a collector that', () => {
  for (const { name, manners, why, fills } of BAD) {
    test(`${name}: every call is answered, what is lost is counted and told once, and the drain ends`, async () => {
      if (manners !== 'down') collector.manners = manners;
      const origin = manners === 'down' ? 'http://127.0.0.1:9' : collector.origin;
      const { gateway, lines } = await start({ ...SMALL, OTEL_EXPORTER_OTLP_ENDPOINT: origin });
      try {
        await makeCalls(gateway);
        assert.ok(await counted(gateway, 'export_failed'));
        if (fills === true) assert.ok(await counted(gateway, 'queue_full'));
        assert.equal(await countOf(gateway, 'exported'), 0);
      } finally {
        const began = performance.now();
        await gateway.close();
        assert.ok(performance.now() - began < BOUND_MS);
      }
      const told = lines.filter(({ msg }) => msg === 'spans are not exported');
      assert.equal(told.length, 1);
      assert.match(String(told[0]?.['why']), why);
      assert.equal(JSON.stringify(lines).includes(WORDS), false);
    });
  }

  test('sends elsewhere is not followed, and once it takes spans again it gets them', async () => {
    const redirect: Manners = (response) =>
      response.writeHead(307, { location: `${collector.origin}/other` }).end(WORDS);
    collector.manners = redirect;
    const { gateway, lines } = await start({ ...SMALL, OTEL_EXPORTER_OTLP_ENDPOINT: collector.origin });
    try {
      await makeCalls(gateway);
      assert.ok(await counted(gateway, 'export_failed'));
      assert.equal(lines.find(({ msg }) => msg === 'spans are not exported')?.['why'], 'status_307');
      assert.ok(!collector.requests.some(({ path }) => path === '/other'));
      collector.manners = 'take';
      const { traceId, traceparent } = callerTrace();
      // What a small queue still holds of before has gone by then.
      assert.ok(await counted(gateway, 'exported'));
      assert.equal((await gateway.request('GET', '/shop/orders/1', { headers: { traceparent } })).status, 200);
      await collector.trace(traceId, hasServer);
      assert.ok(await eventually(() => lines.some(({ msg }) => msg === 'spans are exported again')));
    } finally {
      await gateway.close();
    }
  });
});

/** Makes calls, a few at a time, until some spans have come to this. */
async function counted(gateway: TestGateway, result: string): Promise<boolean> {
  for (const until = Date.now() + BOUND_MS; Date.now() < until; await pause(50)) {
    if ((await countOf(gateway, result)) > 0) return true;
    const calls = [1, 2, 3, 4, 5].map((at) => gateway.request('GET', `/shop/orders/${at}`));
    assert.deepEqual(new Set((await Promise.all(calls)).map(({ status }) => status)), new Set([200]));
  }
  return false;
}

test('SIGTERM: what was not exported yet is, and nothing is written to the console', async () => {
  collector.manners = 'take';
  const folder = await mkdtemp(join(tmpdir(), 'toolgate-tracing-'));
  const places = { listen: '127.0.0.1:0', keys: { signing: './gateway.pem' }, store: './toolgate.db' };
  const config = { ...places, audit: { file: './audit.jsonl' }, ...configOf() };
  // In a process of its own it exports when it ends, or never within this test.
  const env = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.origin, OTEL_BSP_SCHEDULE_DELAY: '3600000' };
  const served = await serveGateway({ folder, name: 'tracing', config, env });
  try {
    const { traceId, traceparent } = callerTrace();
    const answer = await fetch(`${served.url}/shop/orders/1`, { headers: { traceparent } });
    assert.equal(answer.status, 200);
    await answer.text();
    assert.equal(await served.stop(), 0);
    assert.ok(hasServer(collector.spans.filter((span) => span.traceId === traceId)));
    assert.doesNotMatch(served.said(), /opentelemetry|otlp/i);
  } finally {
    await served.stop();
    await rm(folder, { recursive: true, force: true });
  }
});

describe('the environment', () => {
  const on = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://c:4318' };
  /** What of the settings, or which kind of none, a set of variables makes. */
  const CASES: readonly (readonly [Readonly<Record<string, string>>, object | 'off' | 'unusable'])[] = [
    [{}, 'off'],
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: ' ' }, 'off'],
    [{ ...on, OTEL_SDK_DISABLED: 'True' }, 'off'],
    [{ ...on, OTEL_TRACES_EXPORTER: 'none' }, 'off'],
    [{ ...on, OTEL_TRACES_EXPORTER: 'zipkin' }, 'unusable'],
    [{ ...on, OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' }, 'unusable'],
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'c:4318' }, 'unusable'],
    [on, { url: 'http://c:4318/v1/traces', propagates: true, sampler: { name: 'parentbased_always_on', ratio: 1 } }],
    [{ OTEL_TRACES_EXPORTER: 'otlp' }, { url: 'http://localhost:4318/v1/traces' }],
    [{ ...on, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'https://d/x' }, { url: 'https://d/x' }],
    [
      { ...on, OTEL_TRACES_SAMPLER: 'parentbased_traceidratio', OTEL_TRACES_SAMPLER_ARG: '0.25' },
      { sampler: { name: 'parentbased_traceidratio', ratio: 0.25 }, warned: 0 },
    ],
    [
      { ...on, OTEL_TRACES_SAMPLER: 'traceidratio', OTEL_TRACES_SAMPLER_ARG: '25%' },
      { sampler: { name: 'traceidratio', ratio: 1 }, warned: 1 },
    ],
    [
      { ...on, OTEL_TRACES_SAMPLER: 'jaeger_remote' },
      { sampler: { name: 'parentbased_always_on', ratio: 1 }, warned: 1 },
    ],
    [
      { ...on, OTEL_PROPAGATORS: 'none' },
      { propagates: false, warned: 0 },
    ],
    [
      { ...on, OTEL_PROPAGATORS: 'b3,tracecontext' },
      { propagates: true, warned: 1 },
    ],
    [
      { ...on, OTEL_BSP_MAX_QUEUE_SIZE: '0' },
      { queue: 2048, warned: 1 },
    ],
    [
      { ...on, OTEL_BSP_MAX_QUEUE_SIZE: '64', OTEL_BSP_MAX_EXPORT_BATCH_SIZE: '128' },
      { queue: 64, batch: 64, warned: 0 },
    ],
  ];
  for (const [env, expected] of CASES) {
    const said = Object.entries(env).map(([name, value]) => `${name}=${value}`);
    test(`${said.join(' ') || 'nothing'} is read`, () => {
      const wish = readTracingSettings(env);
      if (typeof expected === 'string') return assert.equal(wish.kind, expected);
      assert.equal(wish.kind, 'on');
      if (wish.kind !== 'on') return;
      const { url, sampler, batch, propagates, warnings } = wish.settings;
      const { maxQueueSize, maxExportBatchSize } = batch;
      const read = {
        url,
        sampler,
        propagates,
        warned: warnings.length,
        queue: maxQueueSize,
        batch: maxExportBatchSize,
      };
      assert.deepEqual({ ...read, ...expected }, read);
    });
  }

  test('one that cannot be followed leaves a gateway that serves, without spans, and says so', async () => {
    const { gateway, lines } = await start({
      OTEL_EXPORTER_OTLP_ENDPOINT: 'http://c:4317',
      OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc',
    });
    try {
      await makeCalls(gateway);
      assert.equal(gateway.gateway.tracing, undefined);
      assert.equal(lines.filter(({ msg }) => msg === 'no spans are made').length, 1);
    } finally {
      await gateway.close();
    }
  });
});

test('toolgate doctor: whether spans are made, and whether the collector takes them', async () => {
  const found = async (env: Readonly<Record<string, string>>): Promise<string> =>
    renderFindings(await withEnv(env, () => diagnoseTracing(env)));
  assert.match(await found({}), /^ok +tracing +off: no exporter is configured/m);
  collector.manners = 'take';
  const secret = `http://user:${WORDS}@${new URL(collector.origin).host}?key=${WORDS}`;
  const well = await found({ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: secret });
  assert.match(well, /^ok +tracing +`http:\/\/127\.0\.0\.1:\d+` takes spans/m);
  assert.equal(well.includes(WORDS), false);
  collector.manners = (response) => response.writeHead(403).end();
  const refused = await found({ OTEL_EXPORTER_OTLP_ENDPOINT: collector.origin });
  assert.match(refused, /^WARNING +tracing +`http:\S+` takes no spans: status_403/m);
  const down = await found({ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9' });
  assert.match(down, /^WARNING +tracing +`http:\/\/127\.0\.0\.1:9` takes no spans: ECONNREFUSED/m);
  const unusable = await found({ OTEL_TRACES_EXPORTER: 'zipkin' });
  assert.match(unusable, /^WARNING +tracing +off: `OTEL_TRACES_EXPORTER`/m);
});
