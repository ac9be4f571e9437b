import type { BuiltCatalogue } from '../catalogue/build.ts';
import type { Config } from '../config/config.ts';
import type { Upstream } from '../exchange.ts';
import { createTrustedProxies } from '../http/trusted-proxies.ts';
import { httpOperations } from './http-operations.ts';
import { HttpRoute } from './http-route.ts';
import { openHttpUpstream } from './http-upstream.ts';
import { type Route, RouteTable } from './route-table.ts';

/** The routes of a loaded config, and what stands behind them by server name. */
export interface OpenRoutes {
  readonly table: RouteTable;
  readonly upstreams: ReadonlyMap<string, Upstream>;
}

/** Makes the adapters of every route. Opens no connection yet. */
export function openRoutes(config: Config, built: BuiltCatalogue): OpenRoutes {
  const routes: Route[] = [];
  const upstreams = new Map<string, Upstream>();
  const isTrustedProxy = createTrustedProxies(config.trustedProxies);
  for (const route of built.routes) {
    const operations = httpOperations(route, built);
    upstreams.set(route.name, openHttpUpstream(route, operations, config));
    routes.push(new HttpRoute(route, operations, isTrustedProxy));
  }
  return { table: new RouteTable(routes), upstreams };
}
