import type { JsonObject, JsonValue } from '../../receipts/json-value.ts';
import { BadAnswer } from './errors.ts';

/** A JSON object. Throws `BadAnswer` for anything else. */
export function asObject(value: JsonValue | undefined, what: string): JsonObject {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as JsonObject;
  throw new BadAnswer(`${what} is no JSON object`, value);
}

/** A member that is a text. Throws `BadAnswer`. */
export function textOf(object: JsonObject, name: string): string {
  const value = optionalText(object, name);
  if (value === undefined) throw new BadAnswer(`the answer has no \`${name}\``, object);
  return value;
}

/** A member that is a text, or absent. Throws `BadAnswer`. */
export function optionalText(object: JsonObject, name: string): string | undefined {
  const value = Object.hasOwn(object, name) ? object[name] : undefined;
  if (value === undefined || typeof value === 'string') return value;
  throw new BadAnswer(`\`${name}\` of the answer is no text`, object);
}

/** A member that is a number, or absent. Throws `BadAnswer`. */
export function optionalNumber(object: JsonObject, name: string): number | undefined {
  const value = Object.hasOwn(object, name) ? object[name] : undefined;
  if (value === undefined || typeof value === 'number') return value;
  throw new BadAnswer(`\`${name}\` of the answer is no number`, object);
}

/** A member that is a list of texts. Throws `BadAnswer`. */
export function textList(object: JsonObject, name: string): readonly string[] {
  const value = object[name];
  if (Array.isArray(value) && value.every((item): item is string => typeof item === 'string')) return value;
  throw new BadAnswer(`\`${name}\` of the answer is no list of texts`, object);
}
