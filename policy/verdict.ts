import type { Decision } from '../receipts/history.ts';
import type { JsonObject } from '../receipts/json-value.ts';
import type { Call, Snapshot } from './call.ts';
import type { ReasonCode, ReasonText } from './reasons.ts';
import type { Tool } from './tool.ts';

/** What a step answers, and with it the check. */
export interface StepAnswer {
  readonly decision: Decision;
  /** At least one; the first is the `reason`. */
  readonly reasons: readonly ReasonText[];
  readonly pointer?: string;
  readonly detail?: JsonObject;
  /** Reasons that the operator's words waived. */
  readonly waived?: readonly ReasonText[];
}

/** One row of the table of steps. */
export interface Step {
  readonly name: string;
  /** What it checks, for the reference table. */
  readonly checks: string;
  /** What the row decides wherever it answers. */
  readonly answers: Decision;
  readonly reasons: readonly ReasonCode[];
  /** Answers, or leaves the call to the next row. A throw refuses the call. */
  readonly run: (snapshot: Snapshot, call: Call, work: Work) => StepAnswer | undefined;
}

/** What earlier rows found out and later rows build on, in one check. */
export class Work {
  #tool: Tool | undefined;
  /** The agent that the call speaks for; empty until row 1 has settled it. */
  agent = '';
  /** Sorted union of the call's labels and those that the gateway adds. */
  labels: readonly string[] = [];
  /** Row 6 bound the call to the step that it undoes. */
  undoBound = false;
  /** What the rulebook asks a person, from row 8. */
  question: { readonly question: string; readonly detail: JsonObject } | undefined;
  /** Why a presented confirmation does not cover the call, from row 10. */
  confirmation: string | undefined;

  /** The tool that row 1 found. Throws before that, so that a table without row 1 refuses. */
  get tool(): Tool {
    if (this.#tool === undefined) throw new Error('no step has found the tool of the call');
    return this.#tool;
  }

  set tool(tool: Tool) {
    this.#tool = tool;
  }

  /** The tool, where row 1 got as far as finding it. */
  get foundTool(): Tool | undefined {
    return this.#tool;
  }
}

/** The answer of a whole check. */
export interface Verdict extends StepAnswer {
  /** Name of the row that answered. */
  readonly step: string;
  /** The tool that was found; absent where row 1 refused. */
  readonly tool: Tool | undefined;
  readonly agent: string;
  readonly labels: readonly string[];
  /** The error that made the check refuse `internal_error`. */
  readonly error?: unknown;
}

/** A refusal with one reason. */
export function refuse(reason: ReasonText, detail?: JsonObject, pointer?: string): StepAnswer {
  return {
    decision: 'refuse',
    reasons: [reason],
    ...(detail === undefined ? {} : { detail }),
    ...(pointer === undefined ? {} : { pointer }),
  };
}
