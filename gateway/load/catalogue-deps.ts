import { compileSchema } from '../../policy/schema/compile.ts';
import type { CatalogueDeps } from '../catalogue/build.ts';
import type { ToolProvider } from '../catalogue/tool-source.ts';

/**
 * What the making of a catalogue takes from elsewhere.
 * @param mcp Asks MCP servers for their tools; without it their routes have none.
 */
export function catalogueDeps(mcp?: ToolProvider): CatalogueDeps {
  return { compileSchema, ...(mcp === undefined ? {} : { mcp }) };
}
