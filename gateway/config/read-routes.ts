import { passPatternFault } from '../../policy/pass-pattern.ts';
import type { RouteConfig, RouteKind } from './config.ts';
import type { ConfigPath } from './problem.ts';
import type { RawConfig, RawRoute } from './raw.ts';
import { readHeaders } from './read-headers.ts';
import { readUpstreamTls } from './read-upstream-tls.ts';
import type { Reading } from './reading.ts';
import { suggest } from './suggest.ts';

/** First segments that the gateway serves itself. */
const RESERVED: ReadonlySet<string> = new Set(['v1', 'mcp', 'console', 'healthz', 'readyz', 'metrics', 'openapi.json']);

/** Routes. Faults: names, paths and kinds that clash, agents that are not there, addresses that are none. */
export function readRoutes(raw: RawConfig, reading: Reading): readonly RouteConfig[] {
  const required = raw.idempotency?.required ?? false;
  const routes = raw.routes.flatMap((route, index) => readRoute(raw, route, index, required, reading));
  checkNames(raw, reading);
  checkPaths(raw, reading);
  return routes;
}

function readRoute(
  raw: RawConfig,
  route: RawRoute,
  index: number,
  required: boolean,
  reading: Reading,
): readonly RouteConfig[] {
  const path = ['routes', index];
  const source = readKind(route, path, reading);
  const agents = readRouteAgents(raw, route.agents, [...path, 'agents'], reading);
  checkToolEntries(route, path, reading);
  const upstream = readUpstream(route, path, reading);
  const upstreamTls = readUpstreamTls(route, path, reading);
  const headers = readHeaders(route, path, reading);
  if (source !== undefined && source.kind !== 'mcp') {
    for (const word of ['methods', 'annotations', 'pins'] as const) {
      if (route[word] === undefined) continue;
      reading.log.warning(
        'word_without_effect',
        [...path, word],
        `\`${word}\` says something of an MCP server alone`,
        'key',
      );
    }
  }
  checkPasses(route, path, reading);
  if (source === undefined) return [];
  const given = route.idempotency;
  return [
    {
      index,
      name: route.name,
      path: pathOf(route),
      ...(upstream === undefined ? {} : { upstream }),
      verify: route.verify ?? 'check',
      agents,
      source,
      tools: route.tools ?? [],
      timeoutMs: reading.durationMs(route.timeout, '30s'),
      limitBytes: reading.sizeBytes(route.limit, '1MiB'),
      ...upstreamTls,
      ...headers,
      ...(route.methods === undefined ? {} : { methods: route.methods }),
      annotations: route.annotations ?? 'untrusted',
      pins: route.pins ?? 'first_use',
      pass: route.pass ?? [],
      ...(route.include === undefined ? {} : { include: route.include }),
      exclude: route.exclude ?? [],
      idempotencyRequired: given === undefined ? required : given === 'required',
    },
  ];
}

/** Paths that are let through unchecked; whether they would cover a tool is only known with the tools. */
function checkPasses(route: RawRoute, path: ConfigPath, reading: Reading): void {
  if (route.pass === undefined) return;
  if (route.mcp !== undefined) {
    reading.log.error(
      'route_kind',
      [...path, 'pass'],
      'an MCP route has no paths of its own to let through; put `pass` on a route with an `upstream`',
      'key',
    );
    return;
  }
  for (const [index, pattern] of route.pass.entries()) {
    const fault = passPatternFault(pattern);
    if (fault === undefined) continue;
    reading.log.error(
      'wrong_value',
      [...path, 'pass', index],
      `\`${pattern}\` ${fault}; write plain segments, \`*\` for one and \`**\` at the end for all below`,
    );
  }
}

function pathOf(route: RawRoute): string {
  return route.path ?? `/${route.name}`;
}

function readKind(route: RawRoute, path: ConfigPath, reading: Reading): RouteKind | undefined {
  const kinds = (['http', 'openapi', 'mcp'] as const).filter((kind) => route[kind] !== undefined);
  if (kinds.length !== 1) {
    const message =
      kinds.length === 0
        ? `the route \`${route.name}\` says nothing of its calls; give it one of \`http\`, \`openapi\`, \`mcp\``
        : `the route \`${route.name}\` has ${kinds.map((kind) => `\`${kind}\``).join(' and ')}; a route is of one kind`;
    reading.log.error('route_kind', kinds[1] === undefined ? path : [...path, kinds[1]], message, 'key');
  }
  if (route.http !== undefined) return { kind: 'http', calls: route.http };
  if (route.openapi !== undefined) return readOpenApi(route, route.openapi, path, reading);
  if (route.mcp === undefined) return undefined;
  const mcp = typeof route.mcp === 'string' ? { url: route.mcp } : route.mcp;
  const at = typeof route.mcp === 'string' ? [...path, 'mcp'] : [...path, 'mcp', 'url'];
  if ((mcp.url === undefined) === (mcp.command === undefined)) {
    reading.log.error('route_kind', [...path, 'mcp'], 'an MCP server has either `url` or `command`');
  }
  if (mcp.command === undefined) {
    if (mcp.url !== undefined) checkUrl(mcp.url, at, reading);
    return { kind: 'mcp', url: mcp.url ?? '' };
  }
  const env = Object.entries(mcp.env ?? {}).map(([name, value]) => [
    name,
    reading.secret(value, [...path, 'mcp', 'env', name]),
  ]);
  return { kind: 'mcp', command: mcp.command, env: Object.fromEntries(env), folder: reading.output(mcp.folder ?? '.') };
}

function readOpenApi(
  route: RawRoute,
  openapi: NonNullable<RawRoute['openapi']>,
  path: ConfigPath,
  reading: Reading,
): RouteKind {
  const { document, digest, rename = {} } = typeof openapi === 'string' ? { document: openapi } : openapi;
  const at = typeof openapi === 'string' ? [...path, 'openapi'] : [...path, 'openapi', 'document'];
  const more = { rename, ...(digest === undefined ? {} : { digest }) };
  if (!/^https?:\/\//.test(document)) {
    reading.exists(document, at);
    return { kind: 'openapi', document: { file: reading.file(document) }, ...more };
  }
  checkUrl(document, at, reading);
  // The operator's headers for the upstream go with the request, and nobody else describes the upstream.
  const origin = URL.parse(document)?.origin;
  if (route.upstream !== undefined && origin !== URL.parse(route.upstream)?.origin) {
    reading.log.error(
      'foreign_document',
      at,
      `\`${document}\` is not on the route's \`upstream\`; give a document from elsewhere as a file`,
    );
  }
  return { kind: 'openapi', document: { url: document }, ...more };
}

