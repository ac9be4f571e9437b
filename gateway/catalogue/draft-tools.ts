import type { CompiledSchema } from '../../policy/schema/compile.ts';
import { FREE_FORM } from '../../policy/schema/partial.ts';
import type { JsonObject } from '../../receipts/json-value.ts';
import type { RouteConfig } from '../config/config.ts';
import type { ConfigPath, ProblemLog } from '../config/problem.ts';
import { suggest } from '../config/suggest.ts';
import { OperationInput } from '../openapi/operation-input.ts';
import { documented } from './documented.ts';
import { checkOwnSchema } from './own-schema.ts';
import { type CompileSchema, type ToolDraft, withoutArgument } from './tool-draft.ts';
import type { RouteSource, ToolSource } from './tool-source.ts';
import { isGlob, matchesGlob, type ToolWords, withoutLoweringGlobs, wordsFor } from './words.ts';

/** Longest `server__tool` of an MCP endpoint. */
const MAX_NAME = 128;

/** The tools of one route with their own words read; references to other tools come later. */
export function draftTools(
  route: RouteConfig,
  source: RouteSource,
  compile: CompileSchema,
  log: ProblemLog,
): readonly ToolDraft[] {
  const drafts: ToolDraft[] = [];
  for (const tool of source.tools) {
    if (tool.operation?.api === undefined && !isTaken(route, tool.name)) continue;
    const draft = draftTool(route, tool, compile, log);
    if (draft !== undefined) drafts.push(draft);
  }
  checkEntriesMeet(route, source, log);
  return drafts;
}

/** Whether a route's `include` and `exclude` let a tool stand. Of a document's operations its reader has seen to that. */
function isTaken({ include, exclude }: RouteConfig, name: string): boolean {
  if (include !== undefined && !include.some((glob) => matchesGlob(glob, name))) return false;
  return !exclude.some((glob) => matchesGlob(glob, name));
}

function draftTool(
  route: RouteConfig,
  source: ToolSource,
  compile: CompileSchema,
  log: ProblemLog,
): ToolDraft | undefined {
  const id = `${route.name}/${source.name}`;
  const words = readWords(route, source, id, log);
  const { said } = words;
  if (route.name.length + 2 + source.name.length > MAX_NAME) {
    const isDocumented = source.operation?.api !== undefined;
    const way = isDocumented ? '`rename` it in the route’s `openapi`, or `exclude` it' : 'shorten it';
    log.error(
      'name_too_long',
      source.path,
      `\`${route.name}__${source.name}\`, the tool’s name on \`/mcp\`, has more than ${MAX_NAME} characters; ${way}`,
    );
  }
  const api = documented(source, words, log);
  const carrier = typeof said.idempotency === 'object' ? said.idempotency.argument : undefined;
  const inputPath = source.operation === undefined ? source.path : [...source.path, 'input'];
  const isHttp = route.source.kind === 'http';
  const input =
    api === undefined
      ? compileAt(
          compile,
          carrier === undefined ? source.input : withoutArgument(source.input, carrier),
          source,
          inputPath,
          `the input of \`${id}\``,
          isHttp,
          log,
        )
      : new OperationInput(api.declared);
  const resultSchema = said.result ?? source.result;
  if (said.result !== undefined && source.result !== undefined && isHttp) {
    log.error(
      'said_twice',
      words.pathOf('result'),
      `the result of \`${id}\` is declared here and in its \`http\` entry; keep one`,
    );
  }
  const resultPath = said.result === undefined ? [...source.path, 'result'] : words.pathOf('result');
  const result =
    resultSchema === undefined
      ? api?.declared.result
      : compileAt(
          compile,
          resultSchema,
          source,
          resultPath,
          `the result of \`${id}\``,
          isHttp || said.result !== undefined,
          log,
        );
  if (source.listed !== undefined && said.result === undefined && result !== undefined)
    tellUnreadResult(id, result, source.path, log);
  const writes = readWrites(id, source, words, log);
  if (input === undefined) return undefined;
  const further = source.partial ?? [];
  const judged = further.length === 0 ? input : withPartial(input, further);
  // Only writes are asked for it, and finding out reads the whole schema: too much for each operation of a document.
  if (api === undefined && writes && judged.partial.length > 0) {
    log.warning(
      'schema_partial',
      inputPath,
      `the arguments of \`${id}\` cannot be judged in full (${judged.partial.slice(0, 3).join('; ')}): every call of it is asked`,
    );
  }
  return {
    id,
    route,
    source,
    words,
    input: judged,
    ...(api === undefined ? {} : { api }),
    result,
    writes,
    readsOutside: said.reads_outside ?? source.readsOutside,
    agents: readAgents(id, route, words, log),
    watched: new Set(),
  };
}

