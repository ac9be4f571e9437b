import { emitSpec, executedName, operatorOf } from './colang2-emit.ts';
import type { Spec } from './colang2-spec.ts';
import { parseSpecs } from './colang2-spec.ts';
import { StartedFlows } from './colang2-started.ts';
import { headOf, isLabel } from './colang2-words.ts';
import { checkValue, parseExpression } from './expression.ts';
import type { FlowNotes } from './flow-notes.ts';
import type { Line } from './line.ts';
import { positionAt, withoutColon } from './line.ts';
import { isActionName } from './message.ts';
import { quoted } from './nearest.ts';
import type { Outline } from './outline.ts';
import { isDocText, refuseBody, requireBody } from './outline.ts';
import type { Position, Problems } from './problem.ts';
import type { Block, IfBranch, Statement, WhenBranch } from './syntax.ts';
import { tokenize } from './token.ts';

const OPERATORS: ReadonlySet<string> = new Set(['await', 'start', 'match', 'activate', 'deactivate', 'send']);
const VALUES: ReadonlySet<string> = new Set(['True', 'False', 'None', 'true', 'false', 'not']);

/** Reads the statements of a Colang 2.x flow. */
export class StatementParser2 {
  readonly #notes: FlowNotes;
  readonly #problems: Problems;
  readonly #started: StartedFlows;

  constructor(notes: FlowNotes, problems: Problems) {
    this.#started = new StartedFlows(problems);
    this.#notes = notes;
    this.#problems = problems;
  }

