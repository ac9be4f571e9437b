import type { JsonObject, JsonValue } from '../../receipts/json-value.ts';
import type { Answer } from './answer.ts';
import { LOOP, worstAnswer } from './answer.ts';
import type { ConditionInputs, Truth } from './condition.ts';
import type { Reach } from './reach.ts';
import { calleeOrder, calleesOf, reachOf } from './reach.ts';
import type { RulebookRecord } from './record.ts';
import { RECORD_FORMAT } from './record.ts';
import { LEADING, STATES } from './state.ts';
import { Walk } from './walk.ts';

/** What a rulebook says of a call. */
export type RulebookDecision =
  | { readonly kind: 'ungoverned' }
  | { readonly kind: 'allow'; readonly flow: string; readonly line: number }
  | {
      readonly kind: 'confirm';
      readonly question: string;
      readonly because?: string;
      readonly flow: string;
      readonly line: number;
    }
  | {
      readonly kind: 'refuse';
      /** What refused: one of the rulebook's own rules, or the lack of one that decides. */
      readonly code: RefusalCode;
      /** The refusing message's own name or a sheet's rule where the code is `rulebook_refused`, else the code. */
      readonly reason: string;
      readonly because?: string;
      readonly flow: string;
      readonly line: number;
    };

/** Why a rulebook refuses; the names of rules are the author's, so that only the code tells them from the others. */
type RefusalCode = 'rulebook_refused' | 'no_rule' | 'rulebook_undecided' | 'rulebook_unreached';

/** What a rulebook reads of a call. */
export interface RulebookInputs {
  /** Facts by name; a missing one is false. */
  readonly facts: Readonly<Record<string, boolean>>;
  /** The call's arguments. */
  readonly arguments: JsonObject;
  /** Evaluates a rule sheet's `check` cell; left out, such a row is undecided. */
  readonly check?: (condition: JsonValue, callArguments: JsonObject) => Truth;
}

/** The part of a record that concerns one tool. */
export interface ToolPlan {
  readonly entries: readonly number[];
  /** The entries and all that they call, each after its callees. */
  readonly flows: readonly number[];
  readonly reach: Reach;
  readonly executes: (tool: string) => boolean;
  /** How many steps a decision may take: linear in the nodes that concern the tool. */
  readonly budget: number;
}

/** The record's format is not one that this version decides with. */
export class RulebookRecordError extends Error {
  readonly code = 'rulebook_record_format';
}

const ANY_WORDS = 'a person must answer before this call';

/** A record made ready to decide: indexed by tool, each tool's part worked out when it is first asked for. */
export class PreparedRulebook {
  readonly record: RulebookRecord;
  /** The tools that the rulebook governs, as its rules name them. */
  readonly governed: ReadonlySet<string>;
  readonly #byTool = new Map<string, number[]>();
  readonly #callers: readonly (readonly number[])[];
  readonly #plans = new Map<string, ToolPlan>();

