import { OPERATORS } from '../../policy/conditions/condition.ts';
import type { Tool } from '../../policy/tool.ts';
import type { BuiltCatalogue } from '../catalogue/build.ts';
import type { ToolSettings } from '../catalogue/tool-settings.ts';
import type { RawCondition, RawOperand } from '../config/raw.ts';

/** What is kept of a tool's answers, because rules read it later. */
export interface WatchPlan {
  /** Names of the call's own arguments. */
  readonly arguments: readonly string[];
  /** Dotted paths into the result, each up to its first list. */
  readonly fields: readonly string[];
  /** How many answers of the tool a session keeps. */
  readonly keep: number;
}

/** What a rule reads of a tool's answers. */
export interface AnswerUse {
  /** The pair. */
  readonly tool: string;
  readonly field: string;
  /** The argument, else the field of the result, that ties the answer to the call. */
  readonly same?: string;
}

/** Answers kept where rules tell them apart by what they are about; of any other only the newest counts. */
const KEPT_ANSWERS = 64;

/** Everything that conditions of a tool and its filter read of other tools' answers. */
export function usesOf(settings: ToolSettings): readonly AnswerUse[] {
  const conditions = [...settings.checks, ...(settings.filter?.keep ?? []), ...(settings.outcome?.done_when ?? [])];
  return [...conditions, ...(settings.outcome?.failed_when ?? [])].flatMap((one) => usesOfCondition(one, settings));
}

function usesOfCondition(condition: RawCondition, settings: ToolSettings): readonly AnswerUse[] {
  if (condition.any !== undefined) return condition.any.flatMap((one) => usesOfCondition(one, settings));
  return OPERATORS.flatMap((operator) => {
    const reference = referenceOf(condition[operator]);
    const field = reference === undefined ? undefined : settings.references.get(reference.from);
    if (reference === undefined || field === undefined) return [];
    return [reference.same === undefined ? field : { ...field, same: reference.same }];
  });
}

/** What is kept of each tool's answers; a tool that no rule reads is not there. */
export function makeWatchPlans(built: BuiltCatalogue): ReadonlyMap<string, WatchPlan> {
  const uses = [...[...built.settings.values()].flatMap(usesOf), ...built.facts.values()];
  const plans = new Map<string, WatchPlan>();
  for (const [toolId, own] of Map.groupBy(uses, ({ tool }) => tool)) {
    const tool = built.catalogue.tools.get(toolId);
    if (tool !== undefined) plans.set(toolId, planOf(tool, own));
  }
  return plans;
}

function planOf(tool: Tool, uses: readonly AnswerUse[]): WatchPlan {
  const ties = uses.flatMap(({ same }) => (same === undefined ? [] : [same]));
  // Of a call that its host ran itself the arguments are not known any more: the result may say what it was about.
  const fields = [...uses.map(({ field }) => beforeList(field)), ...ties];
  return {
    arguments: [...new Set(ties.filter((name) => tool.input.declares(name)))].sort(),
    fields: [...new Set(fields)].sort(),
    keep: ties.length > 0 ? KEPT_ANSWERS : 1,
  };
}

function referenceOf(operand: RawOperand | undefined): { readonly from: string; readonly same?: string } | undefined {
  if (typeof operand !== 'object' || operand === null || Array.isArray(operand)) return undefined;
  const { from, same } = operand as { readonly from?: string; readonly same?: string };
  if (from === undefined) return undefined;
  return same === undefined ? { from } : { from, same };
}

function beforeList(field: string): string {
  const list = field.indexOf('[]');
  return list < 0 ? field : field.slice(0, list);
}
