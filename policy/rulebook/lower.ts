import type { Condition } from './condition.ts';
import type { Comparison, Expression, Literal } from './expression-tree.ts';
import type { Line } from './line.ts';
import { positionAt } from './line.ts';
import type { Position, Problems } from './problem.ts';

/** What a name means where a condition stands. */
export interface Scope {
  /** Where a name is assigned, captured or declared as a parameter; undefined for a fact. */
  readonly assigned: (name: string) => Position | undefined;
}

/** A condition as written, with the line that its offsets count in. */
export interface Written {
  readonly expression: Expression;
  readonly line: Line;
}

const FLIPPED: Readonly<Record<Comparison, Comparison | undefined>> = {
  '==': '==',
  '!=': '!=',
  '<': '>',
  '<=': '>=',
  '>': '<',
  '>=': '<=',
  in: undefined,
  'not in': undefined,
};

/**
 * Turns a written condition into one that the record carries. Whatever nobody can know at a call becomes unknown, and
 * is warned of: an unknown condition walks both sides, which mostly refuses.
 */
export function lowerCondition(written: Written, scope: Scope, problems: Problems): Condition {
  return new Lowering(written.line, scope, problems).lower(written.expression);
}

class Lowering {
  readonly #line: Line;
  readonly #scope: Scope;
  readonly #problems: Problems;

  constructor(line: Line, scope: Scope, problems: Problems) {
    this.#line = line;
    this.#scope = scope;
    this.#problems = problems;
  }

  lower(expression: Expression): Condition {
    switch (expression.kind) {
      case 'and':
        return { and: expression.parts.map((part) => this.lower(part)) };
      case 'or':
        return { or: expression.parts.map((part) => this.lower(part)) };
      case 'not': {
        const of = this.lower(expression.of);
        return typeof of === 'boolean' ? !of : of === null ? null : { not: of };
      }
      case 'literal':
        return literalTruth(expression.value);
      case 'list':
        return expression.items.length > 0;
      case 'opaque':
        return this.#unknown(expression.at, `${expression.what} cannot be known when a call is decided`);
      case 'path':
        return this.#path(expression.path, expression.at);
      case 'compare':
        return this.#compare(expression.by, expression.word, expression.left, expression.right, expression.at);
    }
  }

  #path(path: readonly string[], at: number): Condition {
    const [first = '', ...rest] = path;
    if (first === 'call') {
      if (rest.length > 0) return { argument: rest };
      return this.#unknown(at, '`$call` alone says nothing; name an argument, as in `$call.amount`');
    }
    if (this.#isAssigned(first, at)) return null;
    return { fact: path.join('.') };
  }

  #compare(by: Comparison, word: string, left: Expression, right: Expression, at: number): Condition {
    if (left.kind === 'path' && right.kind === 'literal') return this.#pathWith(left.path, by, word, right.value, at);
    if (left.kind === 'path' && right.kind === 'list') return this.#pathWith(left.path, by, word, right.items, at);
    if (left.kind === 'literal' && right.kind === 'path') {
      const flipped = FLIPPED[by];
      if (flipped !== undefined) return this.#pathWith(right.path, flipped, word, left.value, at);
      const [first = '', ...rest] = right.path;
      if (first === 'call' && rest.length > 0) return { argument: rest, holds: left.value, negated: by === 'not in' };
      if (this.#isAssigned(first, at)) return null;
    }
    if (left.kind === 'path' && this.#isAssigned(left.path[0] ?? '', at)) return null;
    if (right.kind === 'path' && this.#isAssigned(right.path[0] ?? '', at)) return null;
    return this.#unknown(
      at,
      'only a fact or an argument compared with a plain value can be known when a call is decided',
    );
  }

  #pathWith(
    path: readonly string[],
    by: Comparison,
    word: string,
    to: Literal | readonly Literal[],
    at: number,
  ): Condition {
    const [first = '', ...rest] = path;
    if (first === 'call' && rest.length > 0) {
      if ((by === 'in' || by === 'not in') && !Array.isArray(to) && typeof to !== 'string') {
        return this.#unknown(at, `\`${word}\` needs a list or a text on its right`);
      }
      if (by !== '==' && by !== '!=' && by !== 'in' && by !== 'not in' && !isNumeric(to)) {
        return this.#unknown(at, `\`${word}\` compares numbers alone`);
      }
      return { argument: rest, by, to };
    }
    if (this.#isAssigned(first, at)) return null;
    if (word === '==' && typeof to === 'boolean') {
      const fact: Condition = { fact: path.join('.') };
      return to ? fact : { not: fact };
    }
    const name = path.join('.');
    return this.#unknown(
      at,
      `\`$${name}\` is a fact, true or false; write \`$${name}\`, \`not $${name}\` or \`== true\``,
    );
  }

  #isAssigned(name: string, at: number): boolean {
    const where = this.#scope.assigned(name);
    if (where === undefined) return false;
    this.#problems.warn(
      'assigned_fact',
      positionAt(this.#line, at),
      `\`$${name}\` gets its value in the rulebook (line ${where.line} of ${where.file}), so it is no fact and stays unknown; give the fact another name`,
    );
    return true;
  }

  #unknown(at: number, why: string): null {
    this.#problems.warn('condition_unknown', positionAt(this.#line, at), `${why}; both branches count`);
    return null;
  }
}

function isNumeric(to: Literal | readonly Literal[]): boolean {
  return to !== null && typeof to === 'object' && !Array.isArray(to);
}

function literalTruth(value: Literal): boolean {
  if (value === null) return false;
  if (typeof value === 'boolean') return value;
  if (typeof value === 'string') return value !== '';
  return Number(value.number) !== 0;
}
