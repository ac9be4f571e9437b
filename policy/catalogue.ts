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

/** What looking a requested tool up gives: the tool, or the pairs that a bare name could mean and what its pin says. */
export type Lookup =
  | { readonly tool: Tool }
  | { readonly candidates: readonly string[]; readonly pin?: NonNullable<Tool['pin']> };

const NOT_FOUND: Lookup = { candidates: [] };

/**
 * Finds the tool that `requested` names for `agent`: a full pair exactly, or a bare name that exactly one reachable
 * server offers. There is no fallback and no near match: a tool that its pin withholds still makes a bare name
 * ambiguous, so that no other server's tool takes its place.
 */
export function findTool(catalogue: Catalogue, requested: string, agent: string): Lookup {
  const pair = requested.includes('/') ? catalogue.tools.get(requested) : undefined;
  const named = requested.includes('/') ? [] : (catalogue.byName.get(requested) ?? []);
  const reachable = (pair === undefined ? named : [pair]).filter((tool) => tool.agents.has(agent));
  const [only, ...others] = reachable;
  if (only === undefined) return NOT_FOUND;
  return others.length === 0 ? callable(only) : { candidates: reachable.map((tool) => tool.id) };
}

/**
 * Finds the undo that the gateway itself sends, by its pair. Declared by the operator, it is sent whether or not the
 * agent of the step could call it, but never against its pin.
 */
export function findDeclaredUndo(catalogue: Catalogue, pair: string): Lookup {
  const tool = catalogue.tools.get(pair);
  return tool === undefined ? NOT_FOUND : callable(tool);
}

function callable(tool: Tool): Lookup {
  return tool.pin === undefined ? { tool } : { candidates: [], pin: tool.pin };
}
