import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { cpus, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { performance } from 'node:perf_hooks';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { stringify } from 'yaml';

/**
 * How long `toolgate serve` takes to start with an OpenAPI document, and what memory it then holds:
 * `node test/bench/openapi-start.ts DOCUMENT [ROUNDS] [WORDS]`, on Linux; WORDS are further words of the route, as JSON. Each round is a process of its own, from its start to the
 * first answer of `/healthz`; the built program where there is one (`npm run build`), else the sources, which Node has to
 * strip of their types.
 */
interface Round {
  readonly wallMs: number;
  readonly cpuMs: number;
  readonly rssMb: number;
  readonly peakMb: number;
}

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const BUILT = join(ROOT, 'dist/gateway/cli/main.js');
const PROGRAM = existsSync(BUILT) ? BUILT : join(ROOT, 'gateway/cli/main.ts');

async function runRound(document: string, words: object): Promise<Round> {
  const folder = mkdtempSync(join(tmpdir(), 'toolgate-bench-'));
  const port = await freePort();
  const config = join(folder, 'gateway.yaml');
  const route = { name: 'api', upstream: 'http://127.0.0.1:9', openapi: resolve(document), ...words };
  const own = { keys: { signing: './gateway.pem' }, store: './toolgate.db', audit: { file: './audit.jsonl' } };
  writeFileSync(config, stringify({ listen: `127.0.0.1:${port}`, ...own, agents: { desk: {} }, routes: [route] }));
  const startedAt = performance.now();
  const child = spawn(process.execPath, [PROGRAM, 'serve', '-c', config], { stdio: 'ignore' });
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  try {
    await untilReady(child, port);
    const wallMs = performance.now() - startedAt;
    return { wallMs, ...readProcess(child.pid ?? 0) };
  } finally {
    child.kill('SIGTERM');
    await ended;
    rmSync(folder, { recursive: true, force: true });
  }
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer().once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => resolve(typeof address === 'object' && address !== null ? address.port : 0));
    });
  });
}

async function untilReady(child: ChildProcess, port: number): Promise<void> {
  while (child.exitCode === null) {
    const answer = await fetch(`http://127.0.0.1:${port}/healthz`).catch(() => undefined);
    if (answer?.ok === true) return;
    await pause(10);
  }
  throw new Error(`the gateway ended with ${child.exitCode} before it listened`);
}

/** Clock ticks of `/proc/PID/stat` in a second: 100 on every Linux that Node runs on. */
const TICK_MS = 10;

function readProcess(pid: number): Omit<Round, 'wallMs'> {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  const kilobytes = (name: string): number => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(status)?.[1]);
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
  const cpuMs = (Number(fields[11]) + Number(fields[12])) * TICK_MS;
  return { cpuMs, rssMb: kilobytes('VmRSS') / 1_000, peakMb: kilobytes('VmHWM') / 1_000 };
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}

const [document, count = '5', words = '{}'] = process.argv.slice(2);
if (document === undefined) {
  process.stderr.write('usage: node test/bench/openapi-start.ts DOCUMENT [ROUNDS] [WORDS]\n');
  process.exit(2);
}
const rounds: Round[] = [];
for (let i = 0; i < Number(count); i++) rounds.push(await runRound(document, JSON.parse(words) as object));
const line = (name: string, of: (round: Round) => number, unit: string): string =>
  `${name.padEnd(24)}${Math.round(median(rounds.map(of)))} ${unit} (${rounds.map((round) => Math.round(of(round))).join(', ')})\n`;
const program = PROGRAM === BUILT ? 'the built program' : 'the sources';
process.stdout.write(`${document}: ${rounds.length} starts of ${program} on ${cpus().length} cores\n`);
process.stdout.write(line('until it answers', ({ wallMs }) => wallMs, 'ms'));
process.stdout.write(line('CPU', ({ cpuMs }) => cpuMs, 'ms'));
process.stdout.write(line('resident memory', ({ rssMb }) => rssMb, 'MB'));
process.stdout.write(line('at its highest', ({ peakMb }) => peakMb, 'MB'));
