import type { Line } from './line.ts';
import { positionAt } from './line.ts';
import { quoted } from './nearest.ts';
import { MAX_NESTING } from './outline.ts';
import type { Position, Problems } from './problem.ts';
import { SyntaxFault } from './syntax-fault.ts';
import type { Token } from './token.ts';
import { stringValue, tokenize } from './token.ts';

/** What a statement of Colang 2.x waits for, starts or sends: one thing, or a group of them. */
export type Spec =
  | { readonly kind: 'and'; readonly parts: readonly Spec[] }
  | { readonly kind: 'or'; readonly parts: readonly Spec[] }
  | {
      readonly kind: 'one';
      /** The words of the name; empty for a reference (`$ref`). */
      readonly name: string;
      /** The variable that stands for it, where it is a reference. */
      readonly reference: string | undefined;
      /** The member of it that is meant (`Finished`), which is an event. */
      readonly member: string | undefined;
      /** The variable that it is kept under (`as $ref`). */
      readonly capture: string | undefined;
      /** The first text among its arguments. */
      readonly text: string | undefined;
      readonly at: Position;
    };

/** A spec group with the names that it captures (`as $ref`). */
export interface SpecGroup {
  readonly spec: Spec;
  readonly captured: readonly { readonly name: string; readonly at: Position }[];
}

const JOINS: ReadonlySet<string> = new Set(['and', 'or', 'as']);
const VALUES: ReadonlySet<string> = new Set(['True', 'False', 'None']);
const CONSTANTS: ReadonlySet<string> = new Set(['True', 'False', 'None', 'true', 'false', 'not', 'is', 'in']);

class SpecParser {
  readonly captured: { name: string; at: Position }[] = [];
  readonly #line: Line;
  readonly #tokens: readonly Token[];
  #next = 0;
  #depth = 0;

  constructor(line: Line, tokens: readonly Token[]) {
    this.#line = line;
    this.#tokens = tokens;
  }

  parse(): Spec {
    const spec = this.#or();
    const rest = this.#tokens[this.#next];
    if (rest !== undefined) this.#unexpected(rest);
    return spec;
  }

