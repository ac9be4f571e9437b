import type { Attributes } from '@opentelemetry/api';
import type { UpstreamTarget } from '../exchange.ts';

/**
 * Every attribute that a span of the gateway can have. Names without `toolgate` are those of the OpenTelemetry semantic
 * conventions (HTTP spans, MCP, generative AI, errors). A value is a name of the configuration, a code of a table or a
 * number: none can hold what a caller, a person or a backend said.
 */
export const NAMES = {
  httpMethod: 'http.request.method',
  httpRoute: 'http.route',
  httpStatus: 'http.response.status_code',
  httpResends: 'http.request.resend_count',
  urlTemplate: 'url.template',
  host: 'server.address',
  port: 'server.port',
  mcpMethod: 'mcp.method.name',
  operation: 'gen_ai.operation.name',
  toolName: 'gen_ai.tool.name',
  errorType: 'error.type',
  tool: 'toolgate.tool',
  decision: 'toolgate.decision',
  reason: 'toolgate.reason',
  outcome: 'toolgate.outcome',
  problem: 'toolgate.problem',
  replayed: 'toolgate.replayed',
} as const;

/** The name of a tool of the catalogue without its server's. */
function ownNameOf(tool: string): string {
  return tool.slice(tool.indexOf('/') + 1);
}

/** What a request of an MCP client is, or one to an MCP server. */
export function mcpAttributes(method: string, tool: string | undefined): Attributes {
  const isCall = method === 'tools/call';
  return {
    [NAMES.mcpMethod]: method,
    ...(isCall ? { [NAMES.operation]: 'execute_tool' } : {}),
    ...(isCall && tool !== undefined ? { [NAMES.toolName]: ownNameOf(tool) } : {}),
  };
}

/** Name and attributes of the span of one request to an upstream. */
export function describeTarget(
  target: UpstreamTarget,
  tool: string,
  attempt: number,
): { readonly name: string; readonly attributes: Attributes } {
  const { method, template, host, port } = target;
  const isMcp = target.protocol === 'mcp';
  return {
    name: isMcp ? mcpName(method, tool) : `${method} ${template ?? ''}`.trim(),
    attributes: {
      ...(isMcp ? mcpAttributes(method, tool) : { [NAMES.httpMethod]: method }),
      ...(template === undefined ? {} : { [NAMES.urlTemplate]: template }),
      ...(host === undefined ? {} : { [NAMES.host]: host }),
      ...(port === undefined ? {} : { [NAMES.port]: port }),
      ...(attempt === 0 ? {} : { [NAMES.httpResends]: attempt }),
      [NAMES.tool]: tool,
    },
  };
}

/** `tools/call get_order`; the method alone where it calls no tool, or none of the catalogue. */
export function mcpName(method: string, tool: string | undefined): string {
  return method === 'tools/call' && tool !== undefined ? `${method} ${ownNameOf(tool)}` : method;
}
