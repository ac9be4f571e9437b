import { addTexts } from '../../policy/conditions/decimals.ts';
import type { StandingLimit } from '../../policy/conditions/limits.ts';
import type { Tool } from '../../policy/tool.ts';
import type { JsonObject } from '../../receipts/json-value.ts';
import type { Gateway } from '../gateway.ts';
import type { CounterRecord } from '../store/port.ts';
import { type ApiBindings, identify, jsonAnswer } from './api-context.ts';

/** One count, with the tools that share it. */
interface Count {
  readonly limit: StandingLimit;
  readonly tools: string[];
}

const NOTHING: CounterRecord = { settled: '0', held: '0' };

/**
 * `GET /v1/usage`: what is settled and held of every limit per minute, hour, day, week and month, per tool or pool. A
 * caller sees the tools that its agents reach, an approver all of them.
 */
export async function getUsage(env: ApiBindings): Promise<Response> {
  const identity = identify(env);
  const { gateway } = env;
  const sees = (tool: Tool): boolean =>
    identity.kind === 'approver' || [...identity.caller.agents].some((agent) => tool.agents.has(agent));
  const nowMs = gateway.now();
  const counts = countsOf(gateway, nowMs, sees);
  const counted = await readCounts(gateway, counts);
  return jsonAnswer({ at: nowMs, usage: counts.map((count) => render(count, counted.get(count.limit.bucket.name))) });
}

/** Every count once, whichever of its tools are seen; tools of one pool may have limits of their own on it. */
function countsOf(gateway: Gateway, nowMs: number, sees: (tool: Tool) => boolean): readonly Count[] {
  const counts = new Map<string, Count>();
  const { catalogue, rules } = gateway.loaded;
  for (const tool of catalogue.tools.values()) {
    if (!sees(tool)) continue;
    for (const limit of rules.limitsOf(tool.id)?.standing(nowMs) ?? []) {
      const key = JSON.stringify([limit.bucket.name, limit.max]);
      const known = counts.get(key);
      if (known === undefined) counts.set(key, { limit, tools: [tool.id] });
      else if (!known.tools.includes(tool.id)) known.tools.push(tool.id);
    }
  }
  return [...counts.values()];
}

async function readCounts(gateway: Gateway, counts: readonly Count[]): Promise<ReadonlyMap<string, CounterRecord>> {
  const names = counts.flatMap(({ limit }) => (limit.bucket.sinceMs === undefined ? [limit.bucket.name] : []));
  const counted = new Map(names.length === 0 ? [] : await gateway.store.readCounters([...new Set(names)]));
  for (const { limit } of counts) {
    const { name, sinceMs } = limit.bucket;
    if (sinceMs === undefined || counted.has(name)) continue;
    const holds = await gateway.store.readHolds(name, sinceMs);
    const sum = (state: 'held' | 'settled'): string =>
      holds.flatMap((hold) => (hold.state === state ? [hold.amount] : [])).reduce(addTexts, '0');
    counted.set(name, { settled: sum('settled'), held: sum('held') });
  }
  return counted;
}

function render({ limit, tools }: Count, { settled, held }: CounterRecord = NOTHING): JsonObject {
  const { kind, per, max, bucket, field, currency, pool } = limit;
  return {
    kind: kind === 'call' ? 'calls' : 'spend',
    tools,
    ...(pool === undefined ? {} : { pool }),
    ...(field === undefined || pool !== undefined ? {} : { field }),
    ...(currency === undefined ? {} : { currency }),
    per,
    ...(bucket.sinceMs === undefined ? {} : { since: bucket.sinceMs }),
    ...(bucket.untilMs === undefined ? {} : { until: bucket.untilMs }),
    at_most: max,
    settled,
    held,
  };
}
