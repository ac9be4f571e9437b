import type { ApiOperation } from '../../policy/openapi/api.ts';
import type { RouteConfig } from '../config/config.ts';
import type { RouteDocument } from './tool-source.ts';

/** A tool's request on its route: method, and path below the route's prefix. */
export interface Operation {
  readonly toolId: string;
  readonly method: string;
  /** `/orders/{order_id}`. */
  readonly pathTemplate: string;
  /** The operation of a document. */
  readonly api?: DocumentedOperation;
}

/** An operation of a document as its callers see it, and as it is sent. */
export interface DocumentedOperation {
  readonly declared: ApiOperation;
  /** With the argument that carries the gateway's key. */
  readonly whole: ApiOperation;
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
    | 'upstreamTls'
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
  /** What the tools of an OpenAPI route were made of. */
  readonly document?: RouteDocument;
}

/** A route of the configuration with the operations that its tools have. */
export function runtimeRoute(
  route: RouteConfig,
  operations: readonly Operation[],
  document: RouteDocument | undefined,
): RuntimeRoute {
  const { index: _index, tools: _tools, include: _include, exclude: _exclude, ...kept } = route;
  return { ...kept, operations, ...(document === undefined ? {} : { document }) };
}
