import { writeFileSync } from 'node:fs';
import { fromJsonSchema, McpServer } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';

/** A server over standard input and output that can hang, and says which process it is. */
function make(): McpServer {
  const server = new McpServer({ name: 'proc', version: '1.0.0' });
  const inputSchema = fromJsonSchema({ type: 'object', properties: {} });
  server.registerTool('pid', { description: 'which process', inputSchema }, () => ({
    content: [{ type: 'text', text: String(process.pid) }],
  }));
  server.registerTool('hang', { description: 'never answers', inputSchema }, () => {
    writeFileSync(process.env['HANGS'] ?? '', 'it came');
    return new Promise(() => undefined);
  });
  return server;
}

process.stderr.write('the server begins\n');
serveStdio(make);
