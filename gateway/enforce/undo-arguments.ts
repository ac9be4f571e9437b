import type { UndoBinding } from '../../policy/tool.ts';
import type { JsonObject, JsonValue } from '../../receipts/json-value.ts';

/**
 * The arguments that an undo binds from the step that it undoes; `undefined` where one of them is not there. `result`
 * is absent while the step's result is not known.
 */
export function bindUndo(
  undo: UndoBinding,
  args: JsonObject,
  result: JsonValue | undefined,
): Readonly<Record<string, JsonValue>> | undefined {
  const bound: Record<string, JsonValue> = {};
  for (const [name, source] of Object.entries(undo.with)) {
    const value = valueAt(source.from === 'arguments' ? args : result, source.path);
    if (value === undefined) return undefined;
    bound[name] = value;
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