  /** A block of lines; `looping` tells whether `break` and `continue` have a loop to act on. */
  block(outlines: readonly Outline[], looping: boolean): Block {
    const statements: Statement[] = [];
    let index = 0;
    while (index < outlines.length) {
      const outline = outlines[index];
      if (outline === undefined) break;
      const head = headOf(outline.line.text);
      const at = positionAt(outline.line, 0);
      if (head === 'if') {
        const branches: IfBranch[] = [];
        let otherwise: Block | undefined;
        for (; otherwise === undefined; index += 1) {
          const next = outlines[index];
          const word = next === undefined ? '' : headOf(next.line.text);
          if (next === undefined) break;
          if (next === outline || word === 'elif' || word === 'else if') {
            const branch = this.#ifBranch(next, looping);
            if (branch !== undefined) branches.push(branch);
          } else if (word === 'else') {
            otherwise = this.#elseBody(next, looping);
          } else {
            break;
          }
        }
        statements.push({ kind: 'if', branches, otherwise, at });
      } else if (head === 'when') {
        const branches: WhenBranch[] = [];
        for (; ; index += 1) {
          const next = outlines[index];
          const word = next === undefined ? '' : headOf(next.line.text);
          if (next === undefined) break;
          if (next === outline || word === 'or when') {
            branches.push(this.#whenBranch(next, looping));
          } else if (word === 'else') {
            branches.push({ trigger: [], body: this.#elseBody(next, looping), at: positionAt(next.line, 0) });
            index += 1;
            break;
          } else {
            break;
          }
        }
        statements.push({ kind: 'when', branches, at });
      } else {
        statements.push(...this.#statement(outline, head, at, looping));
        index += 1;
      }
    }
    return statements;
  }

  #ifBranch(outline: Outline, looping: boolean): IfBranch | undefined {
    const { line } = outline;
    const from = /^(?:else\s+if|elif|if)/.exec(line.text)?.[0].length ?? 0;
    const expression = parseExpression(line, from, this.#problems, withoutColon(line));
    const body = this.#body(outline, looping);
    return expression === undefined ? undefined : { condition: { expression, line }, body, at: positionAt(line, 0) };
  }

  #elseBody(outline: Outline, looping: boolean): Block {
    const rest = outline.line.text.slice('else'.length).replace(/^\s*:?\s*/, '');
    if (rest !== '') {
      const at = positionAt(outline.line, outline.line.text.length - rest.length);
      const instead = /^when\b/.test(rest) ? '`or when …`' : '`elif …` or start a new line';
      this.#problems.error('statement_unknown', at, `${quoted(rest)} cannot follow \`else\`; write ${instead}`);
    }
    return this.#body(outline, looping);
  }

  #whenBranch(outline: Outline, looping: boolean): WhenBranch {
    const { line } = outline;
    const from = /^(?:or\s*)?when/.exec(line.text)?.[0].length ?? 0;
    const group = this.#specs(line, from, withoutColon(line));
    // The branch as a whole is the person's turn, so what it waits for adds none of its own.
    const trigger =
      group === undefined ? [] : emitSpec('when', group, this.#problems).filter((one) => one.kind !== 'turn');
    return { trigger, body: this.#body(outline, looping), at: positionAt(line, 0) };
  }

  #body(outline: Outline, looping: boolean): Block {
    requireBody(outline, this.#problems);
    return this.block(outline.body, looping);
  }

  #statement(outline: Outline, head: string, at: Position, looping: boolean): Block {
    const { line } = outline;
    const text = line.text;
    if (head === 'while') {
      const expression = parseExpression(line, head.length, this.#problems, withoutColon(line));
      const body = this.#body(outline, true);
      return expression === undefined ? [] : [{ kind: 'while', condition: { expression, line }, body, at }];
    }
    refuseBody(outline, text, this.#problems);
    if (isDocText(text) || isLabel(text)) return [];
    if (head.startsWith('$')) return this.#variable(line, at);
    if (OPERATORS.has(head)) return this.#operate(head, line, head.length);
    switch (head) {
      case 'return':
        if (text.length > head.length) checkValue(line, head.length, this.#problems);
        return [{ kind: 'leave', word: 'return', at }];
      case 'abort':
      case 'break':
      case 'continue':
        if (text !== head) return this.#fault('statement_unknown', at, `nothing may follow \`${head}\` on its line`);
        if (head !== 'abort' && !looping) {
          return this.#fault('statement_misplaced', at, `\`${head}\` stands in no loop; delete it or write \`return\``);
        }
        return [{ kind: 'leave', word: head, at }];
      case 'pass':
        return text === head ? [] : this.#fault('statement_unknown', at, 'nothing may follow `pass` on its line');
      case 'log':
      case 'print':
      case 'priority':
        checkValue(line, head.length, this.#problems);
        return [];
      case 'global':
        return this.#global(line, at);
      case 'stop':
        return text === head
          ? this.#fault('statement_unknown', at, '`stop` alone is Colang 1.0; in a 2.x file write `abort`')
          : this.#fault(
              'stop_reference',
              at,
              `${quoted(text)} is not read; end the flow itself with \`abort\` or \`return\``,
            );
      case 'flow':
        return this.#fault('nested_flow', at, 'a flow cannot be defined inside a flow; start it at column 1');
      case 'import':
        return this.#fault('statement_misplaced', at, '`import` starts at column 1, above the flows');
      case '...':
        return this.#fault(
          'ellipsis',
          at,
          '`...` lets a model write the rest, which no rule can be; write the statements out',
        );
      case 'elif':
      case 'else':
      case 'else if':
      case 'or when':
        return this.#fault(
          'statement_misplaced',
          at,
          `this \`${head}\` follows no \`${head === 'or when' ? 'when' : 'if'}\`; align it with the one that it belongs to`,
        );
      case 'define':
        return this.#fault(
          'statement_unknown',
          at,
          '`define` is Colang 1.0; in a 2.x file write `flow NAME` at column 1',
        );
      case '(':
        return this.#bracketed(line, at);
      default:
        if (/^[\p{L}\p{N}_]+\s*=(?!=)/u.test(text)) {
          return this.#fault('statement_unknown', at, `a variable starts with \`$\`; write \`$${head} = …\``);
        }
        return this.#operate('await', line, 0);
    }
  }

  /** `($a.update(…))` is an expression, `(a and b)` a group that is awaited. */
  #bracketed(line: Line, at: Position): Block {
    const first = tokenize(line).find((token) => token.text !== '(');
    if (first?.kind !== 'variable') return this.#operate('await', line, 0);
    checkValue(line, 0, this.#problems);
    return [{ kind: 'nothing', at }];
  }

  #global(line: Line, at: Position): Block {
    const name = /^global\s+\$([\p{L}\p{N}_]+)$/u.exec(line.text)?.[1];
    if (name === undefined) {
      return this.#fault(
        'statement_unknown',
        at,
        `${quoted(line.text)} is not read; write \`global $NAME\`, and give it a value on a line of its own`,
      );
    }
    this.#notes.globals.add(name);
    return [];
  }

  #variable(line: Line, at: Position): Block {
    const head = /^\$([\p{L}\p{N}_]+)\s*(\+=|-=|=)(?!=)\s*/u.exec(line.text);
    if (head === null) {
      return this.#fault(
        'statement_unknown',
        at,
        `${quoted(line.text)} is no statement; write \`$NAME = …\` to give a value`,
      );
    }
    const name = head[1] ?? '';
    if (head[2] !== '=') {
      const sign = head[2]?.[0] ?? '+';
      return this.#fault('increment', at, `\`${head[2] ?? ''}\` is not read; write \`$${name} = $${name} ${sign} …\``);
    }
    this.#notes.assign(name, at);
    const value = head[0].length;
    const tokens = tokenize(line, value);
    const first = tokens[0];
    if (first?.kind === 'name' && first.text === 'i' && tokens[1]?.kind === 'string' && tokens[1].at === first.end) {
      const message = '`i"…"` is an older form of a text that a model writes; write `..."…"`';
      return this.#fault('statement_unknown', positionAt(line, first.at), message);
    }
    if (first?.kind === 'name' && !VALUES.has(first.text)) {
      if (OPERATORS.has(first.text)) return this.#operate(first.text, line, first.end);
      const calls = tokens[1]?.kind === 'symbol' && tokens[1].text === '(';
      if (isActionName(first.text) || !(calls || tokens[1]?.text === '.')) return this.#operate('await', line, value);
      checkValue(line, value, this.#problems);
      // Written as a function is called; where a flow has the name, it is the flow.
      if (calls) return [{ kind: 'call', name: first.text, form: 'value', at: positionAt(line, first.at) }];
    } else {
      checkValue(line, value, this.#problems);
    }
    return [{ kind: 'nothing', at }];
  }

  #operate(word: string, line: Line, from: number): Block {
    const operator = operatorOf(word);
    // A tool's name may hold what a flow's cannot: `server/tool`, hyphens, full stops.
    const named = executedName(line.text.slice(from).trim());
    if (named !== undefined) return [{ kind: 'execute', tool: named, at: positionAt(line, 0) }];
    const spec = this.#specs(line, from, line.text.length);
    if (spec === undefined) return [];
    if (operator === 'match') {
      const turn: Statement = { kind: 'turn', name: line.text.slice(from).trim(), at: positionAt(line, 0) };
      return [...this.#started.finished(spec), turn];
    }
    this.#started.note(operator, spec);
    return emitSpec(operator, spec, this.#problems);
  }

  #specs(line: Line, from: number, to: number): Spec | undefined {
    const group = parseSpecs(line, from, to, this.#problems);
    for (const capture of group?.captured ?? []) this.#notes.assign(capture.name, capture.at);
    return group?.spec;
  }

  #fault(
    code:
      | 'ellipsis'
      | 'flow_name_case'
      | 'increment'
      | 'nested_flow'
      | 'statement_misplaced'
      | 'statement_unknown'
      | 'stop_reference'
      | 'tool_name',
    at: Position,
    message: string,
  ): Block {
    this.#problems.error(code, at, message);
    return [];
  }
}
