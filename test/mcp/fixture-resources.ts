import { fromJsonSchema, type McpServer, ResourceTemplate } from '@modelcontextprotocol/server';
import { PNG, schema } from './fixture-schema.ts';

/** Resources and a template, as the official suite asks for them. */
export function addResources(server: McpServer): void {
  server.registerResource(
    'static-text',
    'test://static-text',
    { mimeType: 'text/plain', description: 'a text' },
    (uri) => ({
      contents: [{ uri: uri.href, mimeType: 'text/plain', text: 'This is the content of the static text resource.' }],
    }),
  );
  server.registerResource(
    'static-binary',
    'test://static-binary',
    { mimeType: 'image/png', description: 'an image' },
    (uri) => ({
      contents: [{ uri: uri.href, mimeType: 'image/png', blob: PNG }],
    }),
  );
  server.registerResource(
    'watched',
    'test://watched-resource',
    { mimeType: 'text/plain', description: 'watched' },
    (uri) => ({
      contents: [{ uri: uri.href, mimeType: 'text/plain', text: 'watched' }],
    }),
  );
  const template = new ResourceTemplate('test://template/{id}/data', { list: undefined });
  server.registerResource(
    'template',
    template,
    { mimeType: 'application/json', description: 'by id' },
    (uri, { id }) => ({
      contents: [
        {
          uri: uri.href,
          mimeType: 'application/json',
          text: JSON.stringify({ id, templateTest: true, data: `Data for ID: ${String(id)}` }),
        },
      ],
    }),
  );
}

/** Prompts and their completion, as the official suite asks for them. */
export function addPrompts(server: McpServer): void {
  const user = (content: unknown): never => ({ messages: [{ role: 'user', content }] }) as never;
  server.registerPrompt('test_simple_prompt', { description: 'simple' }, () =>
    user({ type: 'text', text: 'This is a simple prompt for testing.' }),
  );
  const arg = (description: string): unknown => ({ type: 'string', description });
  const two = schema({ arg1: arg('first'), arg2: arg('second') }, ['arg1', 'arg2']);
  server.registerPrompt(
    'test_prompt_with_arguments',
    { description: 'two arguments', argsSchema: fromJsonSchema(two) },
    (args) => {
      const { arg1, arg2 } = args as { arg1: string; arg2: string };
      return user({ type: 'text', text: `Prompt with arguments: arg1='${arg1}', arg2='${arg2}'` });
    },
  );
  const one = schema({ resourceUri: arg('which') }, ['resourceUri']);
  server.registerPrompt(
    'test_prompt_with_embedded_resource',
    { description: 'a resource', argsSchema: fromJsonSchema(one) },
    (args) => {
      const { resourceUri } = args as { resourceUri: string };
      return user({
        type: 'resource',
        resource: { uri: resourceUri, mimeType: 'text/plain', text: 'Embedded resource content for testing.' },
      });
    },
  );
  server.registerPrompt('test_prompt_with_image', { description: 'an image' }, () =>
    user({ type: 'image', data: PNG, mimeType: 'image/png' }),
  );
  server.server.setRequestHandler('completion/complete', () => ({
    completion: { values: ['paris', 'park'], total: 2, hasMore: false },
  }));
}
