import { parseJson } from '../../receipts/json.ts';
import { JsonFault } from '../../receipts/json-fault.ts';
import { isArray, isObject, type JsonObject, type JsonValue } from '../../receipts/json-value.ts';
import type { Lookups } from './condition.ts';
import type { CompiledFilter, Filtered } from './filter.ts';

/**
 * Filters an MCP tool result (`CallToolResult`): the records stand in `structuredContent`, in text content that is JSON,
 * or in both, and what is passed on says the same in both. Content that cannot be read as JSON could show a record that
 * is held back, so beside `structuredContent` it is left out, and alone it makes the result unreadable (`undefined`).
 * @param render writes JSON text, every digit of large integers kept
 */
export function filterToolResult(
  filter: CompiledFilter,
  result: JsonValue,
  lookups: Lookups,
  render: (value: JsonValue) => string,
): Filtered | undefined {
  if (!isObject(result)) return undefined;
  const { structuredContent, content } = result;
  if (structuredContent !== undefined) {
    const filtered = filter(structuredContent, lookups);
    if (filtered === undefined) return undefined;
    const text = [{ type: 'text', text: render(filtered.value) }];
    const members = { ...result, structuredContent: filtered.value, content: text };
    return { value: members, heldBack: filtered.heldBack };
  }
  if (!isArray(content)) return undefined;
  const blocks: JsonValue[] = [];
  let heldBack = 0;
  for (const block of content) {
    const filtered = filterText(filter, block, lookups, render);
    if (filtered === undefined) return undefined;
    blocks.push(filtered.value);
    heldBack += filtered.heldBack;
  }
  return { value: { ...result, content: blocks }, heldBack };
}

function filterText(
  filter: CompiledFilter,
  block: JsonValue,
  lookups: Lookups,
  render: (value: JsonValue) => string,
): Filtered | undefined {
  if (!isObject(block) || block['type'] !== 'text' || typeof block['text'] !== 'string') return undefined;
  const value = parseText(block['text']);
  const filtered = value === undefined ? undefined : filter(value, lookups);
  if (filtered === undefined) return undefined;
  if (filtered.heldBack === 0) return { value: block, heldBack: 0 };
  const rewritten: JsonObject = { ...block, text: render(filtered.value) };
  return { value: rewritten, heldBack: filtered.heldBack };
}

function parseText(text: string): JsonValue | undefined {
  try {
    return parseJson(text);
  } catch (error) {
    if (error instanceof JsonFault) return undefined;
    throw error;
  }
}
