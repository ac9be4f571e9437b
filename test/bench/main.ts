import { cpus, loadavg } from 'node:os';
import { measureCarried } from './carried-cost.ts';
import { measureCheck } from './check-cost.ts';
import { measureClaims } from './claim-rate.ts';
import { measureAtHalf, measureCalls } from './http-cost.ts';
import { measureMcp } from './mcp-sessions.ts';
import { measureMemory } from './memory.ts';
import { startScript } from './processes.ts';
import { measureReceipts } from './receipt-cost.ts';
import { type Figures, renderFigures } from './render.ts';
import { measureRulebook } from './rulebook-cost.ts';

/**
 * `npm run bench`: what the gateway costs, as ratios to the bare forwarder in the same run on the same machine. Rounds are
 * interleaved (bare, checked, bare, checked), medians are shown, and a spread that says nothing is said to say nothing.
 * `--json` prints the figures for a script, `--seconds N` makes each round longer.
 */
const SERVER_CORE = 0;
const LOAD_CORE = 1;

const seconds = Number(argument('--seconds') ?? 3);
const asJson = process.argv.includes('--json');

async function main(): Promise<void> {
  const backend = await startScript('backend.ts', [], LOAD_CORE);
  const url = `http://127.0.0.1:${backend.port}`;
  const bare = await startScript('bare.ts', [url], SERVER_CORE);
  const gateway = await startScript('gateway.ts', [url], SERVER_CORE);
  const started = { startMs: gateway.startMs, startCpuMs: gateway.cpuUs() / 1000, idleMiB: gateway.memoryMiB() };
  try {
    const measured = await measureCalls({ bare, gateway }, seconds);
    const atHalf = await measureAtHalf({ bare, gateway }, measured, seconds);
    const figures: Figures = {
      machine: machine(),
      seconds,
      measured,
      atHalf,
      process: { ...started, afterMiB: gateway.memoryMiB() },
      check: measureCheck([1, 20, 10_000]),
      carried: measureCarried(1_000),
      receipts: measureReceipts([1, 10_000]),
      claims: await measureClaims(seconds),
      rulebooks: measureRulebook([10, 200, 2_000]),
      mcp: await measureMcp(),
      memory: await measureMemory(url),
    };
    process.stdout.write(asJson ? `${JSON.stringify(figures, null, 2)}\n` : renderFigures(figures));
  } finally {
    await Promise.all([gateway.stop(), bare.stop(), backend.stop()]);
  }
}

function machine(): string {
  const [cpu] = cpus();
  return `${cpus().length} × ${cpu?.model.trim() ?? 'unknown'}, Node ${process.version}, load ${loadavg()[0]?.toFixed(1)}`;
}

function argument(name: string): string | undefined {
  const at = process.argv.indexOf(name);
  return at === -1 ? undefined : process.argv[at + 1];
}

await main();
