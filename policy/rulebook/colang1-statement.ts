import { parseExpression } from './expression.ts';
import type { FlowNotes } from './flow-notes.ts';
import { isToolName } from './message.ts';
import { didYouMean, quoted } from './nearest.ts';
import type { Outline } from './outline.ts';
import { isDocText, refuseBody } from './outline.ts';
import type { Position, Problems } from './problem.ts';
import type { Line } from './scan.ts';
import { positionAt } from './scan.ts';
import type { Block, IfBranch, Statement, WhenBranch } from './syntax.ts';
import { stringValue, tokenize } from './token.ts';

const KNOWN: readonly string[] = [
  'abort',
  'bot',
  'break',
  'continue',
  'create',
  'do',
  'done',
  'else',
  'event',
  'execute',
  'goto',
  'if',
  'label',
  'log',
  'meta',
  'pass',
  'priority',
  'return',
  'set',
  'stop',
  'user',
  'when',
  'while',
];

/** Statements of the language, or near to it, that are refused on purpose, with what to write instead. */
const REFUSED: ReadonlyMap<string, string> = new Map([
  ['for', 'loops over lists are not read; write the cases out'],
  ['foreach', 'loops over lists are not read; write the cases out'],
  ['check', '`check` does nothing that can be decided; write `if`'],
  ['any', '`any` is not read; write `when … else when …`'],
  ['elif', 'this is Colang 2.x; in a 1.0 file write `else if`'],
  ['await', 'this is Colang 2.x; in a 1.0 file write `execute NAME` or `do NAME`'],
  ['start', 'this is Colang 2.x; in a 1.0 file write `execute NAME` or `do NAME`'],
  ['activate', 'this is Colang 2.x; in a 1.0 file a `define flow` is active by itself'],
  ['match', 'this is Colang 2.x; in a 1.0 file write `user NAME`'],
  ['flow', 'flows are not defined inside flows; write `define flow` at column 1'],
  ['define', 'a definition starts at column 1'],
]);

/** Reads the statements of a Colang 1.0 flow. */
export class StatementParser1 {
  readonly #notes: FlowNotes;
  readonly #problems: Problems;