  #or(): Spec {
    return this.#chain('or', () => this.#chain('and', () => this.#one()));
  }

  #chain(kind: 'and' | 'or', part: () => Spec): Spec {
    const first = part();
    if (!this.#isWord(kind)) return first;
    const parts = [first];
    while (this.#isWord(kind)) {
      this.#next += 1;
      parts.push(part());
    }
    return { kind, parts };
  }

  #one(): Spec {
    const token = this.#tokens[this.#next];
    if (token === undefined) {
      throw new SyntaxFault(
        'statement_unknown',
        this.#line.text.length,
        'this statement ends too early; write the name of a flow, an action or an event',
      );
    }
    if (token.kind === 'symbol' && token.text === '(') {
      this.#next += 1;
      this.#depth += 1;
      if (this.#depth > MAX_NESTING)
        throw new SyntaxFault(
          'statement_unknown',
          token.at,
          `this group is nested more than ${MAX_NESTING} deep; split it`,
        );
      const inner = this.#or();
      this.#depth -= 1;
      if (!this.#isSymbol(')'))
        throw new SyntaxFault('statement_unknown', token.at, 'this `(` is never closed; add `)`');
      this.#next += 1;
      const member = this.#members();
      const capture = this.#capture();
      if (inner.kind !== 'one') return inner;
      return { ...inner, member: member ?? inner.member, capture: capture ?? inner.capture };
    }
    if (token.kind === 'variable') {
      this.#next += 1;
      const member = this.#members();
      const capture = this.#capture();
      const at = positionAt(this.#line, token.at);
      return { kind: 'one', name: '', reference: token.text.slice(1), member, capture, text: undefined, at };
    }
    return this.#named(token);
  }

  #named(first: Token): Spec {
    const words: string[] = [];
    for (
      let token = this.#tokens[this.#next];
      token?.kind === 'name' && !JOINS.has(token.text) && !VALUES.has(token.text);
    ) {
      words.push(token.text);
      this.#next += 1;
      token = this.#tokens[this.#next];
    }
    if (words.length === 0) this.#unexpected(first);
    const from = this.#next;
    const member = this.#members();
    if (member === undefined) this.#arguments();
    const later = this.#members();
    const argumentTokens = this.#tokens.slice(from, this.#next);
    const text = ownText(argumentTokens);
    const capture = this.#capture();
    return {
      kind: 'one',
      name: words.join(' '),
      reference: undefined,
      member: member ?? later,
      capture,
      text: text === undefined ? undefined : stringValue(text.text),
      at: positionAt(this.#line, first.at),
    };
  }

  /** `(…)` or values in a row; both are stepped over, since no argument written here is known at a call. */
  #arguments(): void {
    for (;;) {
      const token = this.#tokens[this.#next];
      if (token === undefined || this.#isSymbol(')')) return;
      if (token.kind === 'name') {
        if (JOINS.has(token.text)) return;
        const after = this.#tokens[this.#next + 1];
        const calls = after?.kind === 'symbol' && after.text === '(';
        if (!calls && !CONSTANTS.has(token.text)) this.#unexpected(token);
        this.#next += 1;
      } else if (token.kind === 'symbol' && '([{'.includes(token.text)) {
        this.#group(token);
      } else if (token.kind === 'symbol' && token.text === '.') {
        const before = this.#tokens[this.#next - 1];
        const member = this.#tokens[this.#next + 1];
        // A member in upper case is the flow's or action's own event; any other is a field of the value before it.
        if (member?.kind !== 'name' || /^\p{Lu}/u.test(member.text)) return;
        if (before?.kind === 'string') this.#unexpected(token);
        this.#next += 2;
      } else {
        if (token.kind === 'symbol' && ['}', ']', ':', ';', '&&', '||', '!'].includes(token.text))
          this.#unexpected(token);
        this.#next += 1;
      }
    }
  }

  #members(): string | undefined {
    let found: string | undefined;
    while (this.#isSymbol('.')) {
      const name = this.#tokens[this.#next + 1];
      if (name?.kind !== 'name')
        throw new SyntaxFault(
          'statement_unknown',
          this.#tokens[this.#next]?.at ?? 0,
          'a `.` must be followed by a name',
        );
      found ??= name.text;
      this.#next += 2;
      const open = this.#tokens[this.#next];
      if (open !== undefined && this.#isSymbol('(')) this.#group(open);
    }
    return found;
  }

  #group(open: Token): void {
    const waiting: string[] = [];
    for (; this.#next < this.#tokens.length; this.#next += 1) {
      const token = this.#tokens[this.#next];
      if (token?.kind !== 'symbol') continue;
      const at = '([{'.indexOf(token.text);
      if (token.text.length === 1 && at >= 0) {
        waiting.push(')]}'[at] ?? ')');
      } else if (token.text.length === 1 && ')]}'.includes(token.text)) {
        if (waiting.pop() !== token.text)
          throw new SyntaxFault('statement_unknown', token.at, `this \`${token.text}\` closes nothing`);
        if (waiting.length === 0) {
          this.#next += 1;
          return;
        }
      }
    }
    throw new SyntaxFault('statement_unknown', open.at, `this \`${open.text}\` is never closed`);
  }

  #capture(): string | undefined {
    if (!this.#isWord('as')) return undefined;
    const token = this.#tokens[this.#next + 1];
    if (token?.kind !== 'variable')
      throw new SyntaxFault(
        'statement_unknown',
        this.#tokens[this.#next]?.at ?? 0,
        '`as` must be followed by a `$NAME`',
      );
    const name = token.text.slice(1);
    this.captured.push({ name, at: positionAt(this.#line, token.at) });
    this.#next += 2;
    return name;
  }

  #isWord(text: string): boolean {
    const token = this.#tokens[this.#next];
    return token?.kind === 'name' && token.text === text;
  }

  #isSymbol(text: string): boolean {
    const token = this.#tokens[this.#next];
    return token?.kind === 'symbol' && token.text === text;
  }

  #unexpected(token: Token): never {
    throw new SyntaxFault(
      'statement_unknown',
      token.at,
      `unexpected ${quoted(token.text)}; a call is written \`flow name "value"\` or \`SomeAction(name="value")\``,
    );
  }
}

/** The first text that is an argument itself: not an index, nor part of a list or a map. */
function ownText(tokens: readonly Token[]): Token | undefined {
  let inside = 0;
  for (const token of tokens) {
    if (token.kind === 'string' && inside === 0) return token;
    if (token.kind !== 'symbol') continue;
    if (token.text === '[' || token.text === '{') inside += 1;
    else if (token.text === ']' || token.text === '}') inside -= 1;
  }
  return undefined;
}

/** Parses the specs from `from` to `to` in a line; a fault is reported at its column and gives undefined. */
export function parseSpecs(line: Line, from: number, to: number, problems: Problems): SpecGroup | undefined {
  const parser = new SpecParser(
    line,
    tokenize(line, from).filter((token) => token.at < to),
  );
  try {
    return { spec: parser.parse(), captured: parser.captured };
  } catch (error) {
    if (!(error instanceof SyntaxFault)) throw error;
    problems.error(error.code, positionAt(line, error.at), error.message);
    return undefined;
  }
}
