import { parseJson } from '../../receipts/json.ts';
import { JsonFault } from '../../receipts/json-fault.ts';
import { isArray, isObject, type JsonObject, type JsonValue } from '../../receipts/json-value.ts';
import type { Lookups } from './condition.ts';
import type { CompiledFilter, Filtered } from './filter.ts';

/**
 * Filters an MCP tool result (`CallToolResult`): the records stand in `structuredContent`, in text content that is JSON,
 * or in both, and what is passed on says the same in both. Content that cannot be read as JSON could show a record that
 * is held back, so beside `structuredContent` it is left out, and alone it makes the result unreadable (`undefined`): but
 * for a result that says that the call failed, whose words pass where they are no records. Any member beside these
 * (`_meta`, those of later revisions) could show one too, and is left out, of the result and of its texts.
 * @param render writes JSON text, every digit of large integers kept
 */
export function filterToolResult(
  filter: CompiledFilter,
  result: JsonValue,
  lookups: Lookups,
  render: (value: JsonValue) => string,
): Filtered | undefined {
  if (!isObject(result)) return undefined;
  const { structuredContent, content, isError } = result;
  const failed = isError === true;
  const told: JsonObject = isError === undefined ? {} : { isError };
  const filtered = structuredContent === undefined ? undefined : filter(structuredContent, lookups);
  if (filtered !== undefined) {
    const text = [{ type: 'text', text: render(filtered.value) }];
    const members = { content: text, structuredContent: filtered.value, ...told };
    return { value: members, heldBack: filtered.heldBack };
  }
  if (!isArray(content) || (structuredContent !== undefined && !failed)) return undefined;
  const blocks: JsonValue[] = [];
  let heldBack = 0;
  for (const block of content) {
    const shown = filterText(filter, block, lookups, render) ?? (failed ? { value: block, heldBack: 0 } : undefined);
    if (shown === undefined) return undefined;
    blocks.push(shown.value);
    heldBack += shown.heldBack;
  }
  const kept: JsonObject = structuredContent === undefined ? {} : { structuredContent };
  return { value: { content: blocks, ...kept, ...told }, heldBack };
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
  const { heldBack } = filtered;
  return { value: { type: 'text', text: heldBack === 0 ? block['text'] : render(filtered.value) }, heldBack };
}

function parseText(text: string): JsonValue | undefined {
  try {
    return parseJson(text);
  } catch (error) {
    if (error instanceof JsonFault) return undefined;
    throw error;
  }
}
