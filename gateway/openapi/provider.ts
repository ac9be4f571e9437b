import { type Api, ApiError, type ApiSelection } from '../../policy/openapi/api.ts';
import { readApi } from '../../policy/openapi/read-api.ts';
import { RoutingError } from '../../policy/route-template.ts';
import type { RouteDocument, RouteSource, ToolProvider } from '../catalogue/tool-source.ts';
import { isGlob } from '../catalogue/words.ts';
import type { RouteConfig, RouteKind } from '../config/config.ts';
import { type ConfigPath, type PositionOf, ProblemLog } from '../config/problem.ts';
import { suggest } from '../config/suggest.ts';
import { changedDocument, fetchApiFiles } from './fetch.ts';
import { isUnchanged, type LoadedApi, loadApiFiles } from './load.ts';
import { OperationSource } from './operation-source.ts';
import { validateApiDocument } from './validate.ts';

type OpenApiKind = Extract<RouteKind, { kind: 'openapi' }>;

/** What an OpenAPI route may find again or have looked at closer. */
export interface ProviderOptions {
  /** Documents that are in use: one that has not changed is not read again. */
  readonly known?: readonly RouteDocument[];
  /**
   * Holds the document against the schema of its version and looks for tools whose arguments cannot be judged in full:
   * seconds for a large one, so no start does it.
   */
  readonly thorough?: boolean;
}

/** Makes tools of the operations of a route's document. */
export function openApiProvider(options: ProviderOptions = {}): ToolProvider {
  return (route, positionOf) => readRoute(route, positionOf, options);
}

async function readRoute(route: RouteConfig, positionOf: PositionOf, options: ProviderOptions): Promise<RouteSource> {
  const log = new ProblemLog(positionOf);
  const path = ['routes', route.index, 'openapi'];
  const { source } = route;
  if (source.kind !== 'openapi') throw new TypeError(`\`${route.name}\` has no document`);
  // Told where the configuration is read; a stranger is sent neither a request nor the operator's headers.
  if (isForeign(route, source)) return { tools: [], complete: false, problems: [] };
  try {
    const document = await readDocument(route, source, options.known ?? []);
    const { api } = document;
    tellOperations(route, source, api, path, log);
    if (options.thorough === true) await lookCloser(document, path, log);
    const tools = api.operations.map((operation) => new OperationSource(operation, path));
    return { tools, complete: true, problems: log.problems, document };
  } catch (cause) {
    if (!(cause instanceof ApiError) && !(cause instanceof RoutingError)) throw cause;
    const code = cause instanceof RoutingError ? 'operation_ambiguous' : cause.code;
    log.error(code, path, `the document of \`${route.name}\` is not served: ${cause.message}`);
    // Incomplete, so that the words about its tools are not all told to be wrong too.
    return { tools: [], complete: false, problems: log.problems };
  }
}

function isForeign({ upstream = '' }: RouteConfig, { document }: OpenApiKind): boolean {
  return 'url' in document && URL.parse(document.url)?.origin !== URL.parse(upstream)?.origin;
}

async function readDocument(
  route: RouteConfig,
  source: OpenApiKind,
  known: readonly RouteDocument[],
): Promise<RouteDocument> {
  const selection = selectionOf(route, source);
  const key = JSON.stringify([source.document, route.upstream, selection, [...(selection.withoutHeaders ?? [])]]);
  const before = known.find((document) => document.key === key);
  if (before !== undefined && (await stillStands(before, source))) return before;
  const files = await readFiles(route, source);
  const api = readApi(files, selection);
  const { upstream = '' } = route;
  // Where the operator says a path, it stands for the one that the document names.
  const basePath = URL.parse(upstream)?.pathname === '/' ? plainBase(api.basePath) : '';
  return { key, api, basePath, digest: files.digest, files };
}

