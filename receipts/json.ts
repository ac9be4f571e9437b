import { JsonFault } from './json-fault.ts';
import { readStrictly } from './json-reader.ts';
import type { JsonArray, JsonObject, JsonValue } from './json-value.ts';

/** How deep arrays and objects may nest where nothing else is said: a scalar is 0 deep, `[]` is 1, `[[]]` is 2. */
const MAX_JSON_DEPTH = 64;

// `ignoreBOM` keeps a byte order mark in the text, so that it is refused and not silently dropped.
const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * JSON text (or its UTF-8 bytes) in, its value out, read under the strict profile of docs/formats.md: what two readers
 * could take for two different values is refused. Integers beyond ±(2^53-1) come out as `bigint`. Throws
 * {@link JsonFault} with the JSON pointer of the first fault. Takes time linear in the length of the input.
 */
export function parseJson(input: Uint8Array | string, limits: { readonly maxDepth?: number } = {}): JsonValue {
  const maxDepth = limits.maxDepth ?? MAX_JSON_DEPTH;
  const text = typeof input === 'string' ? input : decodeUtf8(input);
  if (text.charCodeAt(0) === 0xfeff) {
    throw new JsonFault('bom', '', 'the text starts with a byte order mark: send UTF-8 without one');
  }
  const quick = parseQuickly(text, maxDepth);
  return quick === undefined ? readStrictly(text, maxDepth) : quick;
}

function decodeUtf8(bytes: Uint8Array): string {
  try {
    return UTF8.decode(bytes);
  } catch {
    throw new JsonFault('utf8', '', 'the bytes are not UTF-8: send JSON as UTF-8');
  }
}

/**
 * A text that `JSON.stringify` gives back unchanged has one reading: a duplicate key, `-0`, an odd number, an escape
 * that need not be one or white space would come back otherwise. What survives the round trip and is still a fault is
 * looked for apart: `__proto__` (an ordinary member to JSON.parse), lone surrogates (written back as `\ud…`), integers
 * that a double does not hold, and depth. `undefined` means: no proof, read it slowly.
 */
function parseQuickly(text: string, maxDepth: number): JsonValue | undefined {
  if (text.includes('__proto__') || text.includes('\\ud')) return undefined;
  try {
    const value: JsonValue = JSON.parse(text);
    return JSON.stringify(value) === text && isPlain(value, maxDepth) ? value : undefined;
  } catch {
    // Not JSON, or too deep for JSON.stringify: the slow reader says which and where.
    return undefined;
  }
}

function isPlain(value: JsonValue, depthLeft: number): boolean {
  if (typeof value === 'number') return Number.isSafeInteger(value) || !Number.isInteger(value);
  if (typeof value !== 'object' || value === null) return true;
  if (depthLeft === 0) return false;
  if (Array.isArray(value)) {
    for (const item of value as JsonArray) if (!isPlain(item, depthLeft - 1)) return false;
    return true;
  }
  const object = value as JsonObject;
  for (const key in object) if (!isPlain(object[key] as JsonValue, depthLeft - 1)) return false;
  return true;
}
