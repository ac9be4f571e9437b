import type { Operator } from './colang2-emit.ts';
import type { Spec } from './colang2-spec.ts';
import { quoted } from './nearest.ts';
import type { Problems } from './problem.ts';
import type { Block } from './syntax.ts';

type One = Extract<Spec, { kind: 'one' }>;

/**
 * The flows that a flow has started, for what it waits for later: `start guard as $g`, then `match $g.Finished()`, waits for
 * the flow as `await guard` does, and goes no further than the flow lets it.
 */
export class StartedFlows {
  readonly #names = new Set<string>();
  readonly #references = new Map<string, string>();
  readonly #problems: Problems;

  constructor(problems: Problems) {
    this.#problems = problems;
  }

  /** Notes what a statement starts. */
  note(operator: Operator, spec: Spec): void {
    if (operator !== 'start' && operator !== 'activate') return;
    for (const one of alternatives(spec, true)) {
      if (!isFlow(one) || one.member !== undefined) continue;
      this.#names.add(one.name);
      if (one.capture !== undefined) this.#references.set(one.capture, one.name);
    }
  }

  /** The flows whose end a `match` waits for. Of alternatives nobody knows which comes. */
  finished(spec: Spec): Block {
    const calls: Block[number][] = [];
    for (const one of alternatives(spec, true)) {
      if (!isFlow(one) || one.member !== undefined) continue;
      const message = `\`match\` waits for an event; to wait for a flow write \`await\` before ${quoted(one.name)}`;
      this.#problems.error('statement_unknown', one.at, message);
    }
    for (const one of alternatives(spec, false)) {
      const named = one.reference === undefined ? one.name : this.#references.get(one.reference);
      if (one.member !== 'Finished' || named === undefined || !this.#names.has(named)) continue;
      calls.push({ kind: 'call', name: named, form: 'await', at: one.at });
    }
    return calls;
  }
}

/** The parts of a spec, those of which only one counts too where `every` says so. */
function* alternatives(spec: Spec, every: boolean): Generator<One> {
  if (spec.kind === 'one') yield spec;
  else if (spec.kind === 'and' || every) for (const part of spec.parts) yield* alternatives(part, every);
}

/** A name in lower case, and none of a person or the bot, whose lines are events as much as flows. */
function isFlow({ name }: One): boolean {
  return /^[\p{Ll}_]/u.test(name) && !/^(?:user|bot|execute)(?: |$)/.test(name);
}
