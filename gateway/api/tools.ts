import type { Tool } from '../../policy/tool.ts';
import type { JsonObject } from '../../receipts/json-value.ts';
import { type ApiBindings, jsonAnswer, requireCaller } from './api-context.ts';

/** `GET /v1/tools`: the tools that this caller's agents reach, and nothing of what exists elsewhere. */
export function getTools(env: ApiBindings): Response {
  const caller = requireCaller(env);
  const tools: JsonObject[] = [];
  for (const tool of env.gateway.loaded.catalogue.tools.values()) {
    const agents = [...caller.agents].filter((agent) => tool.agents.has(agent));
    if (agents.length > 0 && tool.pin === undefined) tools.push(renderTool(tool, agents));
  }
  return jsonAnswer({ tools });
}

function renderTool(tool: Tool, agents: readonly string[]): JsonObject {
  return {
    name: tool.id,
    description: tool.description,
    agents,
    writes: tool.writes,
    irreversible: tool.irreversible,
    confirm: tool.writes ? tool.confirm : null,
    input: tool.input.schema,
    ...(tool.result === undefined ? {} : { result: tool.result.schema }),
    ...(tool.input.partial.length === 0 ? {} : { partial: tool.input.partial }),
  };
}
