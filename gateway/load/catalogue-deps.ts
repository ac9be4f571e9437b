import { compileSchema } from '../../policy/schema/compile.ts';
import type { BuiltCatalogue, CatalogueDeps } from '../catalogue/build.ts';
import type { ToolProvider } from '../catalogue/tool-source.ts';
import { openApiProvider } from '../openapi/provider.ts';

/** How closely documents are looked at, and which are known already. */
export interface DepsOptions {
  /** The catalogue in use: its documents are not read again where they have not changed. */
  readonly current?: BuiltCatalogue;
  /** As `toolgate validate` does. */
  readonly thorough?: boolean;
  /** Asks MCP servers for their tools; without it their routes have none. */
  readonly mcp?: ToolProvider;
}

/** What the making of a catalogue takes from elsewhere. */
export function catalogueDeps({ current, thorough = false, mcp }: DepsOptions = {}): CatalogueDeps {
  const known = (current?.routes ?? []).flatMap(({ document }) => (document === undefined ? [] : [document]));
  return { compileSchema, openapi: openApiProvider({ known, thorough }), ...(mcp === undefined ? {} : { mcp }) };
}
