import type { Call } from '../../policy/call.ts';
import { findDeclaredUndo, findTool, type Lookup } from '../../policy/catalogue.ts';
import type { SchemaFault } from '../../policy/schema/walk.ts';
import { NO_FAULTS, type Tool } from '../../policy/tool.ts';
import { type CanonicalJson, canonicalize } from '../../receipts/canonical.ts';
import type { JsonObject } from '../../receipts/json-value.ts';
import type { EnforceRequest } from '../exchange.ts';
import type { Loaded } from '../loaded.ts';

/** A request as the rest of the way reads it: defaults filled in, canonical texts made once. */
export interface ReadCall {
  readonly request: EnforceRequest;
  readonly loaded: Loaded;
  readonly call: Call;
  /** The tool that the request names and this caller reaches; row 1 answers for those that it does not. */
  readonly tool: Tool | undefined;
  /** The agent that is named or implied; empty where there is none. */
  readonly agent: string;
  /** JCS of the arguments, filled in: what is digested is what is sent. */
  readonly canonical: CanonicalJson;
  readonly canonicalOrigins: CanonicalJson;
}

/**
 * Reads a request under a loaded config. Decides nothing. A call that is forwarded to a route that takes receipts alone is
 * proved by one, whatever its adapter made of the tool's name.
 */
export function readCall(loaded: Loaded, sent: EnforceRequest): ReadCall {
  const { members, caller } = sent;
  const agent = members.agent ?? (caller.agents.size === 1 ? [...caller.agents][0] : undefined) ?? '';
  const tool = isEngineUndo(sent)
    ? toolOf(findDeclaredUndo(loaded.catalogue, sent.tool))
    : lookUp(loaded, sent.tool, caller.agents.has(agent) ? agent : '');
  const request = needsReceipt(loaded, sent, tool) ? { ...sent, byReceipt: true } : sent;
  // An undo carries exactly what its binding gives; a receipt covers exactly what was checked.
  const fills = members.undoes === undefined && !request.byReceipt;
  const { args, filled } = fills ? fillDefaults(loaded, tool, agent, request.arguments) : asSent(request.arguments);
  const call: Call = {
    tool: request.tool,
    arguments: args,
    caller,
    faults: faultsOf(loaded, request, tool, args),
    filled,
    origins: members.origins,
    turns: members.turns,
    labels: members.labels,
    context: caller.host ? members.context : {},
    fromEngine: request.via === 'engine',
    ...(members.agent === undefined ? {} : { agent: members.agent }),
    ...(members.run === undefined ? {} : { run: members.run }),
    ...(members.undoes === undefined ? {} : { undoes: members.undoes }),
  };
  return {
    request,
    loaded,
    call,
    tool,
    agent,
    canonical: canonicalize(args),
    canonicalOrigins: canonicalize(members.origins),
  };
}

/** What cannot be read or carried; looked at only where the arguments fit the schema, which says more of what is wrong. */
function faultsOf(
  loaded: Loaded,
  request: EnforceRequest,
  tool: Tool | undefined,
  args: JsonObject,
): readonly SchemaFault[] {
  if (request.faults !== undefined && request.faults.length > 0) return request.faults;
  if (tool === undefined || tool.input.validate(args).length > 0) return NO_FAULTS;
  return loaded.upstreams.get(tool.server)?.check(tool, args) ?? NO_FAULTS;
}

function lookUp(loaded: Loaded, requested: string, agent: string): Tool | undefined {
  return toolOf(findTool(loaded.catalogue, requested, agent));
}

function toolOf(found: Lookup): Tool | undefined {
  return 'tool' in found ? found.tool : undefined;
}

function needsReceipt(loaded: Loaded, { byReceipt, purpose, via }: EnforceRequest, tool: Tool | undefined): boolean {
  if (byReceipt || purpose !== 'forward' || via === 'engine' || tool === undefined) return false;
  return loaded.verifyOf(tool.server) === 'receipt';
}

/** The server of the tool that a call names, in full or by its bare name, where its agents all mean the same one. */
export function serverOf({ catalogue }: Loaded, { tool, caller, members }: EnforceRequest): string | undefined {
  const slash = tool.indexOf('/');
  if (slash !== -1) return tool.slice(0, slash);
  const servers = new Set<string>();
  for (const agent of members.agent === undefined ? caller.agents : [members.agent]) {
    const found = findTool(catalogue, tool, agent);
    if ('tool' in found) servers.add(found.tool.server);
  }
  return servers.size === 1 ? [...servers][0] : undefined;
}

/** As row 1 sees it: an undo that the gateway sends need not be in reach of the agent of its step. */
function isEngineUndo(request: EnforceRequest): boolean {
  return request.via === 'engine' && request.members.undoes !== undefined;
}

/** The same call for the agent that its receipt names, where the call names none and the caller may be that agent. */
export function forAgent(read: ReadCall, agent: string | undefined): ReadCall {
  const { request, loaded, call } = read;
  if (agent === undefined || !request.caller.agents.has(agent)) return read;
  return { ...read, agent, tool: lookUp(loaded, request.tool, agent), call: { ...call, agent } };
}

const NOTHING_FILLED: ReadonlySet<string> = new Set();

interface Filled {
  readonly args: JsonObject;
  readonly filled: ReadonlySet<string>;
}

function asSent(args: JsonObject): Filled {
  return { args, filled: NOTHING_FILLED };
}

/** Fills what the call leaves out from the tool's `defaults`, then the agent's; what was given is never overridden. */
function fillDefaults(loaded: Loaded, tool: Tool | undefined, agent: string, args: JsonObject): Filled {
  if (tool === undefined) return asSent(args);
  const ofAgent = loaded.catalogue.agents.get(agent)?.defaults ?? {};
  const defaults = Object.entries({ ...pickDeclared(ofAgent, tool), ...tool.defaults });
  const missing = defaults.filter(([name]) => !Object.hasOwn(args, name));
  if (missing.length === 0) return asSent(args);
  return { args: { ...args, ...Object.fromEntries(missing) }, filled: new Set(missing.map(([name]) => name)) };
}

/** An agent's defaults are for whichever of its tools declare an argument of that name. */
function pickDeclared(defaults: JsonObject, tool: Tool): JsonObject {
  return Object.fromEntries(Object.entries(defaults).filter(([name]) => tool.input.topLevel.includes(name)));
}
