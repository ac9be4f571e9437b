import type { Answer } from './answer.ts';
import { ABSTAIN, joinAnswers, LOOP, worstAnswer } from './answer.ts';
import type { RecordFlow, RecordNode } from './record.ts';
import {
  afterMessage,
  afterStep,
  afterTurn,
  afterWhen,
  forkState,
  needsPerson,
  STATES,
  statesAfterCall,
} from './state.ts';
import type { Continuation, WalkContext } from './walk-context.ts';

/** A loop's answers rise in few rounds; what has not settled by then stays undecided. */
const MAX_ROUNDS = 64;

/** The walk of one flow under one continuation. */
export class FlowWalk {
  readonly #walk: WalkContext;
  readonly #index: number;
  readonly #flow: RecordFlow;
  readonly #after: Continuation;
  readonly #marks: Int32Array;
  readonly #answers: (Answer | undefined)[] = [];
  readonly #calls = new Map<number, Continuation>();
  readonly #undecided: Answer;

  constructor(walk: WalkContext, index: number, flow: RecordFlow, after: Continuation) {
    this.#walk = walk;
    this.#index = index;
    this.#flow = flow;
    this.#after = after;
    this.#marks = new Int32Array(flow.nodes.length);
    this.#undecided = { kind: 'undecided', flow: flow.name, line: flow.line };
  }