function readUpstream(route: RawRoute, path: ConfigPath, reading: Reading): string | undefined {
  if (route.upstream === undefined) {
    if (route.mcp === undefined) {
      reading.log.error(
        'missing_word',
        [...path, 'upstream'],
        `the route \`${route.name}\` has no \`upstream\`: where do its calls go?`,
        'key',
      );
    }
    return undefined;
  }
  if (route.mcp !== undefined) {
    reading.log.error(
      'route_kind',
      [...path, 'upstream'],
      'an MCP route says its server under `mcp`; take `upstream` out',
      'key',
    );
  }
  checkUrl(route.upstream, [...path, 'upstream'], reading);
  return route.upstream.replace(/\/+$/, '');
}

function checkUrl(text: string, path: ConfigPath, reading: Reading): void {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined) {
    reading.log.error('wrong_value', path, `\`${text}\` is no address`);
  } else if (url.username !== '' || url.password !== '') {
    reading.log.error(
      'wrong_value',
      path,
      'an address carries no user and password; send them with `upstream_headers`',
    );
  } else if (
    url.search !== '' ||
    url.hash !== '' ||
    /\/\/|\/\.{1,2}(\/|$)|[;\\%]/.test(text.slice(text.indexOf('://') + 3))
  ) {
    reading.log.error(
      'wrong_value',
      path,
      `\`${text}\` must be plain: no query, no fragment, no dots, encodings or doubled slashes in its path`,
    );
  }
}

function readRouteAgents(
  raw: RawConfig,
  names: readonly string[] | undefined,
  path: ConfigPath,
  reading: Reading,
): ReadonlySet<string> {
  const known = Object.keys(raw.agents);
  for (const [index, name] of (names ?? []).entries()) {
    if (known.includes(name)) continue;
    reading.log.error('unknown_agent', [...path, index], `there is no agent \`${name}\`${suggest(name, known)}`);
  }
  return new Set(names ?? known);
}

function checkToolEntries(route: RawRoute, path: ConfigPath, reading: Reading): void {
  const names = new Set<string>();
  for (const [index, entry] of (route.tools ?? []).entries()) {
    if (names.has(entry.name)) {
      reading.log.error(
        'duplicate_name',
        [...path, 'tools', index, 'name'],
        `there are two entries for \`${entry.name}\`; put their words into one`,
      );
    }
    names.add(entry.name);
  }
  const calls = new Set<string>();
  for (const [index, call] of (route.http ?? []).entries()) {
    if (calls.has(call.name)) {
      reading.log.error(
        'duplicate_name',
        [...path, 'http', index, 'name'],
        `there are two calls \`${call.name}\` on this route`,
      );
    }
    calls.add(call.name);
  }
}

function checkNames(raw: RawConfig, reading: Reading): void {
  const names = new Set<string>();
  for (const [index, { name }] of raw.routes.entries()) {
    const path = ['routes', index, 'name'];
    // `server__tool` is how one endpoint over all servers names a tool.
    if (name.includes('__'))
      reading.log.error(
        'server_name',
        path,
        `\`${name}\` must not hold \`__\`, which parts server and tool on \`/mcp\``,
      );
    if (names.has(name)) reading.log.error('duplicate_name', path, `there are two routes \`${name}\``);
    names.add(name);
  }
}

function checkPaths(raw: RawConfig, reading: Reading): void {
  const paths: string[] = [];
  for (const [index, route] of raw.routes.entries()) {
    const path = pathOf(route);
    const at = ['routes', index, 'path'];
    if (RESERVED.has(path.split('/')[1] ?? '')) {
      reading.log.error(
        'reserved_path',
        at,
        `\`${path}\` belongs to the gateway itself; give the route another \`path\``,
      );
    }
    if (/\/\.{1,2}(\/|$)/.test(path)) reading.log.error('wrong_value', at, `\`${path}\` must not hold \`.\` or \`..\``);
    const clash = paths.find((other) => other === path || other.startsWith(`${path}/`) || path.startsWith(`${other}/`));
    if (clash === path) reading.log.error('duplicate_path', at, `two routes are served at \`${path}\``);
    else if (clash !== undefined) {
      reading.log.error(
        'duplicate_path',
        at,
        `\`${path}\` and \`${clash}\` lie within each other; no path may begin with another route’s`,
      );
    }
    paths.push(path);
  }
}
