import type { FieldSource } from '../../policy/conditions/condition.ts';
import { type CompiledFilter, compileFilter } from '../../policy/conditions/filter.ts';
import { compileFollowed, type JudgeFollowed } from '../../policy/conditions/followed.ts';
import { type ConditionRules, makeConditionRules } from '../../policy/conditions/gate.ts';
import type { CompiledLimits } from '../../policy/conditions/limits.ts';
import { makeWindows } from '../../policy/conditions/period.ts';
import type { BuiltCatalogue } from '../catalogue/build.ts';
import type { ToolSettings } from '../catalogue/tool-settings.ts';
import type { Config } from '../config/config.ts';
import { makeWatchPlans, usesOf, type WatchPlan } from './watch-plans.ts';

/** A filter of a tool's answers, and how they are written. */
export interface AnswerFilter {
  readonly filter: CompiledFilter;
  /** `mcp`: the answer is a tool result whose content holds the records. */
  readonly form: 'json' | 'mcp';
}

/** How a write is followed until its outcome is known. */
export interface FollowPlan {
  /** The read, a pair. */
  readonly follow: string;
  /** The read's argument; its value is the write's argument, else the result's field, of that name. */
  readonly same: string;
  readonly judge: JudgeFollowed;
  /** How the read's answer is written. */
  readonly form: 'json' | 'mcp';
  readonly giveUpAfterMs: number;
}

/** What the configuration's conditions, limits, filters and followed outcomes come to, compiled once. */
export interface RulePart {
  readonly rules: ConditionRules;
  readonly limitsOf: (toolId: string) => CompiledLimits | undefined;
  /** Tools whose answers the conditions of a tool read. */
  readonly reads: (toolId: string) => readonly string[];
  readonly watched: ReadonlyMap<string, WatchPlan>;
  readonly filters: ReadonlyMap<string, AnswerFilter>;
  readonly followed: ReadonlyMap<string, FollowPlan>;
  /** Tools whose undo gives back what they spent. */
  readonly restored: ReadonlySet<string>;
}

const GIVE_UP_AFTER_MINUTES = 60;
const NONE: readonly string[] = [];

/** Compiles them. Throws `ConditionFault` for what the loading of the configuration let through and nobody could judge. */
export function makeRulePart(config: Config, built: BuiltCatalogue): RulePart {
  const all = [...built.settings.values()];
  const rules = makeConditionRules(
    all.map(({ id, checks, limits, spend, currency, references }) => ({
      tool: id,
      checks,
      limits,
      spend,
      references,
      ...(currency === undefined ? {} : { currency }),
    })),
    { tenant: config.tenant, windowOf: makeWindows(config.timezone), carryMs: config.sessions.carryMs },
  );
  const mcp = new Set(config.routes.filter(({ source }) => source.kind === 'mcp').map(({ name }) => name));
  const formOf: FormOf = (toolId) => (mcp.has(toolId.slice(0, toolId.indexOf('/'))) ? 'mcp' : 'json');
  const reads = new Map(all.map((settings) => [settings.id, [...new Set(usesOf(settings).map(({ tool }) => tool))]]));
  return {
    rules,
    limitsOf: rules.limitsOf,
    reads: (toolId) => reads.get(toolId) ?? NONE,
    watched: makeWatchPlans(built),
    filters: filtersOf(all, formOf),
    followed: followedOf(all, formOf),
    restored: restoredOf(built),
  };
}

type FormOf = (toolId: string) => 'json' | 'mcp';

function filtersOf(all: readonly ToolSettings[], formOf: FormOf): ReadonlyMap<string, AnswerFilter> {
  const filters = new Map<string, AnswerFilter>();
  for (const settings of all) {
    if (settings.filter === undefined) continue;
    const filter = compileFilter(settings.filter, resolverOf(settings));
    filters.set(settings.id, { filter, form: formOf(settings.id) });
  }
  return filters;
}

function followedOf(all: readonly ToolSettings[], formOf: FormOf): ReadonlyMap<string, FollowPlan> {
  const plans = new Map<string, FollowPlan>();
  for (const settings of all) {
    const { outcome } = settings;
    if (outcome === undefined) continue;
    plans.set(settings.id, {
      follow: outcome.follow,
      same: outcome.same,
      judge: compileFollowed(outcome, resolverOf(settings)),
      form: formOf(outcome.follow),
      giveUpAfterMs: (outcome.give_up_after ?? GIVE_UP_AFTER_MINUTES) * 60_000,
    });
  }
  return plans;
}

function restoredOf({ catalogue }: BuiltCatalogue): ReadonlySet<string> {
  const restored = new Set<string>();
  for (const { id, undo } of catalogue.tools.values()) {
    if (undo === undefined || undo === 'none') continue;
    if (catalogue.tools.get(undo.tool)?.restores === true) restored.add(id);
  }
  return restored;
}

function resolverOf(settings: ToolSettings): (from: string) => FieldSource | undefined {
  return (from) => settings.references.get(from);
}
