import { cpus, loadavg } from 'node:os';
import { measureCarried } from './carried-cost.ts';
import { measureCheck } from './check-cost.ts';
import { type ClaimRate, measureClaims } from './claim-rate.ts';
import { type LoadOptions, type LoadResult, runLoad } from './load.ts';
import { type McpFigures, measureMcp } from './mcp-sessions.ts';
import { measureMemory, renderMemory } from './memory.ts';
import { type Started, startScript } from './processes.ts';
import { measureReceipts } from './receipt-cost.ts';
import { ReceiptSource } from './receipt-source.ts';
import { measureRulebook } from './rulebook-cost.ts';

/**
 * `npm run bench`: what the gateway costs, as ratios to the bare forwarder in the same run on the same machine. Rounds are
 * interleaved (bare, checked, bare, checked), medians are shown, and a spread that says nothing is said to say nothing.
 * `--json` prints the figures for a script, `--seconds N` makes each round longer.
 */
const CONNECTIONS = 64;
const ROUNDS = 5;
const SERVER_CORE = 0;
const LOAD_CORE = 1;

const seconds = Number(argument('--seconds') ?? 3);
const asJson = process.argv.includes('--json');

interface Case {
  readonly name: string;
  readonly goal: string;
  readonly target: 'bare' | 'gateway';
  readonly request: LoadOptions['request'];
  readonly expect: string;
}

function http(method: string, path: string, headers: readonly string[], body?: string): string {
  const length =
    body === undefined ? [] : ['content-type: application/json', `content-length: ${Buffer.byteLength(body)}`];
  return [`${method} ${path} HTTP/1.1`, 'host: 127.0.0.1', ...headers, ...length, '', body ?? ''].join('\r\n');
}

const SEARCH = JSON.stringify({ note: 'x'.repeat(560), order_id: '4411' });
const PUT_ARGUMENTS = { note: 'a note', order_id: '4411' };
const PUT = JSON.stringify(PUT_ARGUMENTS);

const sources = new Map<number, ReceiptSource>();

/** A receipt that was never sent, of the connection's own session. */
function nextReceipt(connection: number): string {
  const source = sources.get(connection) ?? new ReceiptSource(`c-${connection}`, PUT_ARGUMENTS);
  sources.set(connection, source);
  return Buffer.from(JSON.stringify(source.next())).toString('base64url');
}

const CASES: readonly Case[] = [
  {
    name: 'bare forwarder, POST of 600 B',
    goal: '',
    target: 'bare',
    request: () => http('POST', '/search', [], SEARCH),
    expect: '200',
  },
  {
    name: 'checked read (POST of 600 B), held history',
    goal: '≥ 70 % of bare',
    target: 'gateway',
    request: (connection) => http('POST', '/shop/search', [`toolgate-session: r-${connection}`], SEARCH),
    expect: '200',
  },
  {
    name: 'checked read (GET), held history',
    goal: '',
    target: 'gateway',
    request: (connection) => http('GET', '/shop/orders/4411', [`toolgate-session: g-${connection}`]),
    expect: '200',
  },
  {
    name: 'checked write, typed by a host, claim durable (FULL)',
    goal: '≥ 40 % of bare',
    target: 'gateway',
    request: (connection) =>
      http(
        'POST',
        '/shop/orders',
        [`toolgate-session: w-${connection}`, 'toolgate-origins: order_id=context, note=context'],
        PUT,
      ),
    expect: '200',
  },
  {
    name: 'write with a receipt, claim durable (FULL)',
    goal: '≥ 35 % of bare',
    target: 'gateway',
    request: (connection) =>
      http('POST', '/shop/orders', ['toolgate-agent: desk', `toolgate-receipt: ${nextReceipt(connection)}`], PUT),
    expect: '200',
  },
];

type Round = LoadResult & { readonly cpuUs: number };

interface Measured {
  readonly name: string;
  readonly goal: string;
  readonly perSecond: number;
  readonly ofBare: number;
  /** CPU time of the server a call, all threads, in microseconds: tells more than rates do on a busy machine. */
  readonly cpuUs: number;
  readonly cpuOfBare: number;
  readonly spread: number;
  readonly p99Ms: number;
}

async function main(): Promise<void> {
  const backend = await startScript('backend.ts', [], LOAD_CORE);
  const url = `http://127.0.0.1:${backend.port}`;
  const bare = await startScript('bare.ts', [url], SERVER_CORE);
  const gateway = await startScript('gateway.ts', [url], SERVER_CORE);
  try {
    const measured = await measure({ bare, gateway });
    const check = measureCheck([1, 20, 10_000]);
    const carried = measureCarried(1_000);
    const rulebooks = measureRulebook([10, 200, 2_000]);
    const receipts = measureReceipts([1, 10_000]);
    const mcp = await measureMcp();
    const claims = await measureClaims(seconds);
    const memory = await measureMemory(url);
    const all = { machine: machine(), measured, check, carried, receipts, claims, rulebooks, mcp, memory };
    if (asJson) process.stdout.write(`${JSON.stringify(all, null, 2)}\n`);
    else {
      const tables = [render(measured, check, carried, receipts), renderClaims(claims), renderRulebooks(rulebooks)];
      process.stdout.write([...tables, renderMcp(mcp), renderMemory(memory)].join(''));
    }
  } finally {
    await Promise.all([gateway.stop(), bare.stop(), backend.stop()]);
  }
}

