import type { Tool, UndoBinding } from '../../policy/tool.ts';
import type { JsonObject, JsonValue } from '../../receipts/json-value.ts';

/** The part of what the undo of a call binds that its arguments give: known before anything is sent. */
export function bindArguments(tool: Tool, args: JsonObject): JsonObject {
  return bindFrom(bindingOf(tool), 'arguments', args);
}

/**
 * All that the undo of a step binds, from the part that its arguments gave and its result; `undefined` where the tool has
 * no undo, or one of the bound values is not there.
 */
export function completeUndo(tool: Tool, boundArguments: JsonObject, result: JsonValue): JsonObject | undefined {
  const binding = bindingOf(tool);
  if (binding === undefined) return undefined;
  const bound = { ...boundArguments, ...bindFrom(binding, 'result', result) };
  return Object.keys(binding.with).every((name) => Object.hasOwn(bound, name)) ? bound : undefined;
}

function bindingOf(tool: Tool): UndoBinding | undefined {
  return tool.undo === undefined || tool.undo === 'none' ? undefined : tool.undo;
}

function bindFrom(binding: UndoBinding | undefined, from: 'arguments' | 'result', value: JsonValue): JsonObject {
  const bound: Record<string, JsonValue> = {};
  for (const [name, source] of Object.entries(binding?.with ?? {})) {
    const found = source.from === from ? valueAt(value, source.path) : undefined;
    if (found !== undefined) bound[name] = found;
  }
  return bound;
}

/** The value at a dotted path of members; `undefined` where there is none. */
export function valueAt(from: JsonValue | undefined, path: string): JsonValue | undefined {
  let value = from;
  for (const member of path.split('.')) {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
    const object: JsonObject = value as JsonObject;
    if (!Object.hasOwn(object, member)) return undefined;
    value = object[member];
  }
  return value;
}
