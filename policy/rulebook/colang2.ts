import { StatementParser2 } from './colang2-statement.ts';
import { FlowNotes } from './flow-notes.ts';
import { importPath } from './imports.ts';
import type { Line } from './line.ts';
import { positionAt } from './line.ts';
import { quoted } from './nearest.ts';
import type { Outline } from './outline.ts';
import { isDocText, refuseBody } from './outline.ts';
import type { Position, Problems } from './problem.ts';
import type { FileSyntax, FlowSyntax } from './syntax.ts';
import type { Token } from './token.ts';
import { tokenize } from './token.ts';

/** Words that join or name specs, so that a flow named with one could never be called by its name. */
const RESERVED: ReadonlySet<string> = new Set(['and', 'or', 'as']);

/** Reads the definitions of a Colang 2.x file. */
export function parseColang2(file: string, outlines: readonly Outline[], problems: Problems): FileSyntax {
  const flows: FlowSyntax[] = [];
  const imports: { path: string; at: Position }[] = [];
  let decorators: { name: string; at: Position }[] = [];
  for (const outline of outlines) {
    const { line } = outline;
    const at = positionAt(line, 0);
    const word = /^[@\p{L}_][\p{L}\p{N}_]*/u.exec(line.text)?.[0] ?? '';
    if (word.startsWith('@')) {
      refuseBody(outline, word, problems);
      decorators.push({ name: word.slice(1), at });
      continue;
    }
    if (word !== 'flow' && decorators[0] !== undefined) {
      problems.error('decorator', decorators[0].at, 'a decorator must stand right above the flow that it is about');
    }
    if (word === 'flow') {
      const flow = parseFlow(outline, decorators, problems);
      if (flow !== undefined) flows.push(flow);
    } else if (word === 'import') {
      refuseBody(outline, word, problems);
      imports.push({ path: importPath(line.text.slice('import'.length)), at });
    } else if (!isDocText(line.text)) {
      problems.error(
        'statement_misplaced',
        at,
        `${quoted(line.text)} stands outside every flow; start one with \`flow NAME\` and indent this under it`,
      );
    }
    decorators = [];
  }
  if (decorators[0] !== undefined) {
    problems.error('decorator', decorators[0].at, 'a decorator must stand right above the flow that it is about');
  }
  return { file, version: '2.x', flows, messages: [], imports };
}

function parseFlow(
  outline: Outline,
  decorators: readonly { name: string }[],
  problems: Problems,
): FlowSyntax | undefined {
  const { line } = outline;
  const at = positionAt(line, 0);
  const header = parseHeader(line, tokenize(line, 'flow'.length), problems);
  if (header === undefined) return undefined;
  if (outline.body.length === 0) {
    problems.error('body_missing', at, `\`flow ${header.name}\` has no statements; indent them under it`);
    return undefined;
  }
  const notes = new FlowNotes(problems);
  for (const [name, where] of header.parameters) notes.assign(name, where);
  for (const [name, where] of header.results) notes.assign(name, where);
  const body = new StatementParser2(notes, problems).block(outline.body, false);
  return {
    name: header.name,
    version: '2.x',
    callable: false,
    override: decorators.some((decorator) => decorator.name === 'override'),
    assigned: notes.assigned,
    globals: notes.globals,
    body,
    at,
  };
}

interface Header {
  readonly name: string;
  readonly parameters: ReadonlyMap<string, Position>;
  readonly results: ReadonlyMap<string, Position>;
}

/** `name words $p $q=1 -> $r, $s`, the parameters with or without brackets. */
function parseHeader(line: Line, tokens: readonly Token[], problems: Problems): Header | undefined {
  const words: Token[] = [];
  let index = 0;
  for (; tokens[index]?.kind === 'name'; index += 1) {
    const word = tokens[index];
    if (word !== undefined) words.push(word);
  }
  const first = words[0];
  if (first === undefined) {
    problems.error('flow_name', positionAt(line, 0), '`flow` needs a name of words');
    return undefined;
  }
  for (const word of words) {
    if (RESERVED.has(word.text)) {
      problems.error(
        'flow_name',
        positionAt(line, word.at),
        `a flow's name cannot hold \`${word.text}\`, which joins calls; rename it`,
      );
      return undefined;
    }
    if (/\p{Lu}/u.test(word.text)) {
      problems.error(
        'flow_name_case',
        positionAt(line, word.at),
        `a flow's name is written in lower case (upper case names events and actions); write \`${word.text.toLowerCase()}\``,
      );
      return undefined;
    }
  }
  const parameters = new Map<string, Position>();
  const results = new Map<string, Position>();
  let names = parameters;
  for (; index < tokens.length; index += 1) {
    const token = tokens[index];
    if (token === undefined) break;
    if (token.kind === 'variable') {
      names.set(token.text.slice(1), positionAt(line, token.at));
      if (tokens[index + 1]?.text === '=') index = skipDefault(tokens, index + 2);
    } else if (token.kind === 'symbol' && token.text === '->') {
      names = results;
    } else if (token.kind !== 'symbol' || !['(', ')', ','].includes(token.text)) {
      problems.error(
        'flow_name',
        positionAt(line, token.at),
        `unexpected ${quoted(token.text)} in a flow's first line; a parameter is written \`$NAME\` or \`$NAME=VALUE\``,
      );
      return undefined;
    }
  }
  return { name: words.map((word) => word.text).join(' '), parameters, results };
}

/** The index of the last token of a default value that starts at `from`. */
function skipDefault(tokens: readonly Token[], from: number): number {
  let depth = 0;
  for (let index = from; index < tokens.length; index += 1) {
    const token = tokens[index];
    if (token?.kind === 'symbol') {
      if ('([{'.includes(token.text)) depth += 1;
      else if (')]}'.includes(token.text)) depth -= 1;
    }
    if (depth < 0) return index - 1;
    const next = tokens[index + 1];
    if (depth === 0 && (next === undefined || next.kind === 'variable' || [',', ')', '->'].includes(next.text)))
      return index;
  }
  return tokens.length;
}
