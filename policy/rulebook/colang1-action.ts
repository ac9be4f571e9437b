import { checkValue } from './expression.ts';
import type { FlowNotes } from './flow-notes.ts';
import type { Line } from './line.ts';
import { positionAt } from './line.ts';
import { isQuestion, isToolName } from './message.ts';
import { quoted } from './nearest.ts';
import type { Outline } from './outline.ts';
import { refuseBody } from './outline.ts';
import type { Position, Problems } from './problem.ts';
import type { Statement } from './syntax.ts';
import { stringValue, tokenize } from './token.ts';

/** Reads the Colang 1.0 statements that say, run or assign something; each gives undefined after a fault. */
export class ActionParser1 {
  readonly #notes: FlowNotes;
  readonly #problems: Problems;

  constructor(notes: FlowNotes, problems: Problems) {
    this.#notes = notes;
    this.#problems = problems;
  }

  /** `bot NAME`, `bot "text"`, or `bot execute_NAME`, from the offset after `bot`. */
  bot(line: Line, from: number, at: Position, texts: readonly string[] = []): Statement | undefined {
    const rest = restOf(line, from);
    const text = rest.trim().replace(/^says?\s+/, '');
    if (text.startsWith('execute_')) return this.execute(line, line.text.indexOf('execute_', from) + 8, at, true);
    const quote = text.indexOf('"');
    const name = (quote < 0 ? text : text.slice(0, quote)).trim().split(/\s+/).join(' ');
    const inline = quote < 0 ? undefined : tokenize(line, line.text.indexOf('"', from))[0];
    const said = inline?.kind === 'string' ? stringValue(inline.text) : (texts.find(isQuestion) ?? texts[0]);
    if (name === '' && said === undefined) {
      this.#problems.error('statement_unknown', at, '`bot` says nothing; write the name of a message');
      return undefined;
    }
    return { kind: 'say', name: name === '' ? 'say' : name, text: said, at };
  }

  /** `NAME(arguments)` after `execute`; words of a name are joined as the runtime joins them. */
  execute(line: Line, from: number, at: Position, single: boolean = false): Statement | undefined {
    const rest = restOf(line, from).trim();
    if (rest.startsWith('$')) {
      this.#problems.error(
        'action_variable',
        at,
        `${quoted(rest)} names no tool; a rule must name the tool that it runs`,
      );
      return undefined;
    }
    const open = rest.indexOf('(');
    const words = (open < 0 ? rest : rest.slice(0, open)).trim().split(/\s+/);
    const tool = words.join('_');
    if (!isToolName(tool) || (single && words.length > 1)) {
      this.#problems.error(
        'tool_name',
        at,
        `${quoted(words.join(' '))} cannot name a tool; write \`execute NAME\` or \`execute SERVER/NAME\``,
      );
      return undefined;
    }
    if (open >= 0 && !isClosedCall(line, line.text.indexOf('(', from))) {
      this.#problems.error(
        'argument_list',
        positionAt(line, line.text.indexOf('(', from)),
        'these arguments are not closed by `)` at the end of the line',
      );
      return undefined;
    }
    return { kind: 'execute', tool, at };
  }

  /** What a person's turn gives a value to: `user give code as $code`, `user give code with $code`. */
  heard(line: Line, from: number): void {
    const tokens = tokenize(line, from);
    const word = tokens.findIndex(
      ({ kind, text }) => kind === 'name' && (text === 'as' || text === 'with' || text === 'for'),
    );
    if (word < 0) return;
    for (const token of tokens.slice(word)) {
      if (token.kind === 'variable') this.#notes.assign(token.text.slice(1), positionAt(line, token.at));
    }
  }

  /** `do NAME`. */
  call(line: Line, at: Position): Statement | undefined {
    const rest = restOf(line, 2).trim();
    if (rest.startsWith('$')) {
      this.#problems.error(
        'flow_variable',
        at,
        `${quoted(rest)} names no flow; write the subflow's own name after \`do\``,
      );
      return undefined;
    }
    const name = (rest.split('(')[0] ?? '').trim().split(/\s+/).join(' ');
    return { kind: 'call', name, form: 'await', at };
  }

  /** `$NAME = …`, from the offset of `$`. */
  assignment(outline: Outline, from: number): Statement | undefined {
    const { line } = outline;
    const at = positionAt(line, 0);
    refuseBody(outline, line.text, this.#problems);
    const head = /^\$([\p{L}\p{N}_]+)(?:\.[\p{L}\p{N}_]+)*\s*(=|\+=|-=)(?!=)\s*/u.exec(line.text.slice(from));
    if (head === null) {
      this.#problems.error(
        'statement_unknown',
        at,
        `${quoted(line.text)} is no statement; write \`$NAME = …\` to give a value`,
      );
      return undefined;
    }
    this.#notes.assign(head[1] ?? '', at);
    const value = from + head[0].length;
    const call = /^(?:execute|exec|run)(?=\s)/.exec(line.text.slice(value));
    if (call !== null) return this.execute(line, value + call[0].length, at);
    checkValue(line, value, this.#problems);
    return { kind: 'nothing', at };
  }
}

function restOf(line: Line, from: number): string {
  return line.text.slice(from);
}

/** Whether the bracket at `open` closes at the very end of the line, with every bracket inside in its place. */
function isClosedCall(line: Line, open: number): boolean {
  const waiting: string[] = [];
  const tokens = tokenize(line, open);
  for (const [index, token] of tokens.entries()) {
    if (token.kind !== 'symbol') continue;
    if (token.text === '(') waiting.push(')');
    else if (token.text === '[') waiting.push(']');
    else if (token.text === '{') waiting.push('}');
    else if (token.text === ')' || token.text === ']' || token.text === '}') {
      if (waiting.pop() !== token.text) return false;
      if (waiting.length === 0) return index === tokens.length - 1;
    }
  }
  return false;
}
