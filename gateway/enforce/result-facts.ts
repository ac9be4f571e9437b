import { parseJson } from '../../receipts/json.ts';
import { JsonFault } from '../../receipts/json-fault.ts';
import { isObject, type JsonValue } from '../../receipts/json-value.ts';
import type { Loaded } from '../loaded.ts';

/**
 * What rules, bindings and origins read of an answer: of an MCP tool's result its structured content, else the JSON of
 * its one text; of any other answer all of it.
 */
export function factsOf(loaded: Loaded, server: string, answer: JsonValue): JsonValue {
  if (!isMcp(loaded, server) || !isObject(answer)) return answer;
  const { structuredContent, content } = answer;
  if (structuredContent !== undefined) return structuredContent;
  if (!Array.isArray(content)) return answer;
  const [only, ...others] = content as readonly JsonValue[];
  const text = isObject(only) && others.length === 0 ? only['text'] : undefined;
  return (typeof text === 'string' ? tryParse(text) : undefined) ?? {};
}

/** What the digest of a result covers: of an MCP tool's result all but `_meta` (docs/formats.md). */
export function digestedPart(loaded: Loaded, server: string, answer: JsonValue): JsonValue {
  if (!isMcp(loaded, server) || !isObject(answer)) return answer;
  const { _meta: _left, ...rest } = answer;
  return rest;
}

function isMcp(loaded: Loaded, server: string): boolean {
  return loaded.mcp.routes.get(server)?.source.kind === 'mcp';
}

function tryParse(text: string): JsonValue | undefined {
  try {
    return parseJson(text);
  } catch (error) {
    if (error instanceof JsonFault) return undefined;
    throw error;
  }
}
