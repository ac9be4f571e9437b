import type { SigningKey } from '../../receipts/crypto.ts';
import { nodeCrypto } from '../../receipts/crypto-node.ts';
import type { Upstream } from '../exchange.ts';
import { type Authenticator, createAuthenticator } from '../http/authenticate.ts';
import { makeLoaded } from '../load/make-loaded.ts';
import type { Loaded } from '../loaded.ts';
import type { ServerRegistry } from '../mcp/server-registry.ts';
import { openRoutes } from '../routes/open-routes.ts';
import type { PassPaths } from '../routes/pass-paths.ts';
import type { RouteTable } from '../routes/route-table.ts';
import type { WholeConfig } from './whole-config.ts';

/** All that one load of the config makes; a reload makes another and retires this one. */
export class Surface {
  readonly whole: WholeConfig;
  readonly loaded: Loaded;
  readonly authenticate: Authenticator;
  readonly routes: RouteTable;
  readonly #upstreams: ReadonlyMap<string, Upstream>;
  readonly #passes: readonly PassPaths[];
  #active = 0;
  #idle: (() => void) | undefined;

  constructor(whole: WholeConfig, signing: SigningKey, url: string, servers: ServerRegistry) {
    const { config, built, rulebook, licence } = whole;
    const { table, upstreams, passes } = openRoutes(config, built, servers);
    const approveAt = `${withoutSlash(config.console.url ?? url)}/${config.console.enabled ? 'console' : 'v1'}/confirmations`;
    this.whole = whole;
    this.routes = table;
    this.loaded = makeLoaded(config, built, { crypto: nodeCrypto, signing, upstreams, approveAt, rulebook, licence });
    this.authenticate = createAuthenticator({
      credentials: config.credentials,
      approvers: config.approvers,
      agents: new Set(config.agents.keys()),
    });
    this.#upstreams = upstreams;
    this.#passes = passes;
  }

  /** Every path that is let through unchecked, behind its route's name: `shop /health`. */
  get unchecked(): readonly string[] {
    return this.whole.config.routes.flatMap(({ name, pass }) => pass.map((pattern) => `${name} ${pattern}`));
  }

  /** Ends upgraded connections at once: nothing says when they are done. Their clients open others, under the rules that then stand. */
  endUpgrades(): void {
    for (const passes of this.#passes) passes.endUpgrades();
  }

  /** A request's work begins; a retired surface keeps its upstreams until it ends. */
  begin(): void {
    this.#active += 1;
  }

  end(): void {
    this.#active -= 1;
    if (this.#active === 0) this.#idle?.();
  }

  /** Closes the upstreams when every request that began under this surface has ended. */
  async retire(): Promise<void> {
    if (this.#active > 0) {
      await new Promise<void>((resolve) => {
        this.#idle = resolve;
      });
    }
    await this.close();
  }

  /** Closes the upstreams now. */
  async close(): Promise<void> {
    for (const passes of this.#passes) passes.close();
    await Promise.all([...this.#upstreams.values()].map((upstream) => upstream.close()));
  }
}

/** An address is written with a slash at its end or without. */
function withoutSlash(url: string): string {
  return url.endsWith('/') ? url.slice(0, -1) : url;
}
