import type { measureCarried } from './carried-cost.ts';
import type { measureCheck } from './check-cost.ts';
import type { ClaimRate } from './claim-rate.ts';
import { type AtHalf, CONNECTIONS, type Measured, ROUNDS } from './http-cost.ts';
import type { McpFigures } from './mcp-sessions.ts';
import { type MemoryFigures, renderMemory } from './memory.ts';
import type { measureReceipts } from './receipt-cost.ts';
import type { measureRulebook } from './rulebook-cost.ts';

/** All that one run of the bench found out. */
export interface Figures {
  readonly machine: string;
  /** Of one round. */
  readonly seconds: number;
  readonly measured: readonly Measured[];
  readonly atHalf: readonly AtHalf[];
  readonly process: {
    readonly startMs: number;
    readonly startCpuMs: number;
    readonly idleMiB: number;
    readonly afterMiB: number;
  };
  readonly check: ReturnType<typeof measureCheck>;
  readonly carried: ReturnType<typeof measureCarried>;
  readonly receipts: ReturnType<typeof measureReceipts>;
  readonly claims: readonly (ClaimRate | string)[];
  readonly rulebooks: ReturnType<typeof measureRulebook>;
  readonly mcp: McpFigures;
  readonly memory: MemoryFigures;
}

/** The figures as tables in Markdown. */
export function renderFigures(figures: Figures): string {
  const { claims, rulebooks, mcp, memory } = figures;
  const tables = [renderCalls(figures), renderAtHalf(figures), renderClaims(claims), renderRulebooks(rulebooks)];
  return [...tables, renderMcp(mcp), renderMemory(memory)].join('');
}

function renderCalls({ machine, seconds, measured, check, carried, receipts }: Figures): string {
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
    `${machine}; ${CONNECTIONS} connections, medians of ${ROUNDS} interleaved rounds of ${seconds} s`,
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

function renderAtHalf({ atHalf, process }: Figures): string {
  const rows = atHalf.map(
    ({ name, perSecond, p50AddedMs, p99AddedMs, goal }) =>
      `| ${name} | ${Math.round(perSecond)} | ${p50AddedMs.toFixed(1)} | ${p99AddedMs.toFixed(1)} | ${goal} |`,
  );
  return [
    '| at half of what it can do, longer than bare | calls/s | p50 ms | p99 ms | goal of p99 |',
    '|---|---|---|---|---|',
    ...rows,
    '',
    `The gateway listens ${process.startMs.toFixed(0)} ms after its start, from sources (${process.startCpuMs.toFixed(0)} ms CPU), and`,
    `then has ${process.idleMiB.toFixed(0)} MiB; after all of the above ${process.afterMiB.toFixed(0)} MiB (goals: < 1 s built, < 120 MiB, < 300 MiB).`,
    '',
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
