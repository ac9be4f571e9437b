import type { Agent, Tool } from './tool.ts';

/**
 * The tools that exist, by pair and by bare name. A tool is `server/tool`, where the server's name is the operator's
 * (the route's), never one that a server gives itself; nothing that a description says is read here.
 */
export interface Catalogue {
  readonly tools: ReadonlyMap<string, Tool>;
  /** Bare name → the tools of that name on every server, in config order. */
  readonly byName: ReadonlyMap<string, readonly Tool[]>;
  readonly agents: ReadonlyMap<string, Agent>;
}

/** Indexes tools and agents. Ids and agent names are unique: the config loader has seen to it. */
export function makeCatalogue(tools: Iterable<Tool>, agents: Iterable<Agent>): Catalogue {
  const byId = new Map<string, Tool>();
  const byName = new Map<string, Tool[]>();
  for (const tool of tools) {
    byId.set(tool.id, tool);
    const named = byName.get(tool.name);
    if (named === undefined) byName.set(tool.name, [tool]);
    else named.push(tool);
  }
  return { tools: byId, byName, agents: new Map([...agents].map((agent) => [agent.name, agent])) };
}

/** What looking a requested tool up gives: the tool, or the pairs that a bare name could mean. */
export type Lookup = { readonly tool: Tool } | { readonly candidates: readonly string[] };

/**
 * Finds the tool that `requested` names for `agent`: a full pair exactly, or a bare name that exactly one reachable
 * server offers. There is no fallback and no near match.
 */
export function findTool(catalogue: Catalogue, requested: string, agent: string): Lookup {
  if (requested.includes('/')) {
    const tool = catalogue.tools.get(requested);
    return tool?.agents.has(agent) && tool.pin === undefined ? { tool } : { candidates: [] };
  }
  const reachable = (catalogue.byName.get(requested) ?? []).filter(
    (tool) => tool.agents.has(agent) && tool.pin === undefined,
  );
  const [only, ...others] = reachable;
  if (only !== undefined && others.length === 0) return { tool: only };
  return { candidates: reachable.map((tool) => tool.id) };
}
