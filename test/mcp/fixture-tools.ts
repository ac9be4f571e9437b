import { setTimeout as pause } from 'node:timers/promises';
import { fromJsonSchema, inputRequired, McpServer, type ServerContext } from '@modelcontextprotocol/server';
import { canonicalize } from '../../receipts/canonical.ts';
import { addInputTools, INPUT_STATE } from './fixture-inputs.ts';
import { addPrompts, addResources } from './fixture-resources.ts';
import { type JsonSchema, NOTHING, PNG, READS, schema, text } from './fixture-schema.ts';

/** A moment of silence. */
const WAV = 'UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=';

type Args = Readonly<Record<string, unknown>>;

/** Enum schemas of every form that a question may have. */
const ENUMS = {
  untitledSingle: { type: 'string', enum: ['option1', 'option2', 'option3'] },
  titledSingle: {
    type: 'string',
    oneOf: [
      { const: 'value1', title: 'First Option' },
      { const: 'value2', title: 'Second Option' },
    ],
  },
  legacyEnum: {
    type: 'string',
    enum: ['opt1', 'opt2', 'opt3'],
    enumNames: ['Option One', 'Option Two', 'Option Three'],
  },
  untitledMulti: { type: 'array', items: { type: 'string', enum: ['option1', 'option2', 'option3'] } },
  titledMulti: {
    type: 'array',
    items: {
      anyOf: [
        { const: 'value1', title: 'First Choice' },
        { const: 'value2', title: 'Second Choice' },
      ],
    },
  },
};

const DEFAULTS = {
  name: { type: 'string', default: 'John Doe' },
  age: { type: 'integer', default: 30 },
  score: { type: 'number', default: 95.5 },
  status: { type: 'string', enum: ['active', 'inactive', 'pending'], default: 'active' },
  verified: { type: 'boolean', default: true },
};

const WHO = {
  username: { type: 'string', description: "User's response" },
  email: { type: 'string', description: 'An address' },
};

/**
 * The server that the official conformance suite asks for, with what further tests need: the same for both eras.
 * @param tellChange Tells clients that the tools changed, where the server cannot by itself (a server of one request).
 */
export function makeFixture(tellChange?: () => void): McpServer {
  const server = new McpServer(
    { name: 'fixture', version: '1.0.0' },
    {
      capabilities: { logging: {}, completions: {}, resources: { subscribe: true } },
      requestState: { verify: INPUT_STATE.verify },
    },
  );
  addContentTools(server);
  addTalkingTools(server, tellChange);
  addAskingTools(server);
  addInputTools(server);
  addResources(server);
  addPrompts(server);
  server.server.setRequestHandler('resources/subscribe', () => ({}));
  server.server.setRequestHandler('resources/unsubscribe', () => ({}));
  return server;
}

function addContentTools(server: McpServer): void {
  const tool = (name: string, description: string, content: unknown[]): void => {
    server.registerTool(
      name,
      { description, inputSchema: fromJsonSchema(NOTHING), annotations: READS },
      () => ({ content }) as never,
    );
  };
  const embedded = {
    uri: 'test://embedded-resource',
    mimeType: 'text/plain',
    text: 'This is an embedded resource content.',
  };
  const mixed = {
    uri: 'test://mixed-content-resource',
    mimeType: 'application/json',
    text: '{"test":"data","value":123}',
  };
  tool('test_simple_text', 'answers a text', [{ type: 'text', text: 'This is a simple text response for testing.' }]);
  tool('test_image_content', 'answers an image', [{ type: 'image', data: PNG, mimeType: 'image/png' }]);
  tool('test_audio_content', 'answers a sound', [{ type: 'audio', data: WAV, mimeType: 'audio/wav' }]);
  tool('test_embedded_resource', 'answers a resource', [{ type: 'resource', resource: embedded }]);
  tool('test_multiple_content_types', 'answers content of several kinds', [
    { type: 'text', text: 'Multiple content types test:' },
    { type: 'image', data: PNG, mimeType: 'image/png' },
    { type: 'resource', resource: mixed },
  ]);
  server.registerTool(
    'test_error_handling',
    { description: 'fails', inputSchema: fromJsonSchema(NOTHING), annotations: READS },
    () => ({ ...text('This tool intentionally returns an error for testing'), isError: true }),
  );
  const address = {
    $anchor: 'addressDef',
    type: 'object',
    properties: { street: { type: 'string' }, city: { type: 'string' } },
  };
  const newest = {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    type: 'object',
    $defs: { address },
    properties: {
      name: { type: 'string' },
      address: { $ref: '#/$defs/address' },
      contactMethod: { type: 'string', enum: ['phone', 'email'] },
      phone: { type: 'string' },
      email: { type: 'string' },
    },
    allOf: [{ anyOf: [{ required: ['phone'] }, { required: ['email'] }] }],
    if: { properties: { contactMethod: { const: 'phone' } }, required: ['contactMethod'] },
    // biome-ignore lint/suspicious/noThenProperty: the keyword of JSON Schema
    then: { required: ['phone'] },
    else: { required: ['email'] },
    additionalProperties: false,
  };
  server.registerTool(
    'json_schema_2020_12_tool',
    {
      description: 'Tool with JSON Schema 2020-12 features',
      inputSchema: fromJsonSchema(newest as JsonSchema),
      annotations: READS,
    },
    (args) => text(JSON.stringify(args)),
  );
}

