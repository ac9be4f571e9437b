import type { JsonObject, JsonValue } from '../../receipts/json-value.ts';

/** The operators of a condition, in the order in which they are documented. */
export const OPERATORS = [
  'is',
  'is_not',
  'one_of',
  'none_of',
  'at_least',
  'at_most',
  'under',
  'over',
  'between',
  'before',
  'after',
  'contains',
] as const;

export type Operator = (typeof OPERATORS)[number];

/** What a condition compares with: a value, a list, or where the value is read when the call comes. */
export type OperandSource = JsonValue | { readonly from?: string; readonly same?: string; readonly from_row?: string };

/** A condition as it is written (docs/configuration.md, `checks`). */
export interface ConditionSource extends Readonly<Partial<Record<Operator, OperandSource>>> {
  readonly field?: string;
  readonly total?: string;
  readonly count?: string;
  readonly any?: readonly ConditionSource[];
  readonly unknown?: 'pass';
  readonly because?: string;
}

/** A field of a tool's result: `{from: get_order.status}` after its names were resolved. */
export interface FieldSource {
  /** The pair. */
  readonly tool: string;
  /** Dotted path into the result; `[]` behind a name stands for each of a list. */
  readonly field: string;
}

/** What a tool answered earlier in the session, as far as rules read it. */
export interface ToolAnswer {
  /** The pair. */
  readonly tool: string;
  readonly step: number;
  /** Those of the call's own arguments that `same` names. */
  readonly arguments: JsonObject;
  /** Those members of the result that rules read; without a member whose value could not be read. */
  readonly result: JsonObject;
}

/** What conditions read beside the value that they stand on. */
export interface Lookups {
  /** The arguments of the call, for `same`. */
  readonly arguments: JsonObject;
  /** What tools answered in the session, newest first. */
  readonly answers: readonly ToolAnswer[];
}

/** What is counted, settled and held together, by bucket name; every bucket that was asked for is there. */
export type Usage = { readonly counted: ReadonlyMap<string, string> } | 'unknown';

/**
 * How a condition stands. `unknown` is not "no": somebody would have to guess. `detail` names the condition and the types
 * of the two values, never the values, for it is logged.
 */
export type Judgement =
  | { readonly verdict: 'holds' }
  | { readonly verdict: 'failed' | 'unknown'; readonly detail: JsonObject };

/** Conditions that must all hold, compiled once. A failed one wins over an unknown one. Never throws. */
export interface CompiledConditions {
  readonly judge: (subject: JsonValue, lookups: Lookups) => Judgement;
}

/** A condition that says nothing that could be judged. The loader tells the operator before anything is compiled. */
export class ConditionFault extends Error {
  readonly code = 'condition_form';
}

export const HOLDS: Judgement = { verdict: 'holds' };
