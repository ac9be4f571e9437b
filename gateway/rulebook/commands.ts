import { loadRecord } from '../../policy/rulebook/decide.ts';
import { explainRulebook, factsOfRecord } from '../../policy/rulebook/explain.ts';
import { didYouMean, quoted } from '../../policy/rulebook/nearest.ts';
import type { RulebookRecord } from '../../policy/rulebook/record.ts';
import type { JsonObject } from '../../receipts/json-value.ts';
import { makeCheckCells } from './check-cell.ts';
import { compileRulebookFiles } from './load.ts';
import { renderExplanation, renderProblems } from './render.ts';

/** What a command prints and leaves as its exit code: 0 done, 1 the rulebook has errors, 2 wrongly asked. */
export interface CommandResult {
  readonly text: string;
  readonly exitCode: 0 | 1 | 2;
}

/** What both commands are told. */
export interface RulesOptions {
  /** Files or folders, relative to `base`. */
  readonly files: readonly string[];
  readonly base: string;
  readonly json?: boolean;
  readonly strict?: boolean;
  /** The catalogue's tools, where a configuration was given. */
  readonly tools?: readonly string[];
}

/** `toolgate rules compile`: the record, the governed tools and every problem. */
export async function runRulesCompile(options: RulesOptions): Promise<CommandResult> {
  const { record, governed, problems } = await compile(options);
  const exitCode = record === undefined ? 1 : 0;
  if (options.json === true) {
    return { text: `${JSON.stringify({ record: record ?? null, governed, problems }, undefined, 2)}\n`, exitCode };
  }
  if (record === undefined) return { text: renderProblems(problems), exitCode };
  const entries = record.flows.filter((flow) => flow.entry).length;
  const summary = `flows: ${record.flows.length}, of which ${entries} by itself\ngoverned tools: ${governed.length}\n`;
  return { text: `${renderProblems(problems)}${summary}${governed.map((tool) => `  ${tool}\n`).join('')}`, exitCode };
}

export interface ExplainOptions extends RulesOptions {
  readonly tool: string;
  /** `name` for a fact that holds, `name=true` or `name=false`. */
  readonly facts?: readonly string[];
  readonly arguments?: JsonObject;
}

/** `toolgate rules explain`: what the rulebook says of a call, by which flow and lines, and why. */
export async function runRulesExplain(options: ExplainOptions): Promise<CommandResult> {
  const given: [string, boolean][] = [];
  for (const text of options.facts ?? []) {
    const equals = text.indexOf('=');
    const name = (equals < 0 ? text : text.slice(0, equals)).replace(/^\$/, '');
    const value = equals < 0 ? 'true' : text.slice(equals + 1).toLowerCase();
    if (name === '' || (value !== 'true' && value !== 'false')) {
      return { text: `\`${text}\` is no fact; write \`NAME\`, \`NAME=true\` or \`NAME=false\`\n`, exitCode: 2 };
    }
    given.push([name, value === 'true']);
  }
  const { record, problems } = await compile(options);
  if (record === undefined) return { text: renderProblems(problems), exitCode: 1 };
  const prepared = loadRecord(record);
  const explanation = explainRulebook(prepared, options.tool, {
    facts: Object.fromEntries(given),
    arguments: options.arguments ?? {},
    check: makeCheckCells(),
  });
  if (options.json === true) return { text: `${JSON.stringify(explanation, undefined, 2)}\n`, exitCode: 0 };
  const near = explanation.decision.kind === 'ungoverned' ? renderNear(options.tool, prepared.governed) : '';
  const names = given.map(([name]) => name);
  return { text: `${renderExplanation(options.tool, explanation)}${near}${renderUnread(names, record)}`, exitCode: 0 };
}

/** A line for a tool that no rule names, where one names another that may have been meant. */
function renderNear(tool: string, governed: ReadonlySet<string>): string {
  const pairs = [...governed].filter((name) => name.endsWith(`/${tool}`));
  if (pairs.length > 0)
    return `\nrules name ${pairs.map(quoted).join(', ')}: a bare name is any server's, a pair is one\n`;
  const near = didYouMean(tool, governed);
  return near === '' ? '' : `\nno rule names ${quoted(tool)}${near}\n`;
}

/** A line for each fact that no rule reads: one that is misspelt would be false without a word. */
function renderUnread(names: readonly string[], record: RulebookRecord): string {
  const read = factsOfRecord(record);
  const unread = names.filter((name) => !read.has(name));
  return unread.map((name) => `\nno rule reads the fact ${quoted(name)}${didYouMean(name, read)}\n`).join('');
}

async function compile(options: RulesOptions): ReturnType<typeof compileRulebookFiles> {
  return compileRulebookFiles(options.files, options.base, {
    strict: options.strict === true,
    ...(options.tools === undefined ? {} : { tools: options.tools }),
  });
}
