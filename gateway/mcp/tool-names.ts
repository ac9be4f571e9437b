import type { Catalogue } from '../../policy/catalogue.ts';
import type { Tool } from '../../policy/tool.ts';

const BETWEEN = '__';

/** A tool's name on an endpoint: its own on its server's, `server__tool` on the one over all. */
export function nameOn(server: string | undefined, tool: Tool): string {
  return server === undefined ? `${tool.server}${BETWEEN}${tool.name}` : tool.name;
}

/** The pair that a name on an endpoint stands for; a name that can be none is looked up as it is, and found nowhere. */
export function pairOf(catalogue: Catalogue, server: string | undefined, name: string): string {
  if (server !== undefined) return `${server}/${name}`;
  // A server's name holds no `__`, so that the first one parts it from the tool's.
  const at = name.indexOf(BETWEEN);
  if (at <= 0) return catalogue.tools.has(name) || catalogue.byName.has(name) ? `${BETWEEN}/${name}` : name;
  return `${name.slice(0, at)}/${name.slice(at + BETWEEN.length)}`;
}
