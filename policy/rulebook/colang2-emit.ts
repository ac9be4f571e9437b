import type { Spec } from './colang2-spec.ts';
import { actionTool, isActionName, isToolName } from './message.ts';
import { quoted } from './nearest.ts';
import type { Position, Problems } from './problem.ts';
import type { Block, Statement } from './syntax.ts';

/** What a Colang 2.x statement does with its specs. */
export type Operator = 'await' | 'when' | 'start' | 'match' | 'activate' | 'deactivate' | 'send';

/** Turns what a statement awaits, starts or sends into statements that both languages share. */
export function emitSpec(operator: Operator, spec: Spec, problems: Problems): Block {
  return new SpecEmitter(problems).emit(operator, spec);
}

class SpecEmitter {
  readonly #problems: Problems;

  constructor(problems: Problems) {
    this.#problems = problems;
  }

  emit(operator: Operator, spec: Spec): Block {
    if (spec.kind === 'and') return spec.parts.flatMap((part) => this.emit(operator, part));
    if (spec.kind === 'or') {
      const branches = spec.parts.map((part) => this.emit(operator, part));
      const at = firstPosition(spec);
      return at === undefined ? [] : [{ kind: 'choice', branches, at }];
    }
    const { name, at, text } = spec;
    if (operator === 'deactivate') return [];
    if (operator === 'send') return spec.member !== undefined ? [] : this.#sent(name, text, at);
    if (name === '' || spec.member !== undefined)
      return waits(operator) ? [{ kind: 'turn', name: name === '' ? 'a reference' : name, at }] : [];
    if (/^\p{Lu}/u.test(name)) return this.#action(name, text, at, operator);
    const words = name.split(' ');
    const executed = words[0] === 'execute' && words.length === 2 ? words[1] : boundTool(words);
    if (executed !== undefined) {
      if (!isToolName(executed)) return this.#fault('tool_name', at, `${quoted(executed)} cannot name a tool`);
      return [{ kind: 'execute', tool: executed, at }];
    }
    const beside = !waits(operator);
    if (name === 'await_flow_by_name') {
      if (text !== undefined) return [{ kind: 'call', name: text, form: beside ? 'start' : 'await', at }];
      const message = 'this flow is named by a value, so nobody can tell which it is; write `await NAME`';
      return this.#fault('flow_variable', at, message);
    }
    if (words[0] === 'bot' && words.length > 1) {
      const said: Statement = { kind: 'say', name: words.slice(1).join(' '), text, at };
      return [said, { kind: 'call', name, form: beside ? 'start' : 'bot', at }];
    }
    if (words[0] === 'user' && !beside) return [{ kind: 'call', name, form: 'user', at }];
    return [{ kind: 'call', name, form: beside ? 'start' : 'await', at }];
  }

  #action(name: string, text: string | undefined, at: Position, operator: Operator): Block {
    const tool = actionTool(name);
    if (tool !== undefined) return [{ kind: 'execute', tool, at }];
    if (name.startsWith('UtteranceBot')) return [{ kind: 'say', name: 'say', text, at }];
    if (isActionName(name) && !name.includes('User')) return [];
    if (name.includes(' ')) {
      return this.#fault(
        'flow_name_case',
        at,
        `${quoted(name)} names no flow (those are in lower case), no action and no event`,
      );
    }
    if (operator === 'when') return [{ kind: 'turn', name, at }];
    if (isActionName(name)) return waits(operator) ? [{ kind: 'turn', name, at }] : [];
    // Read as an event, a tool whose `Action` was forgotten would be ruled by nothing.
    const message = `${quoted(name)} is no action, whose name ends in \`Action\`; for an event write \`match ${name}()\``;
    return this.#fault('action_name', at, message);
  }

  /** An event that starts an action runs it, whoever listens. */
  #sent(name: string, text: string | undefined, at: Position): Block {
    // A flow started by its name in an event is started all the same; a name that is computed is nobody's to follow.
    if (name === 'StartFlow' && text !== undefined) return [{ kind: 'call', name: text, form: 'start', at }];
    if (!name.startsWith('Start')) return [];
    const action = name.slice('Start'.length);
    return isActionName(action) ? this.#action(action, text, at, 'start') : [];
  }

  #fault(code: 'action_name' | 'flow_name_case' | 'flow_variable' | 'tool_name', at: Position, message: string): Block {
    this.#problems.error(code, at, message);
    return [];
  }
}

/** Whether what is named is waited for, an awaited action of a person as well as a case of `when`. */
function waits(operator: Operator): boolean {
  return operator === 'await' || operator === 'when';
}

/** The operator that a statement's first word stands for; without one, a statement awaits. */
export function operatorOf(word: string): Operator {
  switch (word) {
    case 'start':
    case 'match':
    case 'activate':
    case 'deactivate':
    case 'send':
      return word;
    default:
      return 'await';
  }
}

/** The tool of `bot execute_NAME`. */
function boundTool(words: readonly string[]): string | undefined {
  const second = words[1];
  return words[0] === 'bot' && words.length === 2 && second?.startsWith('execute_')
    ? second.slice('execute_'.length)
    : undefined;
}

/** The tool of `execute NAME` where only a tool can be named so. */
export function executedName(text: string): string | undefined {
  if (!text.startsWith('execute ')) return undefined;
  const open = text.indexOf('(');
  if (open >= 0 && !text.endsWith(')')) return undefined;
  const name = text.slice('execute '.length, open < 0 ? undefined : open).trim();
  return isToolName(name) && /[^\p{L}\p{N}_]/u.test(name) ? name : undefined;
}

function firstPosition(spec: Spec): Position | undefined {
  let one: Spec | undefined = spec;
  while (one !== undefined && one.kind !== 'one') one = one.parts[0];
  return one?.at;
}
