import type { fromJsonSchema } from '@modelcontextprotocol/server';

/** A red pixel. */
export const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==';

/** JSON Schema as the SDK takes it. */
export type JsonSchema = Parameters<typeof fromJsonSchema>[0];

/** The schema of an object. */
export function schema(properties: Record<string, unknown>, required: readonly string[] = []): JsonSchema {
  return { type: 'object', properties, required: [...required] } as JsonSchema;
}

export const NOTHING: JsonSchema = schema({});

export const READS = { readOnlyHint: true, openWorldHint: false } as const;

/** A result that is one text. */
export function text(value: string): { content: { type: 'text'; text: string }[] } {
  return { content: [{ type: 'text', text: value }] };
}
