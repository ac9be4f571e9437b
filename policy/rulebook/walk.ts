import type { Answer } from './answer.ts';
import { ABSTAIN } from './answer.ts';
import type { ConditionInputs } from './condition.ts';
import { evaluateCondition } from './condition.ts';
import { FlowWalk } from './flow-walk.ts';
import type { Reach } from './reach.ts';
import type { RecordNode, RulebookRecord } from './record.ts';
import { lastSaid, STATES } from './state.ts';
import type { Continuation, WalkContext } from './walk-context.ts';

/** One decision: the record, what the conditions read, and the memory of what has been walked. */
export class Walk implements WalkContext {
  readonly record: RulebookRecord;
  readonly reach: Reach;
  readonly executes: (tool: string) => boolean;
  readonly #inputs: ConditionInputs;
  readonly #flows = new Map<string, FlowWalk>();
  readonly #live: (Int32Array | undefined)[][] = [];
  readonly #identities = new Map<string, number>();
  readonly end: Continuation;
  #left: number;

  constructor(
    record: RulebookRecord,
    reach: Reach,
    executes: (tool: string) => boolean,
    inputs: ConditionInputs,
    budget: number,
  ) {
    this.record = record;
    this.reach = reach;
    this.executes = executes;
    this.#inputs = inputs;
    this.#left = budget;
    const answers = Array.from({ length: STATES }, (_none, state) => this.endAnswer(state));
    this.end = { answers, reaches: false, key: 'end' };
  }

  /** The answer of a flow that starts in `state` and goes on with `after`. */
  flow(index: number, after: Continuation, state: number): Answer {
    const key = `${index}:${after.key}`;
    let walk = this.#flows.get(key);
    if (walk === undefined) {
      const flow = this.record.flows[index];
      if (flow === undefined) return ABSTAIN;
      walk = new FlowWalk(this, index, flow, after);
      this.#flows.set(key, walk);
    }
    return walk.answer(state);
  }

  /** What becomes of a flow that ends, or whose caller ends, without the tool having been reached. */
  endAnswer(state: number): Answer {
    const said = lastSaid(state);
    if (said === 'nothing') return ABSTAIN;
    if (said === 'question' && !this.record.strict) {
      return { kind: 'confirm', question: undefined, because: undefined, flow: '', line: 0 };
    }
    return { kind: 'refuse', reason: undefined, because: undefined, flow: '', line: 0 };
  }

  /** The targets of an `if` that can be taken: up to the first condition that surely holds. */
  live(flow: number, at: number, node: Extract<RecordNode, { op: 'if' }>): Int32Array {
    let ofFlow = this.#live[flow];
    if (ofFlow === undefined) {
      ofFlow = [];
      this.#live[flow] = ofFlow;
    }
    const known = ofFlow[at];
    if (known !== undefined) return known;
    const targets: number[] = [];
    let decided = false;
    for (const branch of node.branches) {
      const truth = evaluateCondition(branch.when, this.#inputs);
      if (truth !== false) targets.push(branch.to);
      decided = truth === true;
      if (decided) break;
    }
    if (!decided) targets.push(node.otherwise);
    const live = Int32Array.from(targets);
    ofFlow[at] = live;
    return live;
  }

  /** Spends one step of the budget that keeps a decision linear; false once it is used up. */
  spend(): boolean {
    this.#left -= 1;
    return this.#left >= 0;
  }

  /** Equal continuations share what is walked under them. */
  continuation(answers: readonly (Answer | undefined)[], reaches: boolean): Continuation {
    const parts = answers.map((answer) => (answer === undefined ? '' : this.#identity(answer)));
    return { answers, reaches, key: `${reaches ? 1 : 0}|${parts.join(',')}` };
  }

  #identity(answer: Answer): number {
    const key = JSON.stringify(answer);
    let identity = this.#identities.get(key);
    if (identity === undefined) {
      identity = this.#identities.size;
      this.#identities.set(key, identity);
    }
    return identity;
  }
}
