import type { Snapshot } from '../../policy/call.ts';
import type { Usage } from '../../policy/conditions/condition.ts';
import { addTexts } from '../../policy/conditions/decimals.ts';
import type { Bucket, CountedCall } from '../../policy/conditions/limits.ts';
import type { Verdict } from '../../policy/verdict.ts';
import type { CallOutcome } from '../exchange.ts';
import type { Gateway } from '../gateway.ts';
import type { Loaded } from '../loaded.ts';
import { type Operation, type Store, StoreFault } from '../store/port.ts';
import type { ReadCall } from './read-call.ts';

/** What is counted of a tool that nothing limits. */
export const NOTHING_COUNTED: Usage = { counted: new Map() };

/**
 * What is counted of the tool's limits at `nowMs`, for the check; the periods are those of that moment. A store that
 * cannot be asked leaves it unknown, which the check refuses.
 * @param place the session that the call is recorded in: its name, and its id where it is kept
 */
export async function readUsage(
  gateway: Gateway,
  read: ReadCall,
  place: Pick<CountedCall, 'session' | 'sid'>,
  nowMs: number,
): Promise<Usage> {
  const { loaded, call, tool } = read;
  if (tool === undefined) return NOTHING_COUNTED;
  const { arguments: args, caller, run } = call;
  const counted = { nowMs, arguments: args, caller, ...place, ...(run === undefined ? {} : { run }) };
  const buckets = loaded.rules.rules.buckets(tool.id, counted);
  if (buckets.length === 0) return NOTHING_COUNTED;
  try {
    return { counted: await countBuckets(gateway.store, buckets) };
  } catch (error) {
    if (!(error instanceof StoreFault)) throw error;
    gateway.log.warn({ err: error, tool: tool.id }, 'what was used of a limit could not be counted');
    return 'unknown';
  }
}

/** Settled and held amounts by bucket, as one decimal text; a bucket that nothing was counted in has 0. */
async function countBuckets(store: Store, buckets: readonly Bucket[]): Promise<ReadonlyMap<string, string>> {
  const counted = new Map<string, string>();
  const fixed = buckets.filter(({ sinceMs }) => sinceMs === undefined).map(({ name }) => name);
  if (fixed.length > 0) {
    const counters = await store.readCounters(fixed);
    for (const name of fixed) {
      const counter = counters.get(name);
      counted.set(name, counter === undefined ? '0' : addTexts(counter.settled, counter.held));
    }
  }
  for (const { name, sinceMs } of buckets) {
    if (sinceMs === undefined || counted.has(name)) continue;
    const holds = await store.readHolds(name, sinceMs);
    counted.set(name, holds.map(({ amount }) => amount).reduce(addTexts, '0'));
  }
  return counted;
}

/** How long a calendar bucket is kept behind its end, so that what was counted can still be looked at. */
const KEPT_BEHIND_MS = 7 * 86_400_000;

/**
 * What an allowed call reserves in the commit that records it: where another call came first and took the last place, the
 * commit is a conflict and the call is checked anew. An undo reserves nothing.
 */
export function holdsOf(
  loaded: Loaded,
  verdict: Verdict,
  read: ReadCall,
  snapshot: Snapshot,
  link: string,
): readonly Operation[] {
  const { tool } = verdict;
  if (verdict.decision !== 'allow' || tool === undefined || read.call.undoes !== undefined) return [];
  return loaded.rules.rules.reserve(tool.id, read.call, snapshot).map(
    ({ name, amount, max, kind, sinceMs, untilMs, sid }): Operation => ({
      op: 'hold',
      bucket: name,
      link: kind === 'call' ? callsLink(loaded, tool.id, link) : link,
      amount,
      max,
      atMs: snapshot.nowMs,
      ...(sinceMs === undefined ? {} : { sinceMs }),
      ...(untilMs === undefined ? {} : { untilMs: untilMs + KEPT_BEHIND_MS }),
      ...(sid === undefined ? {} : { ofSession: sid }),
    }),
  );
}

/**
 * What becomes of a call's reservations once its outcome is known: settled where it ran, released where it failed; an
 * unknown outcome stays counted. What a tool spent whose undo restores it is left held, which counts the same and can
 * still be given back.
 */
export function endHolds(loaded: Loaded, toolId: string, link: string, outcome: CallOutcome): readonly Operation[] {
  if (outcome === 'outcome_unknown' || loaded.rules.limitsOf(toolId) === undefined) return [];
  const calls = callsLink(loaded, toolId, link);
  if (outcome === 'ran') return [{ op: 'settle_holds', link: calls }];
  return calls === link
    ? [{ op: 'release_holds', link }]
    : [
        { op: 'release_holds', link },
        { op: 'release_holds', link: calls },
      ];
}

/** What the undone step of `link` spent is given back; the call itself stays counted. */
export function restoreSpend(loaded: Loaded, undoneToolId: string, link: string): readonly Operation[] {
  return loaded.rules.restored.has(undoneToolId) ? [{ op: 'release_holds', link }] : [];
}

/** Places among the calls are held apart from money where an undo gives the money back. */
function callsLink(loaded: Loaded, toolId: string, link: string): string {
  return loaded.rules.restored.has(toolId) ? `${link}:calls` : link;
}
