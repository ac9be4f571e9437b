import { ActionParser1 } from './colang1-action.ts';
import { refuseStatements } from './colang1-meta.ts';
import { headOf, KNOWN, REFUSED } from './colang1-words.ts';
import { parseExpression } from './expression.ts';
import type { FlowNotes } from './flow-notes.ts';
import type { Line } from './line.ts';
import { positionAt, withoutColon } from './line.ts';
import { didYouMean, quoted } from './nearest.ts';
import type { Outline } from './outline.ts';
import { isDocText, refuseBody, requireBody } from './outline.ts';
import type { Problems } from './problem.ts';
import type { Block, IfBranch, Statement, WhenBranch } from './syntax.ts';
import { stringValue } from './token.ts';

/** Reads the statements of a Colang 1.0 flow. */
export class StatementParser1 {
  readonly #actions: ActionParser1;
  readonly #problems: Problems;

  constructor(notes: FlowNotes, problems: Problems) {
    this.#actions = new ActionParser1(notes, problems);
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
    this.#actions.heard(line, from);
    if (/^bot\s+execute_/.test(what)) {
      const statement = this.#actions.bot(line, from + 3, positionAt(line, from));
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
    requireBody(outline, this.#problems);
    return this.block(outline.body, looping);
  }

  #statement(outline: Outline, word: string, looping: boolean): Statement | undefined {
    const { line } = outline;
    const at = positionAt(line, 0);
    const nothing: Statement = { kind: 'nothing', at };
    if (isDocText(line.text)) return this.#plain(outline, 'a text', nothing);
    if (word.startsWith('$')) return this.#actions.assignment(outline, 0);
    switch (word) {
      case 'user':
      case 'event':
        this.#texts(outline);
        this.#actions.heard(line, 0);
        return { kind: 'turn', name: line.text.slice(word.length).trim(), at };
      case 'bot': {
        const texts = this.#texts(outline);
        return this.#actions.bot(line, 3, at, texts);
      }
      case 'execute':
      case 'exec':
      case 'run':
        return this.#plain(outline, word, this.#actions.execute(line, word.length, at));
      case 'do':
        return this.#plain(outline, word, this.#actions.call(line, at));
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
        return this.#plain(outline, word, { kind: 'label', name: line.text.slice(word.length).trim(), at });
      case 'goto':
        return this.#plain(outline, word, { kind: 'goto', name: line.text.replace(/^go\s*to\s*/, '').trim(), at });
      case 'create':
      case 'infer':
      case 'new':
      case 'log':
      case 'priority':
        return this.#plain(outline, word, nothing);
      case 'set':
        return this.#actions.assignment(outline, 4);
      case 'meta':
        refuseStatements(outline, this.#problems);
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
}
