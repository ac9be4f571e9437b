import type { Gateway } from '../gateway.ts';
import type { Authenticator } from '../http/authenticate.ts';
import type { EdgeExchange } from '../http/edge-exchange.ts';
import type { EdgeUpgrade } from '../http/server.ts';
import type { McpService } from '../mcp/mcp-service.ts';

/** What a route has at hand for one request. */
export interface RouteContext {
  readonly gateway: Gateway;
  readonly authenticate: Authenticator;
  readonly mcp: McpService;
}

/** A route as the server sees it: a path prefix, and who answers below it. */
export interface Route {
  readonly name: string;
  /** Without a closing slash. */
  readonly path: string;
  /** Paths below it may hold `;`, which anywhere else is refused. */
  readonly takesMatrix: boolean;
  handle(exchange: EdgeExchange, context: RouteContext): Promise<void>;
  /** Whether a path below it may be upgraded (WebSocket); none may where this is absent. */
  takesUpgrade?(path: string): boolean;
  /** Passes an upgrade of such a path on, or answers why not. */
  upgrade?(upgrade: EdgeUpgrade, context: RouteContext): Promise<void>;
}

/** Routes by path prefix; the longest prefix of whole segments wins. */
export class RouteTable {
  readonly #routes: readonly Route[];

  constructor(routes: readonly Route[]) {
    this.#routes = [...routes].sort((a, b) => b.path.length - a.path.length);
  }

  find(path: string): Route | undefined {
    for (const route of this.#routes) {
      const { path: prefix } = route;
      if (path.startsWith(prefix) && (path.length === prefix.length || path.charCodeAt(prefix.length) === SLASH)) {
        return route;
      }
    }
    return undefined;
  }
}

const SLASH = 0x2f;
