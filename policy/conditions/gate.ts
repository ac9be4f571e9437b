import type { Call, ConditionGate, Snapshot } from '../call.ts';
import { countOf } from '../session.ts';
import { compileConditions } from './compile.ts';
import type { CompiledConditions, ConditionSource, FieldSource } from './condition.ts';
import {
  type Bucket,
  type CompiledLimits,
  type CountedCall,
  compileLimits,
  type LimitsSettings,
  type LimitsSource,
  type Reservation,
} from './limits.ts';

/** What step 7 reads of one tool's words. */
export interface ConditionWords extends LimitsSource {
  readonly checks: readonly ConditionSource[];
  /** What each `from: tool.field` means. */
  readonly references: ReadonlyMap<string, FieldSource>;
}

/** Step 7, compiled once for every tool of a configuration. */
export interface ConditionRules {
  readonly gate: ConditionGate;
  /** What has to be counted, as `Snapshot.usage`, before a call of the tool is checked; empty for most tools. */
  readonly buckets: (toolId: string, call: CountedCall) => readonly Bucket[];
  /** The limits of a tool; absent where it has none. */
  readonly limitsOf: (toolId: string) => CompiledLimits | undefined;
  /** What a call that was allowed under the snapshot reserves, in the periods of the snapshot's time. */
  readonly reserve: (toolId: string, call: Call, snapshot: Snapshot) => readonly Reservation[];
}

interface ToolRules {
  readonly checks: CompiledConditions | undefined;
  readonly limits: CompiledLimits | undefined;
}

const NONE: readonly never[] = [];

/** Compiles the conditions and limits of tools. Throws `ConditionFault` where one is left that means nothing. */
export function makeConditionRules(tools: Iterable<ConditionWords>, settings: LimitsSettings): ConditionRules {
  const rules = new Map<string, ToolRules>();
  for (const words of tools) {
    const { checks, limits, spend } = words;
    if (checks.length + limits.length + spend.length === 0) continue;
    rules.set(words.tool, {
      checks: checks.length === 0 ? undefined : compileConditions(checks, (from) => words.references.get(from)),
      limits: limits.length + spend.length === 0 ? undefined : compileLimits(words, settings),
    });
  }
  return {
    gate: (tool, call, snapshot) => {
      const own = rules.get(tool.id);
      if (own === undefined) return undefined;
      if (own.checks !== undefined) {
        const lookups = { arguments: call.arguments, answers: snapshot.answers ?? NONE };
        const judged = own.checks.judge(call.arguments, lookups);
        if (judged.verdict !== 'holds') return { reason: `condition_${judged.verdict}`, detail: judged.detail };
      }
      if (own.limits === undefined) return undefined;
      const calls = countOf(snapshot.session.view, tool.id);
      return own.limits.check(countedCall(call, snapshot), snapshot.usage ?? 'unknown', calls);
    },
    buckets: (toolId, call) => rules.get(toolId)?.limits?.buckets(call) ?? NONE,
    limitsOf: (toolId) => rules.get(toolId)?.limits,
    reserve: (toolId, call, snapshot) => rules.get(toolId)?.limits?.reserve(countedCall(call, snapshot)) ?? NONE,
  };
}

function countedCall(call: Call, snapshot: Snapshot): CountedCall {
  return {
    nowMs: snapshot.nowMs,
    arguments: call.arguments,
    caller: call.caller,
    session: snapshot.session.id,
    ...(snapshot.session.sid === undefined ? {} : { sid: snapshot.session.sid }),
    ...(call.run === undefined ? {} : { run: call.run }),
  };
}