function readWords(route: RouteConfig, source: ToolSource, id: string, log: ProblemLog): ToolWords {
  const all = wordsFor(route, source.name, source.path, log);
  if (source.pinned) return all;
  const { words, left } = withoutLoweringGlobs(all);
  for (const word of left) {
    log.warning(
      'glob_on_unpinned',
      all.pathOf(word),
      `\`${word}\` of a glob is not applied to \`${id}\`, whose definition is not pinned; name the tool, or pin it`,
      'key',
    );
  }
  return words;
}

function compileAt(
  compile: CompileSchema,
  schema: JsonObject,
  source: ToolSource,
  path: ConfigPath,
  what: string,
  isOwn: boolean,
  log: ProblemLog,
): CompiledSchema<JsonObject> | undefined {
  // A document's schemas are its adapter's to judge; what the operator wrote in the configuration has a place to be told.
  if (!isOwn)
    return (source.compile ?? compile)(schema, source.dialect === undefined ? {} : { dialect: source.dialect });
  checkOwnSchema(schema, path, log);
  const compiled = compile(schema);
  if (compiled.unusable === undefined) return compiled;
  log.error('bad_schema', path, `${what} is no JSON Schema that can be used: ${compiled.unusable}`);
  return undefined;
}

/** What a server got wrong in the schema of its answers: the tool works, and no rule can go by what nobody can read. */
function tellUnreadResult(id: string, result: CompiledSchema<JsonObject>, path: ConfigPath, log: ProblemLog): void {
  const slips = result.partial.filter((reason) => !reason.startsWith(FREE_FORM));
  if (slips.length === 0) return;
  log.warning(
    'result_partial',
    path,
    `what \`${id}\` says of its answers cannot be read in full (${slips.slice(0, 3).join('; ')}): no rule can go by those fields`,
  );
}

function withPartial(schema: CompiledSchema<JsonObject>, further: readonly string[]): CompiledSchema<JsonObject> {
  return {
    schema: schema.schema,
    topLevel: schema.topLevel,
    partial: [...schema.partial, ...further],
    unusable: schema.unusable,
    kind: schema.kind,
    sealed: schema.sealed,
    render: () => schema.render(),
    required: schema.required,
    kindOf: (name) => schema.kindOf(name),
    validate: (value) => schema.validate(value),
    declares: (path) => schema.declares(path),
  };
}

function readWrites(id: string, source: ToolSource, words: ToolWords, log: ProblemLog): boolean {
  const word = words.said.writes;
  const given = source.writes;
  if (given !== undefined && 'said' in given) {
    if (word !== undefined && word !== given.said && words.isExact('writes')) {
      log.error(
        'said_twice',
        words.pathOf('writes'),
        `\`${id}\` says \`writes: ${given.said}\` in its \`http\` entry and \`${word}\` here`,
      );
    }
    return given.said;
  }
  if (word !== undefined) return word;
  if (given !== undefined) return given.assumed;
  const method = source.operation?.method ?? 'its method';
  log.error(
    'writes_not_said',
    source.path,
    `\`${id}\` is called by ${method}: say whether it \`writes\` (\`true\` or \`false\`)`,
  );
  return true;
}

function readAgents(id: string, route: RouteConfig, words: ToolWords, log: ProblemLog): ReadonlySet<string> {
  const said = words.said.agents;
  if (said === undefined) return route.agents;
  for (const [index, name] of said.entries()) {
    if (route.agents.has(name)) continue;
    log.error(
      'unknown_agent',
      [...words.pathOf('agents'), index],
      `\`${name}\` does not reach the route of \`${id}\`${suggest(name, [...route.agents])}`,
    );
  }
  return new Set(said.filter((name) => route.agents.has(name)));
}

/** Tells entries of `tools`, `include` and `exclude` that no tool of the route meets. */
function checkEntriesMeet(route: RouteConfig, source: RouteSource, log: ProblemLog): void {
  if (!source.complete && source.tools.length === 0) return;
  const names = source.tools.map((tool) => tool.name);
  const check = (glob: string, path: ConfigPath): void => {
    if (names.some((name) => matchesGlob(glob, name))) return;
    if (isGlob(glob) || !source.complete) {
      log.warning('meets_no_tool', path, `no tool of \`${route.name}\` is named \`${glob}\``);
    } else {
      log.error(
        'unknown_tool_name',
        path,
        `the route \`${route.name}\` has no tool \`${glob}\`${suggest(glob, names.slice(0, 50))}`,
      );
    }
  };
  for (const [index, entry] of route.tools.entries())
    check(entry.name, ['routes', route.index, 'tools', index, 'name']);
  if (route.source.kind === 'openapi') return;
  for (const [index, glob] of (route.include ?? []).entries()) check(glob, ['routes', route.index, 'include', index]);
  for (const [index, glob] of route.exclude.entries()) check(glob, ['routes', route.index, 'exclude', index]);
}
