import assert from 'node:assert/strict';
import { test } from 'node:test';
import { compileRulebook } from '../../policy/rulebook/compile.ts';
import { decideRulebook, loadRecord } from '../../policy/rulebook/decide.ts';
import { threadMs } from '../thread-time.ts';
import { randomFrom } from './rulebook-fuzz.ts';

/**
 * A second, naive reading of the rules: it runs the statements themselves, path by path, with no graph, no memory of
 * what was walked and no cleverness, and must agree with the compiled record on every random rulebook.
 */
type Statement =
  | { readonly op: 'turn' }
  | { readonly op: 'say'; readonly name: string }
  | { readonly op: 'execute'; readonly tool: string }
  | { readonly op: 'if'; readonly when: string; readonly body: Body; readonly otherwise: Body | undefined }
  | { readonly op: 'when'; readonly branches: readonly Body[] }
  | { readonly op: 'do'; readonly flow: number }
  | { readonly op: 'return' | 'stop' };
type Body = readonly Statement[];

interface Way {
  readonly trigger: 'leads' | 'waits' | 'had';
  readonly person: boolean;
  readonly question: string | undefined;
  readonly last: { readonly name: string; readonly asks: boolean } | undefined;
}

interface After {
  readonly go: (way: Way) => string;
  readonly hits: boolean;
}

const TOOL = 't';
const ROLES: Readonly<Record<string, 'refuse' | 'ask' | 'tell'>> = {
  'refuse it': 'refuse',
  'inform cannot': 'refuse',
  'ask one': 'ask',
  'confirm two': 'ask',
  'inform a': 'tell',
  'express b': 'tell',
};

class Naive {
  readonly #subflows: readonly Body[];
  readonly #facts: Readonly<Record<string, boolean>>;
  readonly #strict: boolean;
  steps = 0;

  constructor(subflows: readonly Body[], facts: Readonly<Record<string, boolean>>, strict: boolean) {
    this.#subflows = subflows;
    this.#facts = facts;
    this.#strict = strict;
  }

