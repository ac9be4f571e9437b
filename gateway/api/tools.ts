import type { Tool } from '../../policy/tool.ts';
import { renderJson } from '../http/problems.ts';
import { type ApiBindings, requireCaller } from './api-context.ts';

/** `GET /v1/tools`: the tools that this caller's agents reach, and nothing of what exists elsewhere. */
export function getTools(env: ApiBindings): Response {
  const caller = requireCaller(env);
  const tools: string[] = [];
  for (const tool of env.gateway.loaded.catalogue.tools.values()) {
    const agents = [...caller.agents].filter((agent) => tool.agents.has(agent));
    if (agents.length > 0 && tool.pin === undefined)
      tools.push(`{"agents":${JSON.stringify(agents)},${rendered(tool)}`);
  }
  return new Response(`{"tools":[${tools.join(',')}]}`, { headers: { 'content-type': 'application/json' } });
}

/** The schemas of a large document take a second to write out; they are the same for every caller. */
const RENDERED = new WeakMap<Tool, string>();

/** A tool as JSON without its opening brace: who reaches it stands before. */
function rendered(tool: Tool): string {
  let text = RENDERED.get(tool);
  if (text === undefined) {
    text = renderTool(tool).slice(1);
    RENDERED.set(tool, text);
  }
  return text;
}

function renderTool(tool: Tool): string {
  return renderJson({
    name: tool.id,
    description: tool.description,
    writes: tool.writes,
    irreversible: tool.irreversible,
    confirm: tool.writes ? tool.confirm : null,
    input: tool.input.render(),
    ...(tool.result === undefined ? {} : { result: tool.result.render() }),
    ...(tool.input.partial.length === 0 ? {} : { partial: tool.input.partial }),
  });
}
