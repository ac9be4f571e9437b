import { buildRequest, routesBack } from '../../policy/openapi/codec.ts';
import { type Operation, plainOperation } from '../../policy/openapi/operation.ts';
import type { BuiltRequest } from '../../policy/openapi/request.ts';
import { Router } from '../../policy/routing.ts';
import type { SchemaFault } from '../../policy/schema/walk.ts';
import { NO_FAULTS, type Tool } from '../../policy/tool.ts';
import { parseJson } from '../../receipts/json.ts';
import type { JsonObject } from '../../receipts/json-value.ts';
import type { BuiltCatalogue } from '../catalogue/build.ts';
import type { RuntimeRoute } from '../catalogue/runtime-route.ts';

/** The operations of a route, both ways: from a request to its tool, and from a tool's arguments to a request. */
export interface HttpOperations {
  readonly router: Router<Operation>;
  readonly byTool: ReadonlyMap<string, Operation>;
}

/** Makes the operations of a hand-listed route. Throws `RoutingError` for templates that cannot be told apart. */
export function httpOperations(route: RuntimeRoute, built: BuiltCatalogue): HttpOperations {
  const byTool = new Map<string, Operation>();
  for (const { toolId, method, pathTemplate } of route.operations) {
    const tool = built.catalogue.tools.get(toolId);
    if (tool === undefined) continue;
    byTool.set(toolId, plainOperation({ name: toolId, method, path: pathTemplate, input: tool.input }));
  }
  return { router: new Router(byTool.values()), byTool };
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
  const made = build(operations, tool, args);
  BUILT.set(args, { tool, made });
  return made;
}

function build(operations: HttpOperations, tool: Tool, args: JsonObject): BuiltOrFaults {
  const operation = operations.byTool.get(tool.id);
  if (operation === undefined) throw new Error(`no operation is known of ${tool.id}`);
  const built = buildRequest(operation, args, parseJson);
  if (!built.ok) return { faults: built.faults };
  if (routesBack(operations.router, operation, built.value.rawPath)) return { request: built.value };
  const [first] = operation.parameters;
  const pointer = first === undefined ? '' : `/${first.argument}`;
  return { faults: [{ pointer, rule: 'path', message: 'makes a path that another operation answers' }] };
}

/** The faults of arguments that a request cannot carry, for row 3. */
export function carryFaults(operations: HttpOperations, tool: Tool, args: JsonObject): readonly SchemaFault[] {
  const made = buildOnce(operations, tool, args);
  return 'faults' in made ? made.faults : NO_FAULTS;
}
