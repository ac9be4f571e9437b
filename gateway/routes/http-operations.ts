import { buildRequest, routesBack } from '../../policy/openapi/codec.ts';
import { type Operation, type Parameter, plainOperation } from '../../policy/openapi/operation.ts';
import type { BuiltRequest } from '../../policy/openapi/request.ts';
import { Router } from '../../policy/routing.ts';
import { TEXT_KIND } from '../../policy/schema/kinds.ts';
import type { SchemaFault } from '../../policy/schema/walk.ts';
import { NO_FAULTS, type Tool } from '../../policy/tool.ts';
import { parseJson } from '../../receipts/json.ts';
import type { JsonObject } from '../../receipts/json-value.ts';
import type { BuiltCatalogue } from '../catalogue/build.ts';
import type { RuntimeRoute } from '../catalogue/runtime-route.ts';

/** One tool of a route. Nothing of a document's operation is read before a call needs it. */
export interface RoutedTool {
  /** The pair: it is the tool's name among all routes. */
  readonly name: string;
  readonly method: string;
  readonly pathTemplate: string;
  /** As callers see it. */
  readonly operation: Operation;
  /** As it is sent with the gateway's key in an argument. */
  readonly keyed: Operation;
}

/** The operations of a route, both ways: from a request to its tool, and from a tool's arguments to a request. */
export interface HttpOperations {
  readonly router: Router<RoutedTool>;
  readonly byTool: ReadonlyMap<string, RoutedTool>;
  /** Some path has `;name=value` parameters. */
  readonly hasMatrix: boolean;
}

/** Makes the operations of a route, hand-listed or of a document. Throws `RoutingError` for paths that cannot be told apart. */
export function httpOperations(route: RuntimeRoute, built: BuiltCatalogue): HttpOperations {
  const byTool = new Map<string, RoutedTool>();
  let hasMatrix = false;
  for (const { toolId, method, pathTemplate, api } of route.operations) {
    const tool = built.catalogue.tools.get(toolId);
    if (tool === undefined) continue;
    const [operation, keyed] = api === undefined ? plainPair(tool, method, pathTemplate) : [api.declared, api.whole];
    byTool.set(toolId, { name: toolId, method, pathTemplate, operation, keyed });
    if (api?.declared.hasMatrix === true) hasMatrix = true;
  }
  // A document was written by others: templates of it that cross may stand, and requests that both match are refused.
  const crossing = route.source.kind === 'openapi' ? 'refuse_request' : 'error';
  return { router: new Router(byTool.values(), { crossing }), byTool, hasMatrix };
}

function plainPair(tool: Tool, method: string, path: string): [Operation, Operation] {
  const operation = plainOperation({ name: tool.id, method, path, input: tool.input });
  const { idempotency } = tool;
  // Every member that is no parameter goes into a JSON body; without one the key goes into the query.
  if (idempotency === undefined || 'header' in idempotency || operation.body !== undefined)
    return [operation, operation];
  return [operation, withQuery(operation, idempotency.argument)];
}

function withQuery(operation: Operation, name: string): Operation {
  const parameter: Parameter = {
    name,
    argument: name,
    place: 'query',
    style: 'form',
    explode: true,
    required: false,
    kind: TEXT_KIND,
  };
  return { ...operation, parameters: [...operation.parameters, parameter] };
}

/** A request as built, or the faults of arguments that cannot be carried. */
export type BuiltOrFaults = { readonly request: BuiltRequest } | { readonly faults: readonly SchemaFault[] };

const BUILT = new WeakMap<JsonObject, { readonly tool: Tool; readonly made: BuiltOrFaults }>();

/**
 * The request of a tool's arguments, which must lead back to the same tool with the same arguments. Made once for a call:
 * the check asks for its faults, the sending for the request.
 */
export function buildOnce(operations: HttpOperations, tool: Tool, args: JsonObject): BuiltOrFaults {
  const known = BUILT.get(args);
  if (known?.tool === tool) return known.made;
  const routed = routedOf(operations, tool);
  const made = build(operations, routed, routed.operation, args);
  BUILT.set(args, { tool, made });
  return made;
}

/** The request of a tool's arguments with the gateway's key as one of them. */
export function buildKeyed(operations: HttpOperations, tool: Tool, args: JsonObject): BuiltOrFaults {
  const routed = routedOf(operations, tool);
  return build(operations, routed, routed.keyed, args);
}

function routedOf(operations: HttpOperations, tool: Tool): RoutedTool {
  const routed = operations.byTool.get(tool.id);
  if (routed === undefined) throw new Error(`no operation is known of ${tool.id}`);
  return routed;
}

function build(operations: HttpOperations, routed: RoutedTool, operation: Operation, args: JsonObject): BuiltOrFaults {
  const built = buildRequest(operation, args, parseJson);
  if (!built.ok) return { faults: built.faults };
  if (routesBack(operations.router, routed, built.value.rawPath)) return { request: built.value };
  const [first] = operation.parameters;
  const pointer = first === undefined ? '' : `/${first.argument}`;
  return { faults: [{ pointer, rule: 'path', message: 'makes a path that another operation answers' }] };
}

/** The faults of arguments that a request cannot carry, for row 3. */
export function carryFaults(operations: HttpOperations, tool: Tool, args: JsonObject): readonly SchemaFault[] {
  const made = buildOnce(operations, tool, args);
  return 'faults' in made ? made.faults : NO_FAULTS;
}
