import type { ServerCapabilities } from '@modelcontextprotocol/client';
import type { JsonObject } from '../../receipts/json-value.ts';

/**
 * Requests that bring content from a server without being tool calls. Each is a tool of the catalogue that nobody is
 * offered, named after its method, so that it is checked, recorded and marks its session as every read does.
 */
export const RECORDED_READS: Readonly<
  Record<string, { readonly method: string; readonly capability: keyof ServerCapabilities; readonly input: JsonObject }>
> = {
  'resources.read': {
    method: 'resources/read',
    capability: 'resources',
    input: {
      type: 'object',
      properties: { uri: { type: 'string', maxLength: 8192 } },
      required: ['uri'],
      additionalProperties: false,
    },
  },
  'prompts.get': {
    method: 'prompts/get',
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
  'completion.complete': {
    method: 'completion/complete',
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

const BY_METHOD: ReadonlyMap<string, string> = new Map(
  Object.entries(RECORDED_READS).map(([name, { method }]) => [method, name]),
);

/** Whether a name of the catalogue stands for a method and not for a tool. */
export function isRecordedRead(name: string): boolean {
  return Object.hasOwn(RECORDED_READS, name);
}

/** The name that a method has in the catalogue; `undefined` for one that is not recorded. */
export function recordedName(method: string): string | undefined {
  return BY_METHOD.get(method);
}

/** The request that a tool of an MCP route is. */
export function requestOf(name: string, args: JsonObject): { readonly method: string; readonly params: JsonObject } {
  const read = isRecordedRead(name) ? RECORDED_READS[name] : undefined;
  return read === undefined
    ? { method: 'tools/call', params: { name, arguments: args } }
    : { method: read.method, params: args };
}
