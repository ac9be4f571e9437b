import type { JsonValue } from '../../receipts/json-value.ts';
import type { Condition, ConditionInputs } from './condition.ts';
import { evaluateCondition, factsIn } from './condition.ts';
import type { PreparedRulebook, RulebookDecision, RulebookInputs } from './decide.ts';
import { decideRulebook } from './decide.ts';
import type { Literal } from './expression-tree.ts';
import type { RecordNode, RulebookRecord } from './record.ts';

/** One line of the way that a decision took. */
interface ExplainedStep {
  readonly flow: string;
  readonly file: string;
  readonly line: number;
  /** What stands there and what came of it. */
  readonly what: string;
  /** How deep in calls the line stands. */
  readonly depth: number;
}

/** The facts that any rule of a record reads. */
export function factsOfRecord({ flows }: RulebookRecord): ReadonlySet<string> {
  const nodes = flows.flatMap((flow) => flow.nodes);
  const conditions = nodes.flatMap((node) => (node.op === 'if' ? node.branches.map(({ when }) => when) : []));
  return new Set(conditions.flatMap(factsIn));
}

/** A decision with the lines that led to it, one list for each flow that decides the tool. */
export interface Explanation {
  readonly decision: RulebookDecision;
  readonly flows: readonly { readonly flow: string; readonly file: string; readonly steps: readonly ExplainedStep[] }[];
}

/** A trace is for people: what is longer is cut. */
const MAX_STEPS = 200;

/** Decides a call and tells which flows decided it, by which lines and why. */
export function explainRulebook(prepared: PreparedRulebook, tool: string, inputs: RulebookInputs): Explanation {
  const decision = decideRulebook(prepared, tool, inputs);
  const plan = prepared.plan(tool);
  const flows = (plan?.entries ?? []).map((entry) => {
    const trace = new Trace(prepared, inputs, plan?.executes ?? (() => false));
    trace.flow(entry, 0);
    const flow = prepared.record.flows[entry];
    return { flow: flow?.name ?? '', file: flow?.file ?? '', steps: trace.steps };
  });
  return { decision, flows };
}

class Trace {
  readonly steps: ExplainedStep[] = [];
  readonly #prepared: PreparedRulebook;
  readonly #inputs: ConditionInputs;
  readonly #executes: (tool: string) => boolean;

  constructor(prepared: PreparedRulebook, inputs: ConditionInputs, executes: (tool: string) => boolean) {
    this.#prepared = prepared;
    this.#inputs = inputs;
    this.#executes = executes;
  }

  /** Follows a flow; false where nothing after it can run. Both sides of what is unknown are followed. */
  flow(index: number, depth: number): boolean {
    const flow = this.#prepared.record.flows[index];
    if (flow === undefined) return true;
    const seen = new Set<number>();
    const waiting = [flow.start];
    let returns = false;
    for (let at = waiting.pop(); at !== undefined; at = waiting.pop()) {
      const node = flow.nodes[at];
      if (node === undefined || seen.has(at) || this.steps.length > MAX_STEPS) continue;
      seen.add(at);
      const add = (what: string, line: number): void => {
        if (this.steps.length < MAX_STEPS) this.steps.push({ flow: flow.name, file: flow.file, line, what, depth });
        else if (this.steps.length === MAX_STEPS)
          this.steps.push({ flow: flow.name, file: flow.file, line, what: '…', depth });
      };
      if (node.op === 'exit') returns = true;
      for (const next of this.#follow(node, depth, add)) waiting.push(next);
    }
    return returns;
  }

  #follow(node: RecordNode, depth: number, add: (what: string, line: number) => void): readonly number[] {
    switch (node.op) {
      case 'if': {
        const targets: number[] = [];
        for (const branch of node.branches) {
          const truth = evaluateCondition(branch.when, this.#inputs);
          const said = truth === undefined ? 'cannot be known' : truth ? 'holds' : 'does not hold';
          add(`if ${renderCondition(branch.when)}: ${said}`, branch.line);
          if (truth !== false) targets.push(branch.to);
          if (truth === true) return targets.reverse();
        }
        targets.push(node.otherwise);
        return targets.reverse();
      }
      case 'choose':
        add(node.person ? 'when: a person chooses' : 'one of several', node.line);
        return [...node.branches].reverse();
      case 'say':
        add(`bot ${node.name}: ${SAYS[node.role]}`, node.line);
        return node.role === 'refuse' ? [] : [node.next];
      case 'execute':
        add(`execute ${node.tool}${this.#executes(node.tool) ? ': this call' : ''}`, node.line);
        return this.#executes(node.tool) ? [] : [node.next];
      case 'turn':
        add(`${node.name}: a person speaks`, node.line);
        return [node.next];
      case 'call':
      case 'fork': {
        add(
          `${node.op === 'call' ? 'calls' : 'starts'} ${this.#prepared.record.flows[node.flow]?.name ?? ''}`,
          node.line,
        );
        const returns = this.flow(node.flow, depth + 1);
        return returns || node.op === 'fork' ? [node.next] : [];
      }
      case 'recursion':
        add('calls itself: cannot be decided', node.line);
        return [];
      case 'goto':
        return [node.next];
      case 'exit':
        return [];
      case 'stop':
        add(node.word, node.line);
        return [];
      case 'answer':
        add(node.reason === null ? 'no row holds: refuse' : `${node.decision} (${node.reason})`, node.line);
        return [];
    }
  }
}

const SAYS = { refuse: 'refuses', ask: 'asks', tell: 'says' } as const;

/** A condition as it would be written in a rulebook. */
function renderCondition(condition: Condition): string {
  if (condition === null) return 'something unknown';
  if (typeof condition === 'boolean') return condition ? 'True' : 'False';
  if ('fact' in condition) return `$${condition.fact}`;
  if ('not' in condition) return `not ${renderPart(condition.not)}`;
  if ('and' in condition) return condition.and.map(renderPart).join(' and ');
  if ('or' in condition) return condition.or.map(renderPart).join(' or ');
  if ('check' in condition) return `check ${renderJson(condition.check)}`;
  const path = `$call.${condition.argument.join('.')}`;
  if ('by' in condition) return `${path} ${condition.by} ${renderValue(condition.to)}`;
  if ('holds' in condition) return `${renderValue(condition.holds)} ${condition.negated ? 'not in' : 'in'} ${path}`;
  return path;
}

function renderPart(condition: Condition): string {
  const compound = condition !== null && typeof condition === 'object' && ('and' in condition || 'or' in condition);
  return compound ? `(${renderCondition(condition)})` : renderCondition(condition);
}

function renderValue(value: Literal | readonly Literal[]): string {
  if (value === null) return 'None';
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  if (typeof value === 'string') return JSON.stringify(value);
  return 'number' in value ? value.number : `[${value.map(renderValue).join(', ')}]`;
}

function renderJson(value: JsonValue): string {
  return JSON.stringify(value, (_key, member: unknown) => (typeof member === 'bigint' ? member.toString() : member));
}
