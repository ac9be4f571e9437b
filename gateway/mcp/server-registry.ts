import type { RouteConfig } from '../config/config.ts';
import type { Log } from '../log.ts';
import { ServerConnection, type ServerPlace } from './server-connection.ts';

/** What of a route says where its MCP server is and how far it is trusted. */
type McpRoute = Pick<RouteConfig, 'name' | 'source' | 'upstreamHeaders' | 'annotations'>;

const FIRST_WAIT_MS = 1_000;
const LONGEST_WAIT_MS = 60_000;

/** The MCP servers of a process. A connection lives on over reloads, for as long as the configuration names it the same way. */
export class ServerRegistry {
  readonly #log: Log;
  readonly #byKey = new Map<string, ServerConnection>();
  #told: (() => void) | undefined;
  /** Something changed while nobody was there to be told: a gateway starts more slowly than a server changes. */
  #untold = false;
  #asking: NodeJS.Timeout | undefined;
  #waitMs = FIRST_WAIT_MS;

  constructor(log: Log) {
    this.#log = log;
  }

  /** Who is told that a server lists other tools than before; at once where one did already. */
  set onToolsChanged(told: () => void) {
    this.#told = told;
    if (!this.#untold) return;
    this.#untold = false;
    told();
  }

  /** A server was not there: who is told of changes is told to look again, each time later. */
  askAgainLater(): void {
    if (this.#asking !== undefined) return;
    this.#asking = setTimeout(() => {
      this.#asking = undefined;
      this.#tell();
    }, this.#waitMs);
    this.#asking.unref();
    this.#waitMs = Math.min(this.#waitMs * 2, LONGEST_WAIT_MS);
  }

  /** The connection of a route's server; a new one where no route said the same of it before. */
  get(route: McpRoute): ServerConnection {
    const key = keyOf(route);
    const known = this.#byKey.get(key);
    if (known !== undefined) return known;
    const connection = new ServerConnection({
      name: route.name,
      place: placeOf(route),
      trusted: route.annotations === 'trusted',
      log: this.#log,
      onToolsChanged: () => this.#tell(),
    });
    this.#byKey.set(key, connection);
    return connection;
  }

  /** Ends the connections that no route of the configuration in use needs any more. */
  keepOnly(routes: readonly McpRoute[]): void {
    const keys = new Set(routes.map(keyOf));
    for (const [key, connection] of this.#byKey) {
      if (keys.has(key)) continue;
      this.#byKey.delete(key);
      this.#end(connection);
    }
  }

  /** Ends what any server keeps for a client's session. */
  endLink(link: string): void {
    for (const connection of this.#byKey.values()) connection.endLink(link);
  }

  async close(): Promise<void> {
    clearTimeout(this.#asking);
    const all = [...this.#byKey.values()];
    this.#byKey.clear();
    await Promise.all(all.map((connection) => connection.close()));
  }

  #tell(): void {
    if (this.#told === undefined) this.#untold = true;
    else this.#told();
  }

  #end(connection: ServerConnection): void {
    connection
      .close()
      .catch((error: unknown) => this.#log.warn({ err: error }, 'a connection to an MCP server did not close'));
  }
}

function placeOf({ source, upstreamHeaders }: McpRoute): ServerPlace {
  if (source.kind !== 'mcp') throw new TypeError('the route has no MCP server');
  if ('url' in source) {
    return {
      kind: 'http',
      url: source.url,
      headers: upstreamHeaders.flatMap(({ name, value }) => [name, value.reveal()]),
    };
  }
  const { command, env, folder } = source;
  const revealed = Object.fromEntries(Object.entries(env).map(([name, value]) => [name, value.reveal()]));
  return { kind: 'stdio', command: { command, env: revealed, folder } };
}

function keyOf(route: McpRoute): string {
  return JSON.stringify([route.name, placeOf(route), route.annotations]);
}
