import type { RouteConfig } from '../config/config.ts';
import type { HttpMethod } from '../config/raw.ts';
import type { PathTemplate } from './path-template.ts';

/** A tool's request on its route: method, and path below the route's prefix. */
export interface Operation {
  readonly toolId: string;
  readonly method: HttpMethod;
  /** `/orders/{order_id}`. */
  readonly pathTemplate: string;
  readonly template: PathTemplate;
}

/** A route as the server and its upstream need it: the configuration's words with defaults, and what it serves. */
export interface RuntimeRoute
  extends Pick<
    RouteConfig,
    | 'name'
    | 'path'
    | 'upstream'
    | 'source'
    | 'verify'
    | 'agents'
    | 'timeoutMs'
    | 'limitBytes'
    | 'upstreamHeaders'
    | 'headers'
    | 'passAuthorization'
    | 'methods'
    | 'annotations'
    | 'pins'
    | 'pass'
    | 'idempotencyRequired'
  > {
  /** In configuration order. Empty for an MCP route. */
  readonly operations: readonly Operation[];
}

/** A route of the configuration with the operations that its tools have. */
export function runtimeRoute(route: RouteConfig, operations: readonly Operation[]): RuntimeRoute {
  const { index: _index, tools: _tools, include: _include, exclude: _exclude, ...kept } = route;
  return { ...kept, operations };
}
