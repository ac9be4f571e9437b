import type { BuiltCatalogue } from '../catalogue/build.ts';
import type { Config } from '../config/config.ts';
import type { Upstream } from '../exchange.ts';
import { createTrustedProxies } from '../http/trusted-proxies.ts';
import { McpEndpoints, McpRoute } from '../mcp/mcp-route.ts';
import { McpUpstream } from '../mcp/mcp-upstream.ts';
import type { ServerRegistry } from '../mcp/server-registry.ts';
import { httpOperations } from './http-operations.ts';
import { HttpRoute } from './http-route.ts';
import { openHttpUpstream } from './http-upstream.ts';
import { PassPaths } from './pass-paths.ts';
import { type Route, RouteTable } from './route-table.ts';

/** The routes of a loaded config, and what stands behind them by server name. */
export interface OpenRoutes {
  readonly table: RouteTable;
  readonly upstreams: ReadonlyMap<string, Upstream>;
  /** What lets requests through unchecked. */
  readonly passes: readonly PassPaths[];
}

/** Makes the adapters of every route. Opens no connection yet. */
export function openRoutes(config: Config, built: BuiltCatalogue, servers: ServerRegistry): OpenRoutes {
  const routes: Route[] = [new McpEndpoints()];
  const upstreams = new Map<string, Upstream>();
  const passes: PassPaths[] = [];
  const isTrustedProxy = createTrustedProxies(config.trustedProxies);
  for (const route of built.routes) {
    if (route.source.kind === 'mcp') {
      upstreams.set(route.name, new McpUpstream(servers.get(route), route.annotations === 'trusted'));
      routes.push(new McpRoute(route.name, route.path));
      continue;
    }
    const operations = httpOperations(route, built);
    upstreams.set(route.name, openHttpUpstream(route, operations, config));
    const passed = route.pass.length === 0 ? undefined : new PassPaths(route, isTrustedProxy);
    if (passed !== undefined) passes.push(passed);
    routes.push(new HttpRoute(route, operations, isTrustedProxy, passed));
  }
  return { table: new RouteTable(routes), upstreams, passes };
}
