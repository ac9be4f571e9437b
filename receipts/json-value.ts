/**
 * JSON as this project carries it: what `JSON.parse` gives, except that an integer beyond ±(2^53-1) is a `bigint`,
 * so that a 64-bit id keeps every digit in digests, comparisons and forwarded text ("The JSON profile" of docs/formats.md).
 */
export type JsonValue = null | boolean | number | bigint | string | JsonArray | JsonObject;

/** A JSON array. */
export type JsonArray = readonly JsonValue[];

/** A JSON object. Read members with `Object.hasOwn` where the key comes from outside. */
export interface JsonObject {
  readonly [key: string]: JsonValue;
}

/** Whether a JSON value is an object: no list, no null. */
export function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Whether a JSON value is a list. `Array.isArray` does not tell a readonly one from an object. */
export function isArray(value: JsonValue | undefined): value is JsonArray {
  return Array.isArray(value);
}

/** A JSON value that should be an object; an empty one where it is something else or absent. */
export function objectOf(value: JsonValue | undefined): JsonObject {
  return isObject(value) ? value : {};
}