  decide(flows: readonly Body[]): string {
    const end: After = { go: (way) => this.#end(way, undefined), hits: false };
    const start: Way = { trigger: 'leads', person: false, question: undefined, last: undefined };
    const answers = flows
      .filter((flow) => this.#reach(flow, false, false))
      .map((flow) => this.#run(flow, start, end, end))
      .filter((answer) => answer !== 'abstain');
    return worst(answers) ?? 'refuse rulebook_unreached';
  }

  #end(way: Way, word: string | undefined): string {
    if (way.last?.asks === true && !this.#strict) return `confirm ${way.last.name}`;
    if (way.last !== undefined) return `refuse ${way.last.name}`;
    return word === undefined ? 'abstain' : `refuse ${word}`;
  }

  #run(body: Body, way: Way, after: After, returned: After): string {
    this.steps += 1;
    const [statement, ...rest] = body;
    if (statement === undefined) return after.go(way);
    const next: After = {
      go: (later) => this.#run(rest, later, after, returned),
      hits: this.#reach(rest, after.hits, returned.hits),
    };
    const moved: Way = way.trigger === 'leads' ? { ...way, trigger: 'waits' } : way;
    switch (statement.op) {
      case 'turn':
        return next.go(way.trigger === 'had' ? { ...way, person: true } : { ...way, trigger: 'had' });
      case 'say': {
        const { name } = statement;
        const role = ROLES[name];
        if (role === 'refuse') return `refuse ${name}`;
        const asks = role === 'ask';
        const question = asks ? name : way.question;
        return next.go({ ...moved, person: way.person || asks, question, last: { name, asks } });
      }
      case 'execute':
        if (statement.tool !== TOOL) return next.go(moved);
        return way.person ? `confirm ${way.question ?? 'person'}` : 'allow';
      case 'if': {
        const otherwise = (): string => this.#run(statement.otherwise ?? [], way, next, returned);
        const then = (): string => this.#run(statement.body, way, next, returned);
        if (statement.when === 'unknown') return join(then(), otherwise());
        return this.#facts[statement.when] === true ? then() : otherwise();
      }
      case 'when': {
        const taken: Way = { ...way, trigger: 'had', person: way.person || way.trigger !== 'leads' };
        const reaching = statement.branches.filter((branch) => this.#reach(branch, next.hits, returned.hits));
        const chosen = reaching.length > 0 ? reaching : statement.branches;
        return worst(chosen.map((branch) => this.#run(branch, taken, next, returned))) ?? 'abstain';
      }
      case 'do':
        return this.#run(this.#subflows[statement.flow] ?? [], way, next, next);
      case 'return':
        return returned.go(way);
      case 'stop':
        return this.#end(way, 'stop');
    }
  }

  /** Whether executing the tool can follow, whatever is said on the way. */
  #reach(body: Body, after: boolean, returned: boolean): boolean {
    const [statement, ...rest] = body;
    if (statement === undefined) return after;
    const next = (): boolean => this.#reach(rest, after, returned);
    switch (statement.op) {
      case 'execute':
        return statement.tool === TOOL || next();
      case 'if':
        return (
          this.#reach(statement.body, next(), returned) || this.#reach(statement.otherwise ?? [], next(), returned)
        );
      case 'when':
        return statement.branches.some((branch) => this.#reach(branch, next(), returned));
      case 'do':
        return this.#reach(this.#subflows[statement.flow] ?? [], next(), next());
      case 'return':
        return returned;
      case 'stop':
        return false;
      default:
        return next();
    }
  }
}

function kindOf(answer: string): string {
  return answer.split(' ')[0] ?? '';
}

function join(left: string, right: string): string {
  const [one, other] = [kindOf(left), kindOf(right)];
  if (one === other) return left;
  if (one === 'allow' && other === 'confirm') return right;
  return one === 'confirm' && other === 'allow' ? left : 'undecided';
}

function worst(answers: readonly string[]): string | undefined {
  for (const kind of ['refuse', 'undecided', 'confirm', 'allow', 'abstain']) {
    const found = answers.find((answer) => kindOf(answer) === kind);
    if (found !== undefined) return found;
  }
  return undefined;
}

function randomBody(random: () => number, depth: number, firstCallee: number): Body {
  const statements: Statement[] = [];
  const length = 1 + Math.floor(random() * 3);
  for (let index = 0; index < length; index += 1) {
    const kind = random();
    const names = Object.keys(ROLES);
    if (kind < 0.15) statements.push({ op: 'turn' });
    else if (kind < 0.35)
      statements.push({ op: 'say', name: names[Math.floor(random() * names.length)] ?? 'inform a' });
    else if (kind < 0.55) statements.push({ op: 'execute', tool: random() < 0.8 ? TOOL : 'u' });
    else if (kind < 0.75 && depth > 0) {
      const when = ['a', 'b', 'unknown'][Math.floor(random() * 3)] ?? 'a';
      const otherwise = random() < 0.6 ? randomBody(random, depth - 1, firstCallee) : undefined;
      statements.push({ op: 'if', when, body: randomBody(random, depth - 1, firstCallee), otherwise });
    } else if (kind < 0.84 && depth > 0) {
      const branches = Array.from({ length: 1 + Math.floor(random() * 3) }, () =>
        randomBody(random, depth - 1, firstCallee),
      );
      statements.push({ op: 'when', branches });
    } else if (kind < 0.94 && firstCallee < 3) {
      statements.push({ op: 'do', flow: firstCallee + Math.floor(random() * (3 - firstCallee)) });
    } else if (kind > 0.95) statements.push({ op: random() < 0.5 ? 'return' : 'stop' });
  }
  return statements.length > 0 ? statements : [{ op: 'turn' }];
}

function written(body: Body, indent: string): string {
  return body
    .map((statement) => {
      switch (statement.op) {
        case 'turn':
          return `${indent}user speak\n`;
        case 'say':
          return `${indent}bot ${statement.name}\n`;
        case 'execute':
          return `${indent}execute ${statement.tool}\n`;
        case 'if': {
          const when = statement.when === 'unknown' ? 'len($x) > 1' : `$${statement.when}`;
          const otherwise =
            statement.otherwise === undefined ? '' : `${indent}else\n${written(statement.otherwise, `${indent}  `)}`;
          return `${indent}if ${when}\n${written(statement.body, `${indent}  `)}${otherwise}`;
        }
        case 'when':
          return statement.branches
            .map(
              (branch, index) =>
                `${indent}${index === 0 ? '' : 'else '}when user choose\n${written(branch, `${indent}  `)}`,
            )
            .join('');
        case 'do':
          return `${indent}do sub ${statement.flow}\n`;
        default:
          return `${indent}${statement.op}\n`;
      }
    })
    .join('');
}

test('the record decides as a naive reading of the statements does', () => {
  const started = threadMs();
  const seen = new Map<string, number>();
  for (let seed = 1; seed <= 20_000 && threadMs() - started < 2000; seed += 1) {
    const random = randomFrom(seed);
    const subflows = [0, 1, 2].map((index) => randomBody(random, 2, index + 1));
    const flows = Array.from({ length: 1 + Math.floor(random() * 3) }, () => randomBody(random, 3, 0));
    const text = [
      ...flows.map((flow, index) => `define flow f ${index}\n${written(flow, '  ')}`),
      ...subflows.map((flow, index) => `define subflow sub ${index}\n${written(flow, '  ')}`),
    ].join('\n');
    const strict = random() < 0.2;
    // Strict would ask for every message to be defined, which has nothing to do with how calls are decided.
    const messages = strict ? Object.keys(ROLES).map((name) => `define bot ${name}\n  "${name}"\n`) : [];
    const { record, problems } = compileRulebook([{ file: 'p.co', text: text + messages.join('') }], { strict });
    assert.ok(record, `seed ${seed}: ${JSON.stringify(problems)}\n${text}`);
    const prepared = loadRecord(record);
    if (!prepared.governed.has(TOOL)) continue;
    for (const facts of [{}, { a: true }, { b: true }, { a: true, b: true }]) {
      const naive = new Naive(subflows, facts, strict);
      const expected = naive.decide(flows);
      if (naive.steps > 20_000) continue;
      const decision = decideRulebook(prepared, TOOL, { facts, arguments: {} });
      assert.equal(
        shown(decision),
        expected,
        `seed ${seed}, facts ${JSON.stringify(facts)}, strict ${strict}\n${text}`,
      );
      seen.set(kindOf(expected), (seen.get(kindOf(expected)) ?? 0) + 1);
    }
  }
  for (const kind of ['allow', 'confirm', 'refuse', 'undecided']) {
    assert.ok((seen.get(kind) ?? 0) > 20, `${kind}: ${seen.get(kind) ?? 0}`);
  }
});

function shown(decision: ReturnType<typeof decideRulebook>): string {
  if (decision.kind === 'confirm') {
    return `confirm ${decision.question === 'a person must answer before this call' ? 'person' : decision.question}`;
  }
  if (decision.kind !== 'refuse') return decision.kind;
  return decision.reason === 'rulebook_undecided' ? 'undecided' : `refuse ${decision.reason}`;
}
