import type { ToolProvider } from '../catalogue/tool-source.ts';
import { createLog, type Log } from '../log.ts';
import { ServerRegistry } from './server-registry.ts';
import { createMcpProvider } from './tool-provider.ts';

/**
 * Runs work that needs to know what MCP servers list, as commands do that look at a configuration and end: servers are
 * asked, nothing is written down, and every connection is closed again.
 */
export async function lookAtServers<T>(
  work: (provider: ToolProvider, registry: ServerRegistry) => Promise<T>,
  log?: Log,
): Promise<T> {
  const registry = new ServerRegistry(log ?? createLog({ level: 'silent' }));
  try {
    return await work(createMcpProvider({ registry }), registry);
  } finally {
    await registry.close();
  }
}