  answer(state: number): Answer {
    const { start } = this.#flow;
    if (((this.#marks[start] ?? 0) & (1 << state)) === 0) this.#settle(start, state);
    return this.#at(start, state);
  }

  #at(node: number, state: number): Answer {
    return this.#answers[node * STATES + state] ?? LOOP;
  }

  /** Marks every node and state that can follow, then answers them, successors first. */
  #settle(start: number, state: number): void {
    const marked = this.#mark(start, state);
    this.#calls.clear();
    if (!this.#flow.loops) {
      for (const node of marked) this.#answerNode(node);
      return;
    }
    for (let round = 0; round < MAX_ROUNDS; round += 1) {
      let changed = false;
      this.#calls.clear();
      for (const node of marked) changed = this.#answerNode(node) || changed;
      if (!changed) return;
    }
    for (const node of marked) {
      for (let one = 0; one < STATES; one += 1) this.#answers[node * STATES + one] = this.#undecided;
    }
  }

  #mark(start: number, state: number): readonly number[] {
    const waiting: number[] = [];
    const touched = new Set<number>();
    const add = (node: number, bits: number): void => {
      const fresh = bits & ~(this.#marks[node] ?? 0);
      if (fresh === 0) return;
      this.#marks[node] = (this.#marks[node] ?? 0) | fresh;
      touched.add(node);
      waiting.push(node, fresh);
    };
    add(start, 1 << state);
    while (waiting.length > 0) {
      const bits = waiting.pop() ?? 0;
      const at = waiting.pop() ?? 0;
      const node = this.#flow.nodes[at];
      if (node === undefined) continue;
      for (let one = 0; one < STATES; one += 1) {
        if ((bits & (1 << one)) !== 0) this.#markNext(at, node, one, add);
      }
    }
    // A flow with loops is answered anew as a whole, since an answer may rest on one that has changed.
    if (!this.#flow.loops) return [...touched].sort((left, right) => left - right);
    const all: number[] = [];
    for (const [node, bits] of this.#marks.entries()) if (bits !== 0) all.push(node);
    return all;
  }

  #markNext(at: number, node: RecordNode, state: number, add: (node: number, bits: number) => void): void {
    switch (node.op) {
      case 'exit':
      case 'stop':
      case 'answer':
      case 'recursion':
        return;
      case 'if':
        for (const to of this.#walk.live(this.#index, at, node)) add(to, 1 << state);
        return;
      case 'choose': {
        const next = node.person ? afterWhen(state) : state;
        for (const to of this.#choices(node)) add(to, 1 << next);
        return;
      }
      case 'say':
        if (node.role !== 'refuse') add(node.next, 1 << afterMessage(state, node.role === 'ask'));
        return;
      case 'execute':
        if (!this.#walk.executes(node.tool)) add(node.next, 1 << afterStep(state));
        return;
      case 'turn':
        add(node.next, 1 << afterTurn(state));
        return;
      case 'call':
        add(node.next, statesAfterCall(state));
        return;
      case 'fork':
        add(node.next, 1 << afterStep(state));
        return;
      case 'goto':
        add(node.next, 1 << state);
    }
  }

  /** The branches that can reach the tool, or all where none can. */
  #choices(node: Extract<RecordNode, { op: 'choose' }>): readonly number[] {
    const reaching = node.branches.filter((to) => this.#reaches(to));
    return reaching.length > 0 ? reaching : node.branches;
  }

  #reaches(node: number): boolean {
    const { hits, exits } = this.#walk.reach;
    if (hits[this.#index]?.[node] === 1) return true;
    return this.#after.reaches && exits[this.#index]?.[node] === 1;
  }

  /** Answers a node in every state marked for it; tells whether any answer changed in kind. */
  #answerNode(at: number): boolean {
    const node = this.#flow.nodes[at];
    if (node === undefined) return false;
    let changed = false;
    const bits = this.#marks[at] ?? 0;
    for (let state = 0; state < STATES; state += 1) {
      if ((bits & (1 << state)) === 0) continue;
      const place = at * STATES + state;
      const before = this.#answers[place];
      // An answer of a flow without loops is final once given.
      if (before !== undefined && !this.#flow.loops) continue;
      const answer = this.#walk.spend() ? this.#evaluate(at, node, state) : this.#undecided;
      if (before?.kind === answer.kind) continue;
      this.#answers[place] = answer;
      changed = true;
    }
    return changed;
  }

  #evaluate(at: number, node: RecordNode, state: number): Answer {
    const flow = this.#flow.name;
    switch (node.op) {
      case 'exit':
        return this.#after.answers[state] ?? this.#undecided;
      case 'stop': {
        const answer = this.#walk.endAnswer(state);
        if (answer !== ABSTAIN) return answer;
        return { kind: 'refuse', reason: node.word, because: undefined, flow, line: node.line };
      }
      case 'answer':
        return sheetAnswer(node, flow);
      case 'recursion':
        return { kind: 'undecided', flow, line: node.line };
      case 'if': {
        let answer: Answer = LOOP;
        for (const to of this.#walk.live(this.#index, at, node)) {
          answer = joinAnswers(answer, this.#at(to, state), flow, node.line);
        }
        return answer;
      }
      case 'choose': {
        const next = node.person ? afterWhen(state) : state;
        let answer: Answer = LOOP;
        for (const to of this.#choices(node)) answer = worstAnswer(answer, this.#at(to, next));
        return answer;
      }
      case 'say':
        if (node.role === 'refuse') {
          const because = node.text ?? undefined;
          return { kind: 'refuse', reason: node.name, because, flow, line: node.line };
        }
        return this.#spoken(node, this.#at(node.next, afterMessage(state, node.role === 'ask')));
      case 'execute':
        if (!this.#walk.executes(node.tool)) return this.#at(node.next, afterStep(state));
        if (!needsPerson(state)) return { kind: 'allow', flow, line: node.line };
        return { kind: 'confirm', question: undefined, because: undefined, flow, line: node.line };
      case 'turn':
        return this.#at(node.next, afterTurn(state));
      case 'call':
        return this.#walk.flow(node.flow, this.#continuation(at, node.next), state);
      case 'fork': {
        const next = this.#at(node.next, afterStep(state));
        const start = this.#walk.record.flows[node.flow]?.start ?? 0;
        if (this.#walk.reach.hits[node.flow]?.[start] !== 1) return next;
        return worstAnswer(next, this.#walk.flow(node.flow, this.#walk.end, forkState(state)));
      }
      case 'goto':
        return this.#at(node.next, state);
    }
  }

  /** A message gives its words to the answer that follows it without words of its own. */
  #spoken(node: Extract<RecordNode, { op: 'say' }>, answer: Answer): Answer {
    const flow = this.#flow.name;
    if (answer.kind === 'confirm' && answer.question === undefined && node.role === 'ask') {
      const line = answer.line === 0 ? node.line : answer.line;
      return { ...answer, question: node.text ?? node.name, flow: answer.line === 0 ? flow : answer.flow, line };
    }
    if (answer.kind === 'refuse' && answer.reason === undefined) {
      return { kind: 'refuse', reason: node.name, because: node.text ?? undefined, flow, line: node.line };
    }
    return answer;
  }

  #continuation(at: number, next: number): Continuation {
    const known = this.#calls.get(at);
    if (known !== undefined) return known;
    const bits = this.#marks[next] ?? 0;
    const answers = Array.from({ length: STATES }, (_none, state) =>
      (bits & (1 << state)) === 0 ? undefined : this.#at(next, state),
    );
    const continuation = this.#walk.continuation(answers, this.#reaches(next));
    this.#calls.set(at, continuation);
    return continuation;
  }
}

function sheetAnswer(node: Extract<RecordNode, { op: 'answer' }>, flow: string): Answer {
  const because = node.because ?? undefined;
  switch (node.decision) {
    case 'allow':
      return { kind: 'allow', flow, line: node.line };
    case 'confirm':
      return { kind: 'confirm', question: node.question ?? undefined, because, flow, line: node.line };
    case 'refuse':
      if (node.reason === null) return { kind: 'no_rule', flow, line: node.line };
      return { kind: 'refuse', reason: node.reason, because, flow, line: node.line };
  }
}
