import type { EdgeExchange } from '../http/edge-exchange.ts';
import { fault } from '../http/problems.ts';
import type { Route, RouteContext } from '../routes/route-table.ts';

/** The path that an MCP route has of its own: the same endpoint as `/mcp/{server}`. */
export class McpRoute implements Route {
  readonly name: string;
  readonly path: string;
  readonly takesMatrix = false;

  constructor(name: string, path: string) {
    this.name = name;
    this.path = path;
  }

  async handle(exchange: EdgeExchange, { mcp, authenticate }: RouteContext): Promise<void> {
    if (exchange.path !== this.path)
      return exchange.problem(fault('no_route', 'an MCP endpoint has no paths below it'));
    await mcp.handle(exchange, authenticate, this.name);
  }
}

/** `/mcp` and all below it. */
export class McpEndpoints implements Route {
  readonly name = 'mcp';
  readonly path = '/mcp';
  readonly takesMatrix = false;

  async handle(exchange: EdgeExchange, { mcp, authenticate }: RouteContext): Promise<void> {
    const [, , server, ...more] = exchange.path.split('/');
    if (more.length > 0 || server === '')
      return exchange.problem(fault('no_route', 'an MCP endpoint is `/mcp` or `/mcp/{server}`'));
    await mcp.handle(exchange, authenticate, server);
  }
}
