import type { CallTable } from './calls.ts';
import { buildCallTable } from './calls.ts';
import { parseColang1 } from './colang1.ts';
import { parseColang2 } from './colang2.ts';
import type { Callee, FlowGraph } from './graph.ts';
import { buildGraph } from './graph.ts';
import { resolveImports } from './imports.ts';
import type { Version } from './line.ts';
import { outlineLines } from './outline.ts';
import type { Position, Problem } from './problem.ts';
import { Problems } from './problem.ts';
import type { RecordFlow, RulebookRecord } from './record.ts';
import { RECORD_FORMAT } from './record.ts';
import { detectVersion, scanLines } from './scan.ts';
import type { RuleSheet, SheetOptions } from './sheet.ts';
import { compileRuleSheet } from './sheet.ts';
import { allStubFlows } from './stubs.ts';
import type { FileSyntax, FlowSyntax } from './syntax.ts';
import { warnOfRecord } from './warnings.ts';

/** A flow is inlined where it is called; a longer chain of calls than this is refused. */
const MAX_CALL_DEPTH = 32;

/** A rulebook's source text. */
export interface RulebookSource {
  /** The name that problems and imports know it by, with `/` between folders. */
  readonly file: string;
  readonly text: string;
  /** Left out: told by the first definition. */
  readonly version?: Version;
}

export interface CompileOptions extends SheetOptions {
  /** An undefined bot message is an error, and a flow that ends on a question refuses. */
  readonly strict?: boolean;
  /** The catalogue's tools, as `server/tool`; left out, rules for unknown tools are not warned of. */
  readonly tools?: readonly string[];
  /** Rule sheets that belong to the same rulebook. */
  readonly sheets?: readonly RuleSheet[];
}

/** What compiling gives; there is no record where any problem is an error. */
export interface CompiledRulebook {
  readonly record: RulebookRecord | undefined;
  /** The tools that the rulebook governs, as its rules name them, sorted. */
  readonly governed: readonly string[];
  /** In order of file, line and column. */
  readonly problems: readonly Problem[];
}

/** Compiles sources, and rule sheets, into one record. Pure: what an import names must be among the sources. */
export function compileRulebook(sources: readonly RulebookSource[], options: CompileOptions = {}): CompiledRulebook {
  const problems = new Problems();
  const files = sources.map((source) => parseSource(source, problems));
  const stubs = resolveImports(files, problems);
  const flows = chooseFlows(files, problems);
  const graphs = buildFlows(flows, files, stubs, options.strict === true, problems);
  const sheets = (options.sheets ?? []).map((sheet) => compileRuleSheet(sheet, options));
  for (const sheet of sheets) for (const problem of sheet.problems) problems.add(problem);
  const entries = entriesOf(flows, graphs.table);
  const record: RulebookRecord = {
    format: RECORD_FORMAT,
    strict: options.strict === true,
    flows: [
      ...flows.map((flow, index) => recordFlow(flow, graphs.graphs[index], entries[index] === true)),
      ...sheets.flatMap((sheet) => sheet.flows),
    ],
  };
  const governed = [...new Set(toolsOf(record))].sort();
  if (!problems.failed) {
    const positions = graphs.graphs.map((graph) => graph.positions);
    const [first] = [...sources, ...(options.sheets ?? [])];
    if (governed.length === 0 && first !== undefined) {
      const message = 'no rule here names a tool, so this rulebook governs none; write `execute NAME` where one is run';
      problems.warn('governs_nothing', { file: first.file, line: 1, column: 1 }, message);
    }
    warnOfRecord(record, (flow, node) => positions[flow]?.[node], options.tools, problems);
  }
  return {
    record: problems.failed ? undefined : record,
    governed: problems.failed ? [] : governed,
    problems: [...problems.list].sort(byPlace),
  };
}

function byPlace(left: Problem, right: Problem): number {
  if (left.file !== right.file) return left.file < right.file ? -1 : 1;
  return left.line - right.line || left.column - right.column;
}

function* toolsOf(record: RulebookRecord): Generator<string> {
  for (const flow of record.flows) {
    for (const node of flow.nodes) if (node.op === 'execute' || node.op === 'answer') yield node.tool;
  }
}

function parseSource(source: RulebookSource, problems: Problems): FileSyntax {
  const version = source.version ?? detectVersion(source.text);
  if (version !== '1.0' && version !== '2.x') {
    problems.error('version', { file: source.file, line: 1, column: 1 }, 'the version is `1.0` or `2.x`');
    return { file: source.file, version: '1.0', flows: [], messages: [], imports: [] };
  }
  // One unreadable line makes others look wrong, so each stage starts only on what the one before could read.
  const own = new Problems();
  const lines = scanLines(source.file, source.text, version, own);
  const outlines = own.failed ? [] : outlineLines(lines, own);
  const parse = version === '1.0' ? parseColang1 : parseColang2;
  const parsed = parse(source.file, own.failed ? [] : outlines, own);
  for (const problem of own.list) problems.add(problem);
  return parsed;
}

