import { comparedText, isDecimal, plainName } from './compared.ts';
import type { Comparison, Expression } from './expression-tree.ts';
import {
  ARITHMETIC,
  CLOSES,
  CONSTANTS,
  INSTEAD,
  isNumber,
  literalItems,
  negated,
  ORDER,
  orderOf,
} from './expression-tree.ts';
import { quoted } from './nearest.ts';
import { MAX_NESTING } from './outline.ts';
import { SyntaxFault } from './syntax-fault.ts';
import type { Token } from './token.ts';
import { stringValue } from './token.ts';

/** Recursive descent over the tokens of one condition, or of a value that nothing is compared with. */
export class ExpressionParser {
  readonly #tokens: readonly Token[];
  readonly #end: number;
  readonly #compares: boolean;
  #next = 0;
  #depth = 0;

  constructor(tokens: readonly Token[], end: number, compares: boolean) {
    this.#tokens = tokens;
    this.#end = end;
    this.#compares = compares;
  }

  parse(): Expression {
    const expression = this.#or();
    const rest = this.#tokens[this.#next];
    if (rest !== undefined) this.#unexpected(rest);
    return expression;
  }

  #or(): Expression {
    return this.#chain('or', () => this.#and());
  }

  #and(): Expression {
    return this.#chain('and', () => this.#not());
  }

  #chain(kind: 'and' | 'or', part: () => Expression): Expression {
    const first = part();
    if (!this.#isName(kind)) return first;
    const parts = [first];
    while (this.#isName(kind)) {
      this.#next += 1;
      parts.push(part());
    }
    return { kind, parts, at: first.at };
  }

  #not(): Expression {
    const token = this.#tokens[this.#next];
    if (token === undefined || !this.#isName('not')) return this.#comparison();
    this.#next += 1;
    return this.#nested(token.at, () => ({ kind: 'not', of: this.#not(), at: token.at }));
  }

  #comparison(): Expression {
    const left = this.#arithmetic();
    const operator = this.#comparisonOperator();
    if (operator === undefined) return left;
    const right = this.#arithmetic();
    const again = this.#comparisonOperator();
    if (again !== undefined) {
      this.#arithmetic();
      while (this.#comparisonOperator() !== undefined) this.#arithmetic();
      return { kind: 'opaque', what: 'a chain of comparisons', at: left.at };
    }
    return { kind: 'compare', by: operator.by, word: operator.word, left, right, at: left.at };
  }

  #comparisonOperator(): { by: Comparison; word: string } | undefined {
    const token = this.#tokens[this.#next];
    if (token === undefined) return undefined;
    const instead = token.kind === 'symbol' ? INSTEAD.get(token.text) : undefined;
    if (instead !== undefined)
      throw new SyntaxFault('condition_syntax', token.at, `\`${token.text}\` is not an operator here; ${instead}`);
    if (token.kind === 'symbol' && ORDER.has(token.text)) {
      this.#next += 1;
      return { by: orderOf(token.text), word: token.text };
    }
    if (this.#isName('is')) {
      this.#next += 1;
      if (!this.#isName('not')) return { by: '==', word: 'is' };
      this.#next += 1;
      return { by: '!=', word: 'is not' };
    }
    if (this.#isName('in')) {
      this.#next += 1;
      return { by: 'in', word: 'in' };
    }
    const after = this.#tokens[this.#next + 1];
    if (this.#isName('not') && after?.kind === 'name' && after.text === 'in') {
      this.#next += 2;
      return { by: 'not in', word: 'not in' };
    }
    return undefined;
  }

  #arithmetic(): Expression {
    const left = this.#unary();
    let opaque: Expression | undefined;
    for (;;) {
      const token = this.#tokens[this.#next];
      if (token === undefined || token.kind !== 'symbol' || !ARITHMETIC.has(token.text)) return opaque ?? left;
      this.#next += 1;
      this.#unary();
      opaque = { kind: 'opaque', what: 'arithmetic', at: left.at };
    }
  }

  #unary(): Expression {
    const token = this.#tokens[this.#next];
    if (token?.kind !== 'symbol' || !['-', '+', '~'].includes(token.text)) return this.#postfix();
    this.#next += 1;
    const operand = this.#nested(token.at, () => this.#unary());
    if (token.text === '-' && operand.kind === 'literal' && isNumber(operand.value)) {
      return { kind: 'literal', value: { number: negated(operand.value.number) }, at: token.at };
    }
    return { kind: 'opaque', what: 'arithmetic', at: token.at };
  }

  #postfix(): Expression {
    let base = this.#atom();
    for (;;) {
      const token = this.#tokens[this.#next];
      const after = this.#tokens[this.#next + 1];
      if (token?.text === '.' && token.kind === 'symbol') {
        if (after?.kind !== 'name')
          throw new SyntaxFault('condition_syntax', token.at, 'a `.` must be followed by a name');
        this.#next += 2;
        base =
          base.kind === 'path'
            ? { kind: 'path', path: [...base.path, plainName(after, after.text)], at: base.at }
            : { kind: 'opaque', what: 'a field of a computed value', at: base.at };
      } else if (token?.text === '(' && token.kind === 'symbol') {
        this.#skipGroup(token);
        base = { kind: 'opaque', what: 'a call', at: base.at };
      } else if (token?.text === '[' && token.kind === 'symbol') {
        this.#skipGroup(token);
        base = { kind: 'opaque', what: 'an index', at: base.at };
      } else {
        return base;
      }
    }
  }

  #atom(): Expression {
    const token = this.#tokens[this.#next];
    if (token === undefined)
      throw new SyntaxFault('condition_syntax', this.#end, 'the condition ends too early; write what is compared');
    switch (token.kind) {
      case 'variable':
        this.#next += 1;
        return { kind: 'path', path: [plainName(token, token.text.slice(1))], at: token.at };
      case 'string':
        this.#next += 1;
        return { kind: 'literal', value: this.#compares ? comparedText(token) : stringValue(token.text), at: token.at };
      case 'number':
        if (this.#compares ? !isDecimal(token.text) : Number.isNaN(Number(token.text))) {
          const message = `${quoted(token.text)} is not a number; write it in decimal digits`;
          throw new SyntaxFault('condition_syntax', token.at, message);
        }
        this.#next += 1;
        return { kind: 'literal', value: { number: token.text }, at: token.at };
      case 'name':
        return this.#name(token);
      case 'symbol':
        return this.#symbol(token);
    }
  }

  #name(token: Token): Expression {
    const constant = CONSTANTS.get(token.text);
    if (constant !== undefined) {
      this.#next += 1;
      return { kind: 'literal', value: constant, at: token.at };
    }
    const after = this.#tokens[this.#next + 1];
    if (after?.kind === 'symbol' && after.text === '(') {
      this.#next += 1;
      return { kind: 'opaque', what: 'a call', at: token.at };
    }
    throw new SyntaxFault(
      'condition_syntax',
      token.at,
      `\`${token.text}\` is neither a fact nor a value; write \`$${token.text}\` for a fact`,
    );
  }

  #symbol(token: Token): Expression {
    if (token.text === '(') {
      this.#next += 1;
      const inner = this.#nested(token.at, () => this.#or());
      const close = this.#tokens[this.#next];
      if (close?.text !== ')' || close.kind !== 'symbol') {
        throw new SyntaxFault('condition_syntax', token.at, 'this `(` is never closed; add `)`');
      }
      this.#next += 1;
      return inner;
    }
    if (token.text === '[') {
      const from = this.#next;
      this.#skipGroup(token);
      const items = this.#compares ? literalItems(this.#tokens.slice(from + 1, this.#next - 1)) : undefined;
      return items === undefined
        ? { kind: 'opaque', what: 'a list', at: token.at }
        : { kind: 'list', items, at: token.at };
    }
    if (token.text === '{') {
      this.#skipGroup(token);
      return { kind: 'opaque', what: 'a map', at: token.at };
    }
    if (token.text === '...') {
      this.#next += 1;
      if (this.#tokens[this.#next]?.kind === 'string') this.#next += 1;
      return { kind: 'opaque', what: 'a generated value', at: token.at };
    }
    return this.#unexpected(token);
  }

  /** Steps over a bracketed group without recursion: what is inside is a value that nobody here can know. */
  #skipGroup(open: Token): void {
    const waiting: string[] = [];
    for (; this.#next < this.#tokens.length; this.#next += 1) {
      const token = this.#tokens[this.#next];
      if (token?.kind !== 'symbol') continue;
      const close = CLOSES[token.text];
      if (close !== undefined) {
        waiting.push(close);
      } else if (token.text === ')' || token.text === ']' || token.text === '}') {
        if (waiting.pop() !== token.text)
          throw new SyntaxFault('condition_syntax', token.at, `this \`${token.text}\` closes nothing`);
        if (waiting.length === 0) {
          this.#next += 1;
          return;
        }
      }
    }
    throw new SyntaxFault(
      'condition_syntax',
      open.at,
      `this \`${open.text}\` is never closed; add \`${CLOSES[open.text] ?? ')'}\``,
    );
  }

  #nested(at: number, parse: () => Expression): Expression {
    this.#depth += 1;
    if (this.#depth > MAX_NESTING) {
      throw new SyntaxFault('condition_syntax', at, `this condition is nested more than ${MAX_NESTING} deep; split it`);
    }
    const expression = parse();
    this.#depth -= 1;
    return expression;
  }

  #isName(text: string): boolean {
    const token = this.#tokens[this.#next];
    return token?.kind === 'name' && token.text === text;
  }

  #unexpected(token: Token): never {
    const instead = INSTEAD.get(token.text);
    throw new SyntaxFault(
      'condition_syntax',
      token.at,
      `unexpected \`${token.text}\`${instead === undefined ? '' : `; ${instead}`}`,
    );
  }
}
