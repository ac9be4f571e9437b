import { type Catalogue, makeCatalogue } from '../../policy/catalogue.ts';
import type { AfterRule } from '../../policy/tool.ts';
import type { JsonObject } from '../../receipts/json-value.ts';
import type { Config, Issuer, RouteConfig } from '../config/config.ts';
import { foldWarnings, type Problem, ProblemLog } from '../config/problem.ts';
import { lintDescriptions } from '../mcp/lint-descriptions.ts';
import { checkPasses } from './check-passes.ts';
import { draftTools } from './draft-tools.ts';
import { type Fact, readFacts } from './facts.ts';
import { checkUndoWords, finishTool } from './finish-tool.ts';
import { readHttpTools } from './http-source.ts';
import { NameTable } from './names.ts';
import { checkOrderCycles, readAfter, readNotAfter } from './order.ts';
import { type RuntimeRoute, runtimeRoute } from './runtime-route.ts';
import { type CompileSchema, type Drafts, resolveTool, type ToolDraft } from './tool-draft.ts';
import { readToolSettings, type ToolSettings } from './tool-settings.ts';
import type { RouteDocument, RouteSource, ToolProvider } from './tool-source.ts';
import { readUndo } from './undo.ts';

/** What making a catalogue needs from elsewhere. */
export interface CatalogueDeps {
  readonly compileSchema: CompileSchema;
  /** Find the tools of routes that are not listed by hand. Absent: such a route has none. */
  readonly openapi?: ToolProvider;
  readonly mcp?: ToolProvider;
}

/** All that follows from a configuration about its tools. With an error among the problems it is only to be looked at. */
export interface BuiltCatalogue {
  readonly catalogue: Catalogue;
  readonly routes: readonly RuntimeRoute[];
  /** By pair; one for each tool of the catalogue. */
  readonly settings: ReadonlyMap<string, ToolSettings>;
  readonly facts: ReadonlyMap<string, Fact>;
  /** What MCP servers list of their tools, by pair. */
  readonly listed: ReadonlyMap<string, JsonObject>;
  /** Routes whose MCP server could not be asked for its tools. */
  readonly unlisted: readonly string[];
  /** The issuers of the configuration, their tools as pairs. */
  readonly issuers: readonly Issuer[];
  readonly problems: readonly Problem[];
}

/** Makes the catalogue of a configuration: tools from their routes, every name resolved to a pair, every word checked. */
export async function buildCatalogue(config: Config, deps: CatalogueDeps): Promise<BuiltCatalogue> {
  const log = new ProblemLog(config.positionOf);
  const byId = new Map<string, ToolDraft>();
  const named: { id: string; name: string }[] = [];
  const open = new Set<string>();
  const documents = new Map<RouteConfig, RouteDocument>();
  // All at once: what takes its time is servers that are asked for their tools.
  const sources = await Promise.all(
    config.routes.map(async (route) => ({ route, source: await sourceOf(config, route, deps) })),
  );
  for (const { route, source } of sources) {
    log.add(source.problems);
    if (!source.complete) open.add(route.name);
    if (source.document !== undefined) documents.set(route, source.document);
    // A tool whose own words are at fault keeps its name, so that those who name it are not told that it is not there.
    named.push(...source.tools.map(({ name }) => ({ id: `${route.name}/${name}`, name })));
    for (const draft of draftTools(route, source, deps.compileSchema, log)) byId.set(draft.id, draft);
  }
  const drafts: Drafts = { byId, names: new NameTable(named, open), log };
  const all = [...byId.values()];
  const after = new Map<string, readonly AfterRule[]>(all.map((draft) => [draft.id, readAfter(drafts, draft)]));
  const bound = all.map((draft) => ({
    draft,
    after: after.get(draft.id) ?? [],
    notAfter: readNotAfter(drafts, draft),
    undo: readUndo(drafts, draft),
  }));
  checkOrderCycles(drafts, after);
  const undos = new Set(bound.flatMap(({ undo }) => (undo === undefined || undo === 'none' ? [] : [undo.tool])));
  for (const draft of all) checkUndoWords(drafts, draft, undos);
  lintDescriptions(all, log);
  const settings = new Map(all.map((draft) => [draft.id, readToolSettings(config, drafts, draft)]));
  const facts = readFacts(config, drafts);
  const issuers = resolveIssuers(config, drafts);
  checkReceiptRoutes(config, drafts);
  // Last, since everything before may have marked a result's field as watched.
  const tools = bound.map(({ draft, ...resolved }) => finishTool(drafts, draft, resolved));
  const routes = config.routes.map((route) => runtimeRoute(route, operationsOf(route, all), documents.get(route)));
  checkPasses(config, routes, log);
  return {
    catalogue: makeCatalogue(tools, config.agents.values()),
    routes,
    settings,
    facts,
    listed: new Map(all.flatMap(({ id, source: { listed } }) => (listed === undefined ? [] : [[id, listed]]))),
    unlisted: sources.flatMap(({ route, source }) => (source.unlisted === true ? [route.name] : [])),
    issuers,
    problems: foldWarnings(log.problems),
  };
}

async function sourceOf(config: Config, route: RouteConfig, deps: CatalogueDeps): Promise<RouteSource> {
  const { kind } = route.source;
  if (kind === 'http') return readHttpTools(config, route);
  const provider = kind === 'openapi' ? deps.openapi : deps.mcp;
  return provider === undefined
    ? { tools: [], complete: false, problems: [] }
    : await provider(route, config.positionOf, config);
}

function operationsOf(route: RouteConfig, drafts: readonly ToolDraft[]): RuntimeRoute['operations'] {
  return drafts.flatMap(({ id, route: own, source: { operation }, api }) => {
    if (own !== route || operation === undefined) return [];
    const { method, pathTemplate } = operation;
    return [{ toolId: id, method, pathTemplate, ...(api === undefined ? {} : { api }) }];
  });
}

function resolveIssuers(config: Config, drafts: Drafts): readonly Issuer[] {
  return config.keys.issuers.map((issuer) => ({
    ...issuer,
    tools: issuer.tools.flatMap((name, at) => {
      const id = resolveTool(drafts, name, undefined, ['keys', 'issuers', issuer.index, 'tools', at]);
      return id === undefined ? [] : [id];
    }),
  }));
}

/** Tells what a route that admits receipts leaves to whoever issued them. */
function checkReceiptRoutes(config: Config, drafts: Drafts): void {
  if (config.keys.issuers.length === 0) return;
  for (const route of config.routes) {
    if (route.verify === 'check') continue;
    const left = ['after', 'not_after', 'at_most', 'checks', 'spend', 'undo'].filter((word) =>
      [...drafts.byId.values()].some((draft) => draft.route === route && Object.hasOwn(draft.words.said, word)),
    );
    const enforced = (['schema', 'destination', 'limits'] as const).filter(
      (part) => !config.receipts.enforce.has(part),
    );
    const words = [
      'history',
      'taint',
      'confirmation',
      ...(config.rulebook.length > 0 ? ['rulebook'] : []),
      ...left,
      ...enforced,
    ];
    drafts.log.warning(
      'receipt_decides',
      ['routes', route.index, 'verify'],
      `an issuer’s receipt on \`${route.name}\` is its issuer’s decision; not decided again: ${words.map((word) => `\`${word}\``).join(', ')}`,
    );
  }
}
