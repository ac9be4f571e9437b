import type { Scope } from './lower.ts';
import { lowerCondition } from './lower.ts';
import { isQuestion, messageRole } from './message.ts';
import { didYouMean, quoted } from './nearest.ts';
import type { Position, Problems } from './problem.ts';
import type { RecordNode } from './record.ts';
import { waitsForPerson } from './stubs.ts';
import type { Block, CallForm, FlowSyntax, Statement } from './syntax.ts';

/** What a name that is called stands for. */
export type Callee =
  | { readonly kind: 'flow'; readonly index: number; readonly consequential: boolean; readonly begins: boolean }
  | { readonly kind: 'stub' }
  | undefined;

/** What building one flow's graph needs to know of the others. */
export interface GraphContext {
  readonly scope: Scope;
  readonly problems: Problems;
  /** The example texts of a bot message. */
  readonly texts: (message: string) => readonly string[];
  /** Whether a 1.0 message must be defined, and is not. */
  readonly undefinedMessage: (message: string) => boolean;
  readonly callee: (name: string) => Callee;
  readonly flowNames: () => Iterable<string>;
  /** Whether a call leads back to the caller. */
  readonly recursive: (callee: number) => boolean;
}

interface Loop {
  readonly again: number;
  readonly after: number;
}

/** A flow's graph before it has its place in the record. */
export interface FlowGraph {
  readonly nodes: readonly RecordNode[];
  /** Where each node's statement stands; for problems, not for the record. */
  readonly positions: readonly Position[];
  readonly start: number;
  readonly loops: boolean;
}

/**
 * Builds a flow's graph from its last statement to its first, so that every node's successors exist before it: indices
 * rise against the direction of the walk, and only a loop leads to a higher one.
 */
export function buildGraph(flow: FlowSyntax, context: GraphContext): FlowGraph {
  return new GraphBuilder(flow, context).build();
}

class GraphBuilder {
  readonly #nodes: RecordNode[] = [];
  readonly #positions: Position[] = [];
  readonly #labels = new Map<string, number>();
  readonly #jumps: { node: number; name: string; at: Position }[] = [];
  readonly #flow: FlowSyntax;
  readonly #context: GraphContext;
  #loops = false;

  constructor(flow: FlowSyntax, context: GraphContext) {
    this.#flow = flow;
    this.#context = context;
  }

  build(): FlowGraph {
    const exit = this.#add({ op: 'exit', line: this.#flow.at.line }, this.#flow.at);
    const start = this.#block(this.#flow.body, exit, undefined);
    for (const jump of this.#jumps) {
      const target = this.#labels.get(jump.name);
      if (target === undefined) {
        this.#context.problems.error(
          'label_unknown',
          jump.at,
          `no \`label ${jump.name}\` stands in this flow${this.#near(jump.name, this.#labels.keys())}`,
        );
        continue;
      }
      this.#nodes[jump.node] = { op: 'goto', next: target, line: jump.at.line };
      if (target >= jump.node) this.#loops = true;
    }
    return { nodes: this.#nodes, positions: this.#positions, start, loops: this.#loops };
  }

