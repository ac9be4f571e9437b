import type { ServerCapabilities } from '@modelcontextprotocol/client';
import type { JsonObject } from '../../receipts/json-value.ts';

/**
 * Requests that bring content from a server without being tool calls. Each is a tool of the catalogue that nobody is
 * offered, named as its method, so that it is checked, recorded and marks its session as every read does.
 */
export const RECORDED_READS: Readonly<
  Record<string, { readonly capability: keyof ServerCapabilities; readonly input: JsonObject }>
> = {
  'resources/read': {
    capability: 'resources',
    input: {
      type: 'object',
      properties: { uri: { type: 'string', maxLength: 8192 } },
      required: ['uri'],
      additionalProperties: false,
    },
  },
  'prompts/get': {
    capability: 'prompts',
    input: {
      type: 'object',
      properties: {
        name: { type: 'string', maxLength: 1024 },
        arguments: { type: 'object', additionalProperties: { type: 'string' } },
      },
      required: ['name'],
      additionalProperties: false,
    },
  },
  'completion/complete': {
    capability: 'completions',
    input: {
      type: 'object',
      properties: {
        ref: { type: 'object', additionalProperties: true },
        argument: {
          type: 'object',
          properties: { name: { type: 'string' }, value: { type: 'string' } },
          required: ['name', 'value'],
          additionalProperties: false,
        },
        context: { type: 'object', additionalProperties: true },
      },
      required: ['ref', 'argument'],
      additionalProperties: false,
    },
  },
};

/** Whether a name of the catalogue stands for a method and not for a tool. */
export function isRecordedRead(name: string): boolean {
  return Object.hasOwn(RECORDED_READS, name);
}

/** The request that a tool of an MCP route is. */
export function requestOf(name: string, args: JsonObject): { readonly method: string; readonly params: JsonObject } {
  return isRecordedRead(name)
    ? { method: name, params: args }
    : { method: 'tools/call', params: { name, arguments: args } };
}