async function measure(servers: { readonly bare: Started; readonly gateway: Started }): Promise<readonly Measured[]> {
  const runs = new Map<string, Round[]>();
  for (const round of Array.from({ length: ROUNDS + 1 }, (_, index) => index)) {
    for (const one of CASES) {
      const server = servers[one.target];
      const { port } = server;
      const options = { port, connections: CONNECTIONS, durationMs: seconds * 1000, request: one.request };
      const before = server.cpuUs();
      const load = await runLoad(options);
      const result = { ...load, cpuUs: (server.cpuUs() - before) / load.calls };
      const wrong = Object.keys(result.statuses).filter((status) => status !== one.expect);
      if (wrong.length > 0) throw new Error(`${one.name}: answered ${JSON.stringify(result.statuses)}`);
      // The first round warms everything up.
      if (round > 0) runs.set(one.name, [...(runs.get(one.name) ?? []), result]);
    }
  }
  const first = runs.get(CASES[0]?.name ?? '') ?? [];
  const bare = median(first.map(({ perSecond }) => perSecond));
  const bareCpu = median(first.map(({ cpuUs }) => cpuUs));
  return CASES.map(({ name, goal }) => {
    const results = runs.get(name) ?? [];
    const rates = results.map(({ perSecond }) => perSecond);
    const perSecond = median(rates);
    const spread = (Math.max(...rates) - Math.min(...rates)) / perSecond;
    const cpuUs = median(results.map((result) => result.cpuUs));
    const p99Ms = median(results.map((result) => result.p99Ms));
    return { name, goal, perSecond, ofBare: perSecond / bare, cpuUs, cpuOfBare: bareCpu / cpuUs, spread, p99Ms };
  });
}

function render(
  measured: readonly Measured[],
  check: ReturnType<typeof measureCheck>,
  carried: ReturnType<typeof measureCarried>,
  receipts: ReturnType<typeof measureReceipts>,
): string {
  const rows = measured.map((row) =>
    [
      row.name,
      Math.round(row.perSecond),
      `${Math.round(row.ofBare * 100)} %`,
      Math.round(row.cpuUs),
      `${Math.round(row.cpuOfBare * 100)} %`,
      row.goal,
      row.p99Ms.toFixed(1),
      `±${Math.round(row.spread * 50)} %`,
    ].join(' | '),
  );
  const noisy = measured.some(({ spread }) => spread > 0.3);
  return [
    '',
    `${machine()}; ${CONNECTIONS} connections, medians of ${ROUNDS} interleaved rounds of ${seconds} s`,
    '',
    '| case | calls/s | of bare | CPU µs | of bare, by CPU | goal | p99 ms | spread |',
    '|---|---|---|---|---|---|---|---|',
    ...rows.map((row) => `| ${row} |`),
    '',
    '| the check alone, in process | µs CPU | goal |',
    '|---|---|---|',
    ...check.map(({ entries, us }) => `| held history of ${entries} entries | ${us.toFixed(1)} | ≤ 15 |`),
    '',
    '| a cut receipt, read and verified, nothing known | bytes | µs | goal |',
    '|---|---|---|---|',
    ...receipts.map(
      ({ entries, bytes, us }) => `| of a history of ${entries} entries | ${bytes} | ${us.toFixed(0)} | the same |`,
    ),
    '',
    `A carried history of ${carried.entries} entries whose prefix is known: ${carried.verifications} signature verified,`,
    `${carried.knownMs.toFixed(1)} ms; unknown: ${carried.unknownMs.toFixed(1)} ms.`,
    noisy ? '\nThe machine was too noisy in this run to tell: rates of one case differ by more than 30 %.' : '',
    '',
  ].join('\n');
}

function renderClaims(claims: readonly (ClaimRate | string)[]): string {
  const rows = claims.map((rate) =>
    typeof rate === 'string'
      ? `| ${rate} | | | |`
      : `| ${rate.store} | ${Math.round(rate.single)} | ${Math.round(rate.grouped)} | ${(rate.grouped / rate.single).toFixed(1)} |`,
  );
  const head = ['| durable claims/s | one caller, single commits | 64 callers, grouped | ratio |', '|---|---|---|---|'];
  return [...head, ...rows, '', ''].join('\n');
}

function renderRulebooks(rulebooks: ReturnType<typeof measureRulebook>): string {
  const rows = rulebooks.map(({ flows, us }) => `| ${flows} flows of other tools | ${us.toFixed(1)} |`);
  return ['| the rulebook alone, in process | µs CPU |', '|---|---|', ...rows, '', ''].join('\n');
}

function renderMcp({ sessions, calls, perSecond, crossTalk, heapMiB }: McpFigures): string {
  return [
    `${sessions} MCP sessions, ${calls} calls, client, gateway and server in one process: ${Math.round(perSecond)} calls/s,`,
    `${crossTalk} answers gone astray; heap in use after each fifth of them: ${heapMiB.join(', ')} MiB.`,
    '',
  ].join('\n');
}

function machine(): string {
  const [cpu] = cpus();
  return `${cpus().length} × ${cpu?.model.trim() ?? 'unknown'}, Node ${process.version}, load ${loadavg()[0]?.toFixed(1)}`;
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}

function argument(name: string): string | undefined {
  const at = process.argv.indexOf(name);
  return at === -1 ? undefined : process.argv[at + 1];
}

await main();