function selectionOf(route: RouteConfig, { rename }: OpenApiKind): ApiSelection {
  return {
    ...(route.include === undefined ? {} : { include: route.include }),
    exclude: route.exclude,
    rename,
    withoutHeaders: new Set(route.upstreamHeaders.map(({ name }) => name.toLowerCase())),
  };
}

/** A file is looked at again; what is pinned is what it was. */
async function stillStands({ files, digest }: RouteDocument, source: OpenApiKind): Promise<boolean> {
  if (source.digest !== undefined && source.digest !== digest) return false;
  return 'url' in source.document ? source.digest === digest : isUnchanged(files);
}

async function readFiles(route: RouteConfig, { document, digest }: OpenApiKind): Promise<LoadedApi> {
  if ('url' in document) {
    const headers = route.upstreamHeaders.flatMap(({ name, value }) => [name, value.reveal()]);
    return fetchApiFiles(document.url, digest, headers);
  }
  const files = await loadApiFiles(document.file);
  if (digest !== undefined && digest !== files.digest) throw changedDocument(document.file, digest, files.digest);
  return files;
}

/** What a path of the configuration must be, a document's must be too: it stands before every path that is sent. */
function plainBase(basePath: string): string {
  if (basePath === '' || /^(?:\/[A-Za-z0-9._~!$&'()*+,=:@-]+)+$/.test(basePath)) return basePath;
  throw new ApiError('api_invalid', `its base path \`${basePath}\` is not plain; say the path in \`upstream\``);
}

function tellOperations(route: RouteConfig, source: OpenApiKind, api: Api, path: ConfigPath, log: ProblemLog): void {
  for (const { name, method, pathTemplate, reason } of api.refused) {
    log.warning('operation_refused', path, `\`${name}\` (${method} ${pathTemplate}) is no tool: ${reason}`);
  }
  const names = api.operations.map(({ name }) => name);
  const unmet = new Set(api.unmet);
  const tell = (pattern: string, at: ConfigPath): void => {
    if (!unmet.has(pattern)) return;
    const isPattern = isGlob(pattern) || pattern.startsWith('tag:') || /^\/|\s\//.test(pattern);
    if (isPattern) log.warning('meets_no_tool', at, `no operation of \`${route.name}\` is met by \`${pattern}\``);
    else {
      const near = suggest(pattern, names.slice(0, 2_000));
      log.error('unknown_tool_name', at, `the document of \`${route.name}\` has no operation \`${pattern}\`${near}`);
    }
  };
  for (const [index, glob] of (route.include ?? []).entries()) tell(glob, ['routes', route.index, 'include', index]);
  for (const [index, glob] of route.exclude.entries()) tell(glob, ['routes', route.index, 'exclude', index]);
  for (const name of Object.keys(source.rename)) {
    if (!unmet.has(name)) continue;
    const near = suggest(name, names.slice(0, 2_000));
    const message = `the document of \`${route.name}\` has no operation \`${name}\` to rename${near}`;
    log.error('unknown_tool_name', [...path, 'rename', name], message, 'key');
  }
  if (api.operations.length === 0) {
    log.warning('no_tools', path, `nothing of the document of \`${route.name}\` becomes a tool`);
  }
}

const NAMED = 5;

async function lookCloser({ api, files }: RouteDocument, path: ConfigPath, log: ProblemLog): Promise<void> {
  for (const complaint of await validateApiDocument(files)) {
    log.warning('document_invalid', path, `the document is not as its version of OpenAPI says: ${complaint}`);
  }
  const partial = api.operations.filter((operation) => operation.partial.length > 0);
  if (partial.length === 0) return;
  const named = partial.slice(0, NAMED).map(({ name }) => `\`${name}\``);
  const more = partial.length > NAMED ? ` and ${partial.length - NAMED} more` : '';
  log.warning(
    'schema_partial',
    path,
    `the arguments of ${partial.length} of ${api.operations.length} operations cannot be judged in full: ${named.join(', ')}${more}; every call of those that write is asked, and \`toolgate tools\` says why`,
  );
}