  #add(node: RecordNode, at: Position): number {
    this.#nodes.push(node);
    this.#positions.push(at);
    return this.#nodes.length - 1;
  }

  #block(block: Block, after: number, loop: Loop | undefined): number {
    this.#warnUnreachable(block);
    let next = after;
    for (let index = block.length - 1; index >= 0; index -= 1) {
      const statement = block[index];
      if (statement !== undefined) next = this.#statement(statement, next, loop);
    }
    return next;
  }

  #warnUnreachable(block: Block): void {
    for (const [index, statement] of block.entries()) {
      const following = block[index + 1];
      if (following === undefined || !leaves(statement)) continue;
      // A label may be jumped to from anywhere in the flow.
      if (following.kind === 'label') continue;
      this.#context.problems.warn(
        'unreachable',
        following.at,
        'nothing reaches this statement; delete it or move it up',
      );
      return;
    }
  }

  #statement(statement: Statement, next: number, loop: Loop | undefined): number {
    const { at } = statement;
    const { line } = at;
    switch (statement.kind) {
      case 'turn':
        return this.#add({ op: 'turn', name: statement.name, line, next }, at);
      case 'say':
        return this.#say(statement.name, statement.text, statement.at, next);
      case 'execute':
        return this.#add({ op: 'execute', tool: statement.tool, line, next }, at);
      case 'call':
        return this.#call(statement.name, statement.form, statement.at, next);
      case 'if': {
        const otherwise = statement.otherwise === undefined ? next : this.#block(statement.otherwise, next, loop);
        const branches = statement.branches.map((branch) => ({
          when: lowerCondition(branch.condition, this.#context.scope, this.#context.problems),
          to: this.#block(branch.body, next, loop),
          line: branch.at.line,
        }));
        return this.#add({ op: 'if', branches, otherwise, line }, at);
      }
      case 'when': {
        const branches = statement.branches.map((branch) =>
          this.#block(branch.trigger, this.#block(branch.body, next, loop), loop),
        );
        return this.#add({ op: 'choose', person: true, branches, line }, at);
      }
      case 'choice': {
        const branches = statement.branches.map((branch) => this.#block(branch, next, loop));
        return this.#add({ op: 'choose', person: false, branches, line }, at);
      }
      case 'while': {
        const head = this.#add({ op: 'goto', next, line }, at);
        const body = this.#block(statement.body, head, { again: head, after: next });
        const when = lowerCondition(statement.condition, this.#context.scope, this.#context.problems);
        const test = this.#add({ op: 'if', branches: [{ when, to: body, line }], otherwise: next, line }, at);
        this.#nodes[head] = { op: 'goto', next: test, line };
        this.#loops = true;
        return test;
      }
      case 'leave':
        return this.#leave(statement, next, loop);
      case 'label': {
        const label = this.#add({ op: 'goto', next, line }, at);
        if (this.#labels.has(statement.name)) {
          this.#context.problems.error(
            'duplicate_label',
            at,
            `this flow has ${quoted(`label ${statement.name}`)} twice, so nobody can tell which one is meant; rename one`,
          );
        }
        this.#labels.set(statement.name, label);
        return label;
      }
      case 'goto': {
        const node = this.#add({ op: 'exit', line }, at);
        this.#jumps.push({ node, name: statement.name, at: statement.at });
        return node;
      }
      case 'nothing':
        return next;
    }
  }

  #leave(statement: Extract<Statement, { kind: 'leave' }>, next: number, loop: Loop | undefined): number {
    const { at } = statement;
    const { line } = at;
    switch (statement.word) {
      case 'break':
        return this.#add({ op: 'goto', next: loop?.after ?? next, line }, at);
      case 'continue':
        return this.#add({ op: 'goto', next: loop?.again ?? next, line }, at);
      case 'return':
        return this.#add({ op: 'exit', line }, at);
      case 'stop':
      case 'abort':
        return this.#add({ op: 'stop', word: statement.word, line }, at);
    }
  }

  #say(name: string, text: string | undefined, at: Position, next: number): number {
    const defined = this.#context.texts(name);
    if (text === undefined && this.#flow.version === '1.0' && this.#context.undefinedMessage(name)) {
      this.#context.problems.error(
        'message_undefined',
        at,
        `no \`define bot ${name}\` says what this message says; add one`,
      );
    }
    const texts = text === undefined ? defined : [text];
    const shown = texts.find(isQuestion) ?? texts[0] ?? null;
    return this.#add({ op: 'say', role: messageRole(name, texts), name, text: shown, line: at.line, next }, at);
  }

  /** What to write instead of a flow name that nothing defines. */
  #hint(name: string): string {
    if (name === 'bot') return '; in Colang 2.x write `bot say …`';
    if (name.startsWith('do ')) return `; in Colang 2.x write \`await ${name.slice(3)}\``;
    if (name === 'do') return '; in Colang 2.x write `await NAME`';
    if (name === 'set') return '; write `$NAME = …` to give a value';
    const [first = '', ...rest] = name.split(' ');
    if (rest.length > 0 && DOUBLED.has(first)) return `; \`${first}\` is too much here, write \`${rest.join(' ')}\``;
    return this.#near(name, this.#context.flowNames()) || '; define it, or import the file that does';
  }

  /** The nearest name, where anybody will read of it: looking costs as many comparisons as there are names. */
  #near(name: string, names: Iterable<string>): string {
    return this.#context.problems.hasRoom('error') ? didYouMean(name, names) : '';
  }

  #call(name: string, form: CallForm, at: Position, next: number): number {
    const { line } = at;
    const callee = this.#context.callee(name);
    if (callee === undefined || callee.kind === 'stub') {
      const waits = form !== 'start' && callee?.kind === 'stub' && waitsForPerson(name);
      if (form === 'user' || waits) return this.#add({ op: 'turn', name, line, next }, at);
      if (form === 'value') return next;
      const speaks = name.startsWith('bot ') || name.startsWith('user ');
      if (callee === undefined && !speaks) {
        this.#context.problems.error('unknown_flow', at, `no flow is named ${quoted(name)}${this.#hint(name)}`);
      }
      return next;
    }
    if (form === 'user' && !callee.consequential) return this.#add({ op: 'turn', name, line, next }, at);
    if (this.#context.recursive(callee.index)) {
      this.#context.problems.warn(
        'recursion',
        at,
        `${quoted(name)} leads back to this flow, so no call that depends on it can be decided; it is refused as undecided`,
      );
      return this.#add({ op: 'recursion', flow: callee.index, line, next }, at);
    }
    if (form === 'start') return this.#add({ op: 'fork', flow: callee.index, line, next }, at);
    const call = this.#add({ op: 'call', flow: callee.index, line, next }, at);
    if (form !== 'user' || callee.begins) return call;
    return this.#add({ op: 'turn', name, line, next: call }, at);
  }
}

/** Words that start a statement, and that people write once more inside one: `when await …`. */
const DOUBLED: ReadonlySet<string> = new Set(['activate', 'await', 'match', 'start']);

/** Whether nothing after a statement of its block can run. */
function leaves(statement: Statement): boolean {
  return statement.kind === 'leave' || statement.kind === 'goto';
}