function addTalkingTools(server: McpServer, tellChange: (() => void) | undefined): void {
  const about = (
    description: string,
  ): { description: string; inputSchema: ReturnType<typeof fromJsonSchema>; annotations: typeof READS } => ({
    description,
    inputSchema: fromJsonSchema(NOTHING),
    annotations: READS,
  });
  server.registerTool('test_tool_with_logging', about('logs while it runs'), async (_args, { mcpReq }) => {
    await mcpReq.log('info', 'Tool execution started');
    await pause(50);
    await mcpReq.log('info', 'Tool processing data');
    await pause(50);
    await mcpReq.log('info', 'Tool execution completed');
    return text('it logged');
  });
  server.registerTool('test_tool_with_progress', about('tells how far it is'), async (_args, ctx) => {
    for (const progress of [0, 50, 100]) {
      await tellProgress(ctx, progress, 100);
      await pause(50);
    }
    return text('it told');
  });
  server.registerTool('test_logging_tool', about('logs, where it may'), async (_args, { mcpReq }) => {
    await mcpReq.log('info', 'for whoever asked for it');
    return text('it logged, where it may');
  });
  server.registerTool('test_streaming_elicitation', about('answers over a stream'), async (_args, ctx) => {
    await tellProgress(ctx, 1, 1);
    return text('it streamed');
  });
  server.registerTool('test_trigger_tool_change', about('says that the tools changed'), () => {
    if (tellChange === undefined) server.sendToolListChanged();
    else tellChange();
    return text('it was said');
  });
  server.registerTool(
    'test_reconnection',
    about('closes its stream and answers all the same'),
    async (_args, { http }) => {
      await pause(50);
      http?.closeSSE?.();
      await pause(100);
      return text('it answered over another stream');
    },
  );
}

/** Tells progress, where the client asked for it. */
async function tellProgress({ mcpReq }: ServerContext, progress: number, total: number): Promise<void> {
  const progressToken = mcpReq._meta?.progressToken;
  if (progressToken === undefined) return;
  await mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress, total } });
}

function addAskingTools(server: McpServer): void {
  // `inputRequired` asks in the way of whichever era the client speaks.
  const asking = (name: string, description: string, input: JsonSchema, schemaOf: unknown, shown: string): void => {
    server.registerTool(
      name,
      { description, inputSchema: fromJsonSchema(input), annotations: READS },
      (args, { mcpReq }) => {
        const answer = mcpReq.inputResponses?.['question'];
        const message = (args as Args)['message'];
        if (answer === undefined) {
          const params = {
            message: typeof message === 'string' ? message : 'Please answer',
            requestedSchema: schemaOf,
          };
          return inputRequired({ inputRequests: { question: inputRequired.elicit(params as never) } });
        }
        return text(`${shown}${JSON.stringify(answer)}`);
      },
    );
  };
  const form = (properties: unknown, required: readonly string[]): unknown => ({
    type: 'object',
    properties,
    required,
  });
  asking(
    'test_elicitation',
    'asks a person',
    schema({ message: { type: 'string' } }, ['message']),
    form(WHO, ['username', 'email']),
    'User response: ',
  );
  asking(
    'test_elicitation_sep1034_defaults',
    'asks with defaults',
    NOTHING,
    form(DEFAULTS, []),
    'Elicitation completed: ',
  );
  asking('test_elicitation_sep1330_enums', 'asks with lists', NOTHING, form(ENUMS, []), 'Elicitation completed: ');
  const prompt = schema({ prompt: { type: 'string' } }, ['prompt']);
  server.registerTool(
    'test_sampling',
    { description: 'asks a model', inputSchema: fromJsonSchema(prompt), annotations: READS },
    (args, { mcpReq }) => {
      const answer = mcpReq.inputResponses?.['sample'];
      if (answer !== undefined) return text(`LLM response: ${canonicalize(answer as never)}`);
      const asked = {
        role: 'user' as const,
        content: { type: 'text' as const, text: String((args as Args)['prompt']) },
      };
      return inputRequired({
        inputRequests: { sample: inputRequired.createMessage({ messages: [asked], maxTokens: 100 }) },
      });
    },
  );
}
