import { ProtocolError, ProtocolErrorCode } from '@modelcontextprotocol/server';
import type { Tool } from '../../policy/tool.ts';
import { type JsonObject, objectOf } from '../../receipts/json-value.ts';
import type { EndpointContext } from './client-call.ts';
import { withoutOurMeta } from './mcp-upstream.ts';
import { nameOn } from './tool-names.ts';

const PAGE = 250;

/** One page of the tools that the caller reaches, in the order of their names. Throws a JSON-RPC error for a cursor that is none. */
export function listTools(context: EndpointContext, params: JsonObject): JsonObject {
  const { cursor } = params;
  if (cursor !== undefined && typeof cursor !== 'string') throw badCursor();
  const after = cursor === undefined ? undefined : readCursor(cursor);
  const names = reachable(context).map((tool) => ({ name: nameOn(context.server, tool), tool }));
  names.sort((a, b) => (a.name < b.name ? -1 : 1));
  const from = after === undefined ? 0 : names.findIndex(({ name }) => name > after);
  const page = from < 0 ? [] : names.slice(from, from + PAGE);
  const last = page.at(-1);
  const more = last !== undefined && from + PAGE < names.length;
  return {
    tools: page.map(({ name, tool }) => renderTool(context, name, tool)),
    ...(more ? { nextCursor: Buffer.from(last.name).toString('base64url') } : {}),
  };
}

/** The tools of an endpoint that the caller may call, whichever of its agents it names. */
function reachable({ gateway, caller, server }: EndpointContext): Tool[] {
  const { tools } = gateway.loaded.catalogue;
  const { listed, routes } = gateway.loaded.mcp;
  // What no server lists stands for a method of the protocol.
  const isTool = (tool: Tool): boolean => routes.get(tool.server)?.source.kind !== 'mcp' || listed.has(tool.id);
  return [...tools.values()].filter(
    (tool) =>
      (server === undefined || tool.server === server) &&
      tool.pin === undefined &&
      isTool(tool) &&
      [...caller.agents].some((agent) => tool.agents.has(agent)),
  );
}

function renderTool(context: EndpointContext, name: string, tool: Tool): JsonObject {
  const listed = context.gateway.loaded.mcp.listed.get(tool.id);
  const filled = filledIn(context, tool);
  if (listed === undefined) {
    return {
      name,
      description: tool.description,
      inputSchema: withoutArguments({ type: 'object', ...tool.input.render() }, filled),
      annotations: { readOnlyHint: !tool.writes, destructiveHint: tool.irreversible, idempotentHint: tool.idempotent },
    };
  }
  // Tasks are not passed on: a tool that says it can run as one would be asked to.
  const { execution: _execution, ...shown } = withoutOurMeta(listed);
  const carrier = tool.idempotency !== undefined && 'argument' in tool.idempotency ? [tool.idempotency.argument] : [];
  return {
    ...shown,
    name,
    ...(tool.description === '' ? {} : { description: tool.description }),
    inputSchema: withoutArguments(objectOf(listed['inputSchema']), [...filled, ...carrier]),
  };
}

/** Arguments that the gateway fills in: a model that is not told of them does not make them up. */
function filledIn({ gateway, caller }: EndpointContext, tool: Tool): readonly string[] {
  const [only, ...others] = [...caller.agents].filter((agent) => tool.agents.has(agent));
  const ofAgent =
    only === undefined || others.length > 0 ? {} : (gateway.loaded.catalogue.agents.get(only)?.defaults ?? {});
  return [...Object.keys(tool.defaults), ...Object.keys(ofAgent)];
}

function withoutArguments(schema: JsonObject, names: readonly string[]): JsonObject {
  const properties = objectOf(schema['properties']);
  if (!names.some((name) => Object.hasOwn(properties, name))) return schema;
  const kept = Object.fromEntries(Object.entries(properties).filter(([name]) => !names.includes(name)));
  const required = schema['required'];
  return {
    ...schema,
    properties: kept,
    ...(Array.isArray(required)
      ? { required: required.filter((name) => typeof name !== 'string' || !names.includes(name)) }
      : {}),
  };
}

function readCursor(cursor: string): string {
  const name = Buffer.from(cursor, 'base64url').toString();
  if (name === '' || name.length > 512 || Buffer.from(name).toString('base64url') !== cursor) throw badCursor();
  return name;
}

function badCursor(): ProtocolError {
  return new ProtocolError(ProtocolErrorCode.InvalidParams, 'the cursor is none of this list; begin without one');
}
