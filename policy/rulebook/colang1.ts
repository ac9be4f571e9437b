import { StatementParser1 } from './colang1-statement.ts';
import { FlowNotes } from './flow-notes.ts';
import { importPath } from './imports.ts';
import { positionAt } from './line.ts';
import { didYouMean, quoted } from './nearest.ts';
import type { Outline } from './outline.ts';
import { isDocText, refuseBody } from './outline.ts';
import type { Problems } from './problem.ts';
import type { FileSyntax, FlowSyntax, MessageSyntax } from './syntax.ts';
import { stringValue } from './token.ts';

const KINDS: readonly string[] = ['user', 'bot', 'flow', 'subflow'];

/** Words before the kind that say how the conversation engine runs a flow; none of them changes what is decided. */
const MODIFIERS: ReadonlySet<string> = new Set([
  'continuous',
  'extension',
  'interruption',
  'non-interruptable',
  'noninterruptable',
  'parallel',
  'recursive',
  'repair',
  'response',
  'sample',
  'test',
]);

/** Reads the definitions of a Colang 1.0 file. */
export function parseColang1(file: string, outlines: readonly Outline[], problems: Problems): FileSyntax {
  const flows: FlowSyntax[] = [];
  const messages: MessageSyntax[] = [];
  const imports: { path: string; at: { file: string; line: number; column: number } }[] = [];
  for (const outline of outlines) {
    const { line } = outline;
    const at = positionAt(line, 0);
    const word = /^[^\s"]+/.exec(line.text)?.[0] ?? '';
    if (isDocText(line.text)) continue;
    if (word === 'import' || word === 'include') {
      refuseBody(outline, word, problems);
      imports.push({ path: importPath(line.text.slice(word.length)), at });
    } else if (word === 'define' || word === 'def') {
      parseDefinition(outline, line.text.slice(word.length), flows, messages, problems);
    } else {
      problems.error(
        'statement_misplaced',
        at,
        `${quoted(line.text)} stands outside every definition; start one with \`define flow NAME\` and indent this under it`,
      );
    }
  }
  return { file, version: '1.0', flows, messages, imports };
}

function parseDefinition(
  outline: Outline,
  rest: string,
  flows: FlowSyntax[],
  messages: MessageSyntax[],
  problems: Problems,
): void {
  const { line } = outline;
  const at = positionAt(line, 0);
  const words = rest.trim().replace(/:$/, '').split(/\s+/);
  let index = 0;
  let extension = false;
  while (MODIFIERS.has(words[index] ?? '')) {
    extension ||= words[index] === 'extension';
    index += 1;
  }
  const kind = words[index] ?? '';
  const name = words.slice(index + 1).join(' ');
  if (!KINDS.includes(kind)) {
    problems.error(
      'definition',
      at,
      `${kind === '' ? 'nothing' : quoted(kind)} is not what \`define\` can define; write \`user\`, \`bot\`, \`flow\` or \`subflow\`${didYouMean(kind, KINDS)}`,
    );
    return;
  }
  if (name === '' && kind !== 'flow') {
    problems.error('definition', at, `\`define ${kind}\` needs a name`);
    return;
  }
  if (kind === 'user' || kind === 'bot') {
    const texts = parseTexts(outline, problems);
    if (kind === 'bot') messages.push({ name, texts, at });
    return;
  }
  if (outline.body.length === 0) {
    problems.error('body_missing', at, `\`define ${kind} ${name}\` has no statements; indent them under it`);
    return;
  }
  const notes = new FlowNotes(problems);
  const body = new StatementParser1(notes, problems).block(outline.body, false);
  flows.push({
    // An extension adds to the flow of its name without being it; an unnamed flow is told apart by its line.
    name:
      name === '' ? `unnamed flow (line ${line.line})` : extension ? `${name} (extension, line ${line.line})` : name,
    version: '1.0',
    callable: kind === 'subflow',
    override: false,
    assigned: notes.assigned,
    globals: notes.globals,
    body,
    at,
  });
}

/** The example texts under `define user` and `define bot`. */
function parseTexts(outline: Outline, problems: Problems): readonly string[] {
  const texts: string[] = [];
  for (const child of outline.body) {
    const text = child.line.text;
    if (isDocText(text) || text === '...') continue;
    if (!text.startsWith('"') && !text.startsWith("'")) {
      problems.error('statement_unknown', positionAt(child.line, 0), `${quoted(text)} is no example; put it in quotes`);
      continue;
    }
    texts.push(text.length >= 2 && text.endsWith(text[0] ?? '') ? stringValue(text) : text.slice(1));
    refuseBody(child, 'an example', problems);
  }
  return texts;
}