  constructor(notes: FlowNotes, problems: Problems) {
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
      const word = headOf(outline.line.text);
      if (word === 'if') {
        const branches: IfBranch[] = [this.#ifBranch(outline, 2, looping)].filter((branch) => branch !== undefined);
        let otherwise: Block | undefined;
        for (index += 1; otherwise === undefined; index += 1) {
          const next = outlines[index];
          const head = next === undefined ? '' : headOf(next.line.text);
          if (next !== undefined && head === 'else if') {
            const branch = this.#ifBranch(next, /^else\s+if/.exec(next.line.text)?.[0].length ?? 7, looping);
            if (branch !== undefined) branches.push(branch);
          } else if (next !== undefined && head === 'else') {
            otherwise = this.#elseBody(next, looping);
          } else {
            break;
          }
        }
        statements.push({ kind: 'if', branches, otherwise, at: positionAt(outline.line, 0) });
      } else if (word === 'when') {
        const branches: WhenBranch[] = [this.#whenBranch(outline, looping)];
        for (index += 1; ; index += 1) {
          const next = outlines[index];
          if (next === undefined || headOf(next.line.text) !== 'else when') break;
          branches.push(this.#whenBranch(next, looping));
        }
        const next = outlines[index];
        if (next !== undefined && ['else', 'else if'].includes(headOf(next.line.text))) {
          this.#problems.error(
            'else_after_when',
            positionAt(next.line, 0),
            'an `else` after `when` does not mean what it says; write `else when user …`',
          );
          index += 1;
        }
        statements.push({ kind: 'when', branches, at: positionAt(outline.line, 0) });
      } else {
        const statement = this.#statement(outline, word, looping);
        if (statement !== undefined) statements.push(statement);
        index += 1;
      }
    }
    return statements;
  }

  #ifBranch(outline: Outline, from: number, looping: boolean): IfBranch | undefined {
    const { line } = outline;
    const at = positionAt(line, 0);
    const expression = parseExpression(line, from, this.#problems, withoutColon(line));
    const body = this.#body(outline, looping);
    return expression === undefined ? undefined : { condition: { expression, line }, body, at };
  }

  #glued(line: Line, word: string): void {
    this.#problems.error(
      'if_parenthesis',
      positionAt(line, 0),
      `without a space after \`${word}\` this is read as the name of a new flow; write \`${word} (…)\``,
    );
  }

  #elseBody(outline: Outline, looping: boolean): Block {
    const rest = outline.line.text.slice(4).replace(/^\s*:?\s*/, '');
    const at = positionAt(outline.line, outline.line.text.length - rest.length);
    if (rest.startsWith('if(')) this.#glued(outline.line, 'else if');
    else if (rest !== '') {
      this.#problems.error(
        'statement_unknown',
        at,
        `${quoted(rest)} cannot follow \`else\`; write \`else if …\` or start a new line`,
      );
    }
    return this.#body(outline, looping);
  }

  #whenBranch(outline: Outline, looping: boolean): WhenBranch {
    const { line } = outline;
    const from = /^(?:else\s+)?when\s*/.exec(line.text)?.[0].length ?? 0;
    const what = line.text.slice(from, withoutColon(line)).trim();
    const trigger: Statement[] = [];
    if (/^bot\s+execute_/.test(what)) {
      const statement = this.#bot(line, from + 3, positionAt(line, from));
      if (statement !== undefined) trigger.push(statement);
    } else if (what === '' || /^(?:execute|exec|run|do|any|if|\$)\b/.test(what) || what.startsWith('$')) {
      this.#problems.error(
        'statement_unknown',
        positionAt(line, from),
        '`when` waits for what a person does; write `when user …`',
      );
    }
    return { trigger, body: this.#body(outline, looping), at: positionAt(line, 0) };
  }

  #body(outline: Outline, looping: boolean): Block {
    if (outline.body.length === 0) {
      this.#problems.error(
        'body_missing',
        positionAt(outline.line, 0),
        `nothing is indented under ${quoted(outline.line.text)}; indent what it leads to`,
      );
    }
    return this.block(outline.body, looping);
  }

  #statement(outline: Outline, word: string, looping: boolean): Statement | undefined {
    const { line } = outline;
    const at = positionAt(line, 0);
    const nothing: Statement = { kind: 'nothing', at };
    if (isDocText(line.text)) return this.#plain(outline, 'a text', nothing);
    if (word.startsWith('$')) return this.#assignment(outline, 0);
    switch (word) {
      case 'user':
      case 'event':
        this.#texts(outline);
        return { kind: 'turn', name: restOf(line, word.length).trim(), at };
      case 'bot': {
        const texts = this.#texts(outline);
        return this.#bot(line, 3, at, texts);
      }
      case 'execute':
      case 'exec':
      case 'run':
        return this.#plain(outline, word, this.#execute(line, word.length, at));
      case 'do':
        return this.#plain(outline, word, this.#do(line, at));
      case 'while': {
        const expression = parseExpression(line, 5, this.#problems, withoutColon(line));
        const body = this.#whileBody(outline);
        return expression === undefined ? undefined : { kind: 'while', condition: { expression, line }, body, at };
      }
      case 'break':
      case 'continue':
        if (!looping) {
          this.#problems.error(
            'statement_misplaced',
            at,
            `\`${word}\` stands in no loop; delete it or write \`return\``,
          );
        }
        return this.#plain(outline, word, { kind: 'leave', word, at });
      case 'pass':
        return this.#plain(outline, word, looping ? { kind: 'leave', word: 'continue', at } : nothing);
      case 'return':
      case 'done':
        return this.#plain(outline, word, { kind: 'leave', word: 'return', at });
      case 'stop':
      case 'abort':
        return this.#plain(outline, word, { kind: 'leave', word, at });
      case 'label':
      case 'checkpoint':
        return this.#plain(outline, word, { kind: 'label', name: restOf(line, word.length).trim(), at });
      case 'goto':
        return this.#plain(outline, word, { kind: 'goto', name: line.text.replace(/^go\s*to\s*/, '').trim(), at });
      case 'create':
      case 'infer':
      case 'new':
      case 'log':
      case 'priority':
        return this.#plain(outline, word, nothing);
      case 'set':
        return this.#assignment(outline, 4);
      case 'meta':
        return nothing;
      default:
        return this.#unknown(outline, word);
    }
  }

  #whileBody(outline: Outline): Block {
    return this.#body(outline, true);
  }

  #unknown(outline: Outline, word: string): undefined {
    const { line } = outline;
    const at = positionAt(line, 0);
    const text = line.text;
    const glued = /^(?:else\s+)?(?:if|while|when|else)\s*\(/.exec(text)?.[0].replace(/\s*\($/, '');
    if (glued !== undefined) {
      this.#glued(line, glued);
    } else if (word === '...') {
      this.#problems.error(
        'ellipsis',
        at,
        '`...` lets a model write the rest, which no rule can be; write the statements out',
      );
    } else if (word === 'else' || word === 'else if' || word === 'else when') {
      this.#problems.error(
        'statement_misplaced',
        at,
        `this \`${word}\` follows no \`${word === 'else when' ? 'when' : 'if'}\`; align it with the one that it belongs to`,
      );
    } else {
      const why = REFUSED.get(word);
      this.#problems.error(
        'statement_unknown',
        at,
        why === undefined
          ? `${quoted(word === '' ? text : word)} is no statement that is known${didYouMean(word, KNOWN)}`
          : `\`${word}\`: ${why}`,
      );
    }
    return undefined;
  }

  /** A statement under which nothing may be indented. */
  #plain(outline: Outline, word: string, statement: Statement | undefined): Statement | undefined {
    refuseBody(outline, word, this.#problems);
    return statement;
  }

  /** The texts in quotes that may be indented under `user` and `bot`. */
  #texts(outline: Outline): readonly string[] {
    const texts: string[] = [];
    for (const child of outline.body) {
      const text = child.line.text;
      if (text.startsWith('"') && text.endsWith('"') && text.length > 1 && child.body.length === 0) {
        texts.push(stringValue(text));
      } else {
        refuseBody(outline, headOf(outline.line.text), this.#problems);
        break;
      }
    }
    return texts;
  }

  #bot(line: Line, from: number, at: Position, texts: readonly string[] = []): Statement | undefined {
    const rest = restOf(line, from);
    const text = rest.trim().replace(/^says?\s+/, '');
    if (text.startsWith('execute_')) return this.#execute(line, line.text.indexOf('execute_', from) + 8, at, true);
    const quote = text.indexOf('"');
    const name = (quote < 0 ? text : text.slice(0, quote)).trim().split(/\s+/).join(' ');
    const inline = quote < 0 ? undefined : tokenize(line, line.text.indexOf('"', from))[0];
    const said =
      inline?.kind === 'string'
        ? stringValue(inline.text)
        : (texts.find((one) => one.trimEnd().endsWith('?')) ?? texts[0]);
    if (name === '' && said === undefined) {
      this.#problems.error('statement_unknown', at, '`bot` says nothing; write the name of a message');
      return undefined;
    }
    return { kind: 'say', name: name === '' ? 'say' : name, text: said, at };
  }

  /** `NAME(arguments)` after `execute`; words of a name are joined as the runtime joins them. */
  #execute(line: Line, from: number, at: Position, single: boolean = false): Statement | undefined {
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

  #do(line: Line, at: Position): Statement | undefined {
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

  #assignment(outline: Outline, from: number): Statement | undefined {
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
    if (call !== null) return this.#execute(line, value + call[0].length, at);
    parseExpression(line, value, this.#problems);
    return { kind: 'nothing', at };
  }
}

/** The word that says what a statement is; `else if` and `else when` count as one. */
function headOf(text: string): string {
  const two = /^(else\s+(?:if|when)|go\s+to)(?![^\s:])/.exec(text)?.[1];
  if (two !== undefined) return two.startsWith('go') ? 'goto' : two.endsWith('if') ? 'else if' : 'else when';
  const word = /^\S+/.exec(text)?.[0] ?? '';
  return word.length > 1 && word.endsWith(':') ? word.slice(0, -1) : word;
}

function restOf(line: Line, from: number): string {
  return line.text.slice(from);
}

/** The end of a line without the colon that people bring from Python. */
function withoutColon(line: Line): number {
  return line.text.endsWith(':') ? line.text.length - 1 : line.text.length;
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
