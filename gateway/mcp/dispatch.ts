import { ProtocolError, ProtocolErrorCode, type ServerCapabilities } from '@modelcontextprotocol/server';
import type { JsonObject } from '../../receipts/json-value.ts';
import type { RuntimeRoute } from '../catalogue/runtime-route.ts';
import { messageOf } from '../message-of.ts';
import { LinkFault } from './call-fault.ts';
import { type CallEnd, callTool, readThrough } from './call-tool.ts';
import { type ClientRequest, type EndpointContext, relayOf } from './client-call.ts';
import { listTools } from './list-tools.ts';
import { withoutOurMeta } from './mcp-upstream.ts';
import { allowsMethod } from './methods.ts';
import { recordedName } from './recorded-reads.ts';
import type { ServerConnection } from './server-connection.ts';
import { requestServer } from './server-request.ts';

/** Requests that a server answers and nothing is recorded of: they list, or set up what later requests bring. */
const PASSED: ReadonlySet<string> = new Set([
  'resources/list',
  'resources/templates/list',
  'resources/subscribe',
  'resources/unsubscribe',
  'prompts/list',
  'logging/setLevel',
]);

/** Whether an endpoint answers a method at all. */
export function answersMethod(context: EndpointContext, method: string): boolean {
  const route = routeOf(context);
  if (!allowsMethod(route?.methods, method)) return false;
  if (method === 'tools/list' || method === 'tools/call' || method === 'ping') return true;
  return route?.source.kind === 'mcp' && (recordedName(method) !== undefined || PASSED.has(method));
}

/** Answers one request of a client. Throws JSON-RPC errors. A call that a person must approve comes back as that. */
export async function dispatch(context: EndpointContext, request: ClientRequest): Promise<CallEnd> {
  const route = routeOf(context);
  const { method } = request;
  if (!answersMethod(context, method)) throw unknownMethod(method);
  if (method === 'tools/list') return { kind: 'result', result: listTools(context, request.params) };
  if (method === 'tools/call') return callTool(context, request);
  if (method === 'ping') return { kind: 'result', result: {} };
  if (route?.source.kind !== 'mcp') throw unknownMethod(method);
  const read = recordedName(method);
  if (read !== undefined) return { kind: 'result', result: await readThrough(context, request, read) };
  return { kind: 'result', result: await pass(context, route, request) };
}

/** What an endpoint offers its clients, as far as its server does. */
export async function capabilitiesOf({ gateway, registry, server }: EndpointContext): Promise<ServerCapabilities> {
  const tools = { listChanged: true };
  const route = server === undefined ? undefined : gateway.loaded.mcp.routes.get(server);
  if (route?.source.kind !== 'mcp') return { tools };
  try {
    const { resources, prompts, completions, logging } = await registry.get(route).capabilities();
    const has = (method: string): boolean => allowsMethod(route.methods, method);
    return {
      tools,
      ...(resources !== undefined && has('resources/read') ? { resources } : {}),
      ...(prompts !== undefined && has('prompts/get') ? { prompts } : {}),
      ...(completions !== undefined && has('completion/complete') ? { completions } : {}),
      ...(logging !== undefined && has('logging/setLevel') ? { logging } : {}),
    };
  } catch (error) {
    // A server that is not there offers nothing for now; its tools are told of when it is.
    if (error instanceof LinkFault) return { tools };
    throw error;
  }
}

/** What a server tells models of itself, where the operator trusts it so far. */
export async function instructionsOf({ gateway, registry, server }: EndpointContext): Promise<string | undefined> {
  const route = server === undefined ? undefined : gateway.loaded.mcp.routes.get(server);
  if (route?.source.kind !== 'mcp' || route.annotations !== 'trusted') return undefined;
  return registry
    .get(route)
    .instructions()
    .catch(() => undefined);
}

async function pass(context: EndpointContext, route: RuntimeRoute, request: ClientRequest): Promise<JsonObject> {
  const { _meta: _own, ...params } = request.params;
  const connection = context.registry.get(route);
  try {
    const result = await requestServer(connection, {
      method: request.method,
      params,
      relay: relayOf(context, request),
      timeoutMs: route.timeoutMs,
      abort: request.cancelled,
      mayAsk: false,
    });
    watch(context, connection, request);
    return withoutOurMeta(result);
  } catch (error) {
    if (error instanceof ProtocolError) throw error;
    const why = messageOf(error);
    throw new ProtocolError(ProtocolErrorCode.InternalError, `the server of \`${route.name}\` gave no answer: ${why}`);
  }
}

/** A process has one connection for all: who watches which resource is known here alone. */
function watch({ link }: EndpointContext, { voice }: ServerConnection, { method, params }: ClientRequest): void {
  const { uri } = params;
  if (typeof uri !== 'string') return;
  if (method === 'resources/subscribe') voice.watch(link, uri, true);
  else if (method === 'resources/unsubscribe') voice.watch(link, uri, false);
}

function routeOf({ gateway, server }: EndpointContext): RuntimeRoute | undefined {
  return server === undefined ? undefined : gateway.loaded.mcp.routes.get(server);
}

function unknownMethod(method: string): ProtocolError {
  return new ProtocolError(
    ProtocolErrorCode.MethodNotFound,
    `\`${method.slice(0, 100)}\` is no method of this endpoint`,
  );
}
