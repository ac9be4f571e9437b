import { mayCover, type PassPattern, parsePassPattern, passPatternFault } from '../../policy/pass-pattern.ts';
import { parseTemplate, RoutingError, type Segment } from '../../policy/route-template.ts';
import type { Config } from '../config/config.ts';
import type { ProblemLog } from '../config/problem.ts';
import type { RuntimeRoute } from './runtime-route.ts';

/** Something that only checked calls may reach, by the whole path that its backend sees. */
interface Guarded {
  readonly place: string;
  readonly what: string;
  readonly template: readonly Segment[];
  /** An MCP server may answer everything below its path as it answers the path itself. */
  readonly below?: true;
}

/** Where a route's requests go: `http://127.0.0.1:9100/v1` and what the document puts before its paths. */
export function upstreamUrl(route: Pick<RuntimeRoute, 'upstream' | 'document'>): string {
  return `${route.upstream ?? ''}${route.document?.basePath ?? ''}`;
}

/**
 * Tells every path of `pass` that might reach a tool around its check, of its own route or of another one with the same
 * upstream: what a request does must not depend on which of two doors it takes.
 */
export function checkPasses(config: Config, routes: readonly RuntimeRoute[], log: ProblemLog): void {
  if (routes.every(({ pass }) => pass.length === 0)) return;
  const guarded = routes.flatMap(guardedOf);
  for (const route of config.routes) {
    const runtime = routes.find(({ name }) => name === route.name);
    const url = runtime === undefined ? null : URL.parse(upstreamUrl(runtime));
    if (url === null) continue;
    for (const [index, text] of route.pass.entries()) {
      // A broken pattern is told where the configuration is read.
      if (passPatternFault(text) !== undefined) continue;
      const pattern = below(url.pathname, text);
      const place = placeOf(url);
      const met = guarded.find((one) => one.place === place && meets(pattern, one));
      if (met === undefined) continue;
      log.error(
        'pass_covers_tool',
        ['routes', route.index, 'pass', index],
        `\`${text}\` would let ${met.what} be reached unchecked; name paths that are no tool’s`,
      );
    }
  }
}

function meets(pattern: PassPattern, { template, below }: Guarded): boolean {
  if (mayCover(pattern, template)) return true;
  const above = template.filter(({ literal }) => literal !== '');
  const rest = pattern.segments[above.length];
  if (below !== true || rest === undefined) return false;
  // At a root there is nothing that is not below: there a path that is named letter by letter is the operator's word.
  if (above.length === 0) return rest === '*' || rest === '**';
  return mayCover({ ...pattern, segments: pattern.segments.slice(0, above.length) }, above);
}

/** Host and port that a URL leads to; the names of this machine are one, and so are those of both schemes. */
function placeOf({ hostname, port, protocol }: URL): string {
  const host = hostname.replace(/\.$/, '');
  const isHere = host === 'localhost' || host === '[::1]' || host.startsWith('127.');
  return `${isHere ? 'localhost' : host}:${port === '' ? (protocol === 'https:' ? 443 : 80) : port}`;
}

/** A pattern of a route as a pattern of whole paths. */
function below(pathname: string, text: string): PassPattern {
  const { segments } = parsePassPattern(text);
  return { text, segments: [...pathname.split('/').filter((segment) => segment !== ''), ...segments] };
}

function guardedOf(route: RuntimeRoute): readonly Guarded[] {
  if (route.source.kind === 'mcp') {
    const url = 'url' in route.source ? URL.parse(route.source.url) : null;
    if (url === null) return [];
    const what = `the MCP server \`${route.name}\``;
    return [{ place: placeOf(url), what, template: segmentsOf(what, url.pathname), below: true }];
  }
  const url = URL.parse(upstreamUrl(route));
  if (url === null) return [];
  const base = url.pathname.replace(/\/+$/, '');
  return route.operations.map(({ toolId, method, pathTemplate }) => {
    const what = `\`${toolId}\` (${method} ${pathTemplate})`;
    return { place: placeOf(url), what, template: segmentsOf(toolId, `${base}${pathTemplate}`) };
  });
}

/** A broken template is told where the routes are opened; a path of it leads nowhere. */
function segmentsOf(name: string, pathTemplate: string): readonly Segment[] {
  try {
    return parseTemplate({ name, method: 'GET', pathTemplate });
  } catch (error) {
    if (error instanceof RoutingError) return [];
    throw error;
  }
}