  constructor(record: RulebookRecord) {
    this.record = record;
    const callers: number[][] = record.flows.map(() => []);
    for (const [index, flow] of record.flows.entries()) {
      for (const callee of calleesOf(flow)) callers[callee]?.push(index);
      for (const node of flow.nodes) {
        if (node.op !== 'execute' && node.op !== 'answer') continue;
        const flows = this.#byTool.get(node.tool) ?? [];
        if (flows.at(-1) !== index) flows.push(index);
        this.#byTool.set(node.tool, flows);
      }
    }
    this.#callers = callers;
    this.governed = new Set(this.#byTool.keys());
  }

  /** The part of the record about a tool (`server/tool`, or bare), or undefined where no rule names it. */
  plan(tool: string): ToolPlan | undefined {
    const bare = bareName(tool);
    // Names that no rule gives as a pair share the bare name's plan, so that there are never more plans than rules.
    const named = this.governed.has(tool) ? tool : bare;
    if (!this.governed.has(named)) return undefined;
    let plan = this.#plans.get(named);
    if (plan === undefined) {
      plan = this.#makePlan(named, bare);
      this.#plans.set(named, plan);
    }
    return plan;
  }

  #makePlan(tool: string, bare: string): ToolPlan {
    const executes = (named: string): boolean => named === tool || named === bare;
    const upward = closure(
      [...(this.#byTool.get(tool) ?? []), ...(this.#byTool.get(bare) ?? [])],
      (index) => this.#callers[index] ?? [],
    );
    const { flows } = this.record;
    const roots = [...upward].filter((index) => flows[index]?.entry === true).sort((left, right) => left - right);
    const downward = closure(roots, (index) => calleesOf(flows[index]));
    const order = calleeOrder(
      flows,
      [...downward].sort((left, right) => left - right),
    );
    const reach = reachOf(this.record, order, executes);
    const entries = roots.filter((index) => reach.hits[index]?.[flows[index]?.start ?? 0] === 1);
    const nodes = order.reduce((sum, index) => sum + (flows[index]?.nodes.length ?? 0), 0);
    return { entries, flows: order, reach, executes, budget: 10_000 + nodes * STATES * 8 };
  }

  /** The first flow that executes a tool and the line where it does. */
  firstRule(tool: string): { flow: string; line: number } {
    const bare = bareName(tool);
    const index = (this.#byTool.get(tool) ?? this.#byTool.get(bare))?.[0];
    const flow = index === undefined ? undefined : this.record.flows[index];
    for (const node of flow?.nodes ?? []) {
      if (node.op === 'execute' && (node.tool === tool || node.tool === bare)) {
        return { flow: flow?.name ?? '', line: node.line };
      }
    }
    return { flow: flow?.name ?? '', line: flow?.line ?? 0 };
  }
}

/** `tool` of `server/tool`; a bare name is itself. */
function bareName(tool: string): string {
  return tool.slice(tool.indexOf('/') + 1);
}

function closure(start: readonly number[], next: (index: number) => readonly number[]): ReadonlySet<number> {
  const seen = new Set(start);
  for (const index of seen) for (const one of next(index)) seen.add(one);
  return seen;
}

/**
 * Makes a record ready to decide.
 * @throws RulebookRecordError where the record is of another format
 */
export function loadRecord(record: RulebookRecord): PreparedRulebook {
  if (record.format !== RECORD_FORMAT) {
    throw new RulebookRecordError(`the record's format is not \`${RECORD_FORMAT}\`; compile the rulebook again`);
  }
  return new PreparedRulebook(record);
}

/**
 * Decides a call of a tool by the rulebook alone. Pure; the cost is linear in the flows that concern the tool, whatever
 * else the record holds.
 * @param tool the tool as the catalogue has it, `server/tool`; a rule's bare name governs it on any server
 */
export function decideRulebook(prepared: PreparedRulebook, tool: string, inputs: RulebookInputs): RulebookDecision {
  const plan = prepared.plan(tool);
  if (plan === undefined) return { kind: 'ungoverned' };
  return finish(walkEntries(prepared, plan, inputs), prepared, tool);
}

/** The worst answer of the entries; with `facts: undefined`, as if nothing were known. */
export function walkEntries(prepared: PreparedRulebook, plan: ToolPlan, inputs: ConditionInputs): Answer {
  const walk = new Walk(prepared.record, plan.reach, plan.executes, inputs, plan.budget);
  let answer: Answer = LOOP;
  for (const entry of plan.entries) {
    answer = worstAnswer(answer, walk.flow(entry, walk.end, LEADING));
    if (answer.kind === 'refuse' || answer.kind === 'no_rule') break;
  }
  return answer;
}

function finish(answer: Answer, prepared: PreparedRulebook, tool: string): RulebookDecision {
  switch (answer.kind) {
    case 'loop':
    case 'abstain':
      return { kind: 'refuse', code: 'rulebook_unreached', reason: 'rulebook_unreached', ...prepared.firstRule(tool) };
    case 'undecided':
      return {
        kind: 'refuse',
        code: 'rulebook_undecided',
        reason: 'rulebook_undecided',
        flow: answer.flow,
        line: answer.line,
      };
    case 'allow':
      return { kind: 'allow', flow: answer.flow, line: answer.line };
    case 'confirm': {
      const { flow, line, because } = answer;
      const question = answer.question ?? ANY_WORDS;
      return because === undefined
        ? { kind: 'confirm', question, flow, line }
        : { kind: 'confirm', question, because, flow, line };
    }
    case 'no_rule':
      return { kind: 'refuse', code: 'no_rule', reason: 'no_rule', flow: answer.flow, line: answer.line };
    case 'refuse': {
      const { flow, line, because } = answer;
      const reason = answer.reason ?? 'refuse';
      const refusal = { kind: 'refuse', code: 'rulebook_refused', reason, flow, line } as const;
      return because === undefined ? refusal : { ...refusal, because };
    }
  }
}