/** One flow for each name: an override takes the place of what it overrides; any other second definition is an error. */
function chooseFlows(files: readonly FileSyntax[], problems: Problems): readonly FlowSyntax[] {
  const byName = new Map<string, FlowSyntax[]>();
  for (const file of files) {
    for (const flow of file.flows) {
      const same = byName.get(flow.name);
      if (same === undefined) byName.set(flow.name, [flow]);
      else if (flow.name.startsWith('unnamed flow (')) byName.set(`${flow.name} of ${file.file}`, [flow]);
      else same.push(flow);
    }
  }
  const bundled = allStubFlows();
  const chosen: FlowSyntax[] = [];
  for (const [name, same] of byName) {
    const overriding = same.filter((flow) => flow.override);
    const count = same.length + (bundled.has(name) ? 1 : 0);
    const first = same[0];
    if (first === undefined) continue;
    const override = overriding[0];
    if (override !== undefined) {
      if (overriding.length !== 1 || count !== 2) {
        const message = `\`@override\` needs exactly two definitions of \`${name}\`, this one and the one that it replaces; there are ${count}`;
        problems.error('override', override.at, message);
      }
      chosen.push(override);
      continue;
    }
    for (const second of same.slice(1)) {
      const message = `\`${name}\` is defined already (line ${first.at.line} of ${first.at.file}); rename one of the two`;
      problems.error('duplicate_flow', second.at, message);
    }
    chosen.push(first);
  }
  return chosen;
}

/** A name shared by all flows and given a value by any of them is a variable everywhere, never a fact. */
function sharedNames(files: readonly FileSyntax[]): ReadonlyMap<string, Position> {
  const flows = files.flatMap((file) => file.flows);
  const globals = new Set(flows.flatMap((flow) => [...flow.globals]));
  const shared = new Map<string, Position>();
  for (const flow of flows) {
    for (const [name, at] of flow.assigned) {
      const isShared = flow.version === '1.0' || globals.has(name);
      if (isShared && !shared.has(name)) shared.set(name, at);
    }
  }
  return shared;
}

function buildFlows(
  flows: readonly FlowSyntax[],
  files: readonly FileSyntax[],
  stubs: ReadonlySet<string>,
  strict: boolean,
  problems: Problems,
): { graphs: readonly FlowGraph[]; table: CallTable } {
  const indexOf = new Map(flows.map((flow, index) => [flow.name, index]));
  const table = buildCallTable(flows, indexOf);
  const texts = new Map<string, readonly string[]>();
  for (const message of files.flatMap((file) => file.messages)) {
    texts.set(message.name, [...(texts.get(message.name) ?? []), ...message.texts]);
  }
  const shared = sharedNames(files);
  const callee = (name: string): Callee => {
    const index = indexOf.get(name);
    if (index === undefined) return stubs.has(name) ? { kind: 'stub' } : undefined;
    return {
      kind: 'flow',
      index,
      consequential: table.consequential[index] === true,
      begins: table.begins[index] === true,
    };
  };
  const graphs = flows.map((flow, index) => {
    if ((table.depth[index] ?? 1) > MAX_CALL_DEPTH) {
      problems.error(
        'flow_depth',
        flow.at,
        `\`${flow.name}\` calls flows that call flows, more than ${MAX_CALL_DEPTH} deep; shorten the chain`,
      );
    }
    return buildGraph(flow, {
      scope: { assigned: (name) => flow.assigned.get(name) ?? shared.get(name) },
      problems,
      texts: (message) => texts.get(message) ?? [],
      undefinedMessage: (message) => strict && message !== '...' && !message.startsWith('$') && !texts.has(message),
      callee,
      flowNames: () => indexOf.keys(),
      recursive: (index2) => table.cyclic[index] === true && table.component[index2] === table.component[index],
    });
  });
  return { graphs, table };
}

/**
 * A flow that nobody calls is an entry, unless it is a subflow, which runs only where it is called. Flows that call each
 * other and that nothing else calls are entries too: otherwise no walk would ever see that they cannot be decided.
 */
function entriesOf(flows: readonly FlowSyntax[], table: CallTable): readonly boolean[] {
  const calledFromOutside = new Set<number>();
  for (const [index, callers] of table.callers.entries()) {
    const own = table.component[index] ?? -1;
    if (callers.some((caller) => table.component[caller] !== own)) calledFromOutside.add(own);
  }
  return flows.map((flow, index) => {
    if (table.cyclic[index] === true) return !calledFromOutside.has(table.component[index] ?? -1);
    return (table.callers[index] ?? []).length === 0 && !flow.callable;
  });
}

function recordFlow(flow: FlowSyntax, graph: FlowGraph | undefined, entry: boolean): RecordFlow {
  return {
    name: flow.name,
    file: flow.at.file,
    line: flow.at.line,
    entry,
    loops: graph?.loops ?? false,
    start: graph?.start ?? 0,
    nodes: graph?.nodes ?? [],
  };
}
