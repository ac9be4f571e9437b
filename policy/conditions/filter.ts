import { isArray, isObject, type JsonObject, type JsonValue } from '../../receipts/json-value.ts';
import { compileConditions } from './compile.ts';
import { type CompiledConditions, ConditionFault, type ConditionSource, type Lookups } from './condition.ts';
import type { ResolveField } from './operand.ts';
import { type Path, parsePath, withEach } from './path.ts';

/** A filter as it is written: which records of a read's answer are passed on. */
export interface FilterSource {
  readonly each: string;
  readonly keep: readonly ConditionSource[];
}

/** An answer without the records that are held back, and how many those are. */
export interface Filtered {
  readonly value: JsonValue;
  readonly heldBack: number;
}

/** Filters an answer; `undefined` where the list is not where the filter says, so that nothing of it may be passed on. */
export type CompiledFilter = (value: JsonValue, lookups: Lookups) => Filtered | undefined;

/** Compiles a filter. Throws `ConditionFault` for a path or a condition that is none. */
export function compileFilter(source: FilterSource, resolve: ResolveField): CompiledFilter {
  const path = parsePath(source.each);
  if (!path.many) throw new ConditionFault(`\`${source.each}\` names no list`);
  const keep = compileConditions(source.keep, resolve);
  const { steps } = withEach(path);
  return (value, lookups) => filterAt(value, steps, 0, keep, lookups);
}

/**
 * Keeps the records for which every condition certainly holds: one that fails, or that nobody could judge, is held back.
 * A record whose own inner list cannot be found is held back whole.
 */
function filterAt(
  value: JsonValue,
  steps: Path['steps'],
  at: number,
  keep: CompiledConditions,
  lookups: Lookups,
): Filtered | undefined {
  const step = steps[at];
  if (step === undefined) return keep.judge(value, lookups).verdict === 'holds' ? { value, heldBack: 0 } : undefined;
  if (step === 'each') {
    // A list that is null has no records.
    if (value === null) return { value, heldBack: 0 };
    return isArray(value) ? filterList(value, steps, at + 1, keep, lookups) : undefined;
  }
  if (!isObject(value) || !Object.hasOwn(value, step.member)) return undefined;
  const member = value[step.member];
  const inner = member === undefined ? undefined : filterAt(member, steps, at + 1, keep, lookups);
  if (inner === undefined) return undefined;
  const { heldBack } = inner;
  return { value: inner.value === member ? value : withMember(value, step.member, inner.value), heldBack };
}

function filterList(
  list: readonly JsonValue[],
  steps: Path['steps'],
  at: number,
  keep: CompiledConditions,
  lookups: Lookups,
): Filtered {
  const kept: JsonValue[] = [];
  let heldBack = 0;
  for (const item of list) {
    const inner = filterAt(item, steps, at, keep, lookups);
    if (inner === undefined) heldBack += 1;
    else {
      kept.push(inner.value);
      heldBack += inner.heldBack;
    }
  }
  return { value: heldBack === 0 ? list : kept, heldBack };
}

/** The object with one member replaced, in the order in which they stood; `__proto__` stays a member like any other. */
function withMember(object: JsonObject, name: string, value: JsonValue): JsonObject {
  return Object.fromEntries(Object.entries(object).map(([key, member]) => [key, key === name ? value : member]));
}
