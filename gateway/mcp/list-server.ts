import type { ServerCapabilities } from '@modelcontextprotocol/client';
import { isArray, type JsonObject } from '../../receipts/json-value.ts';
import { type Definition, parseDefinition } from './definition.ts';
import type { ServerConnection } from './server-connection.ts';
import { requestServer } from './server-request.ts';

/** What a server offers, as it says. */
export interface ServerListing {
  readonly capabilities: ServerCapabilities;
  readonly tools: readonly Definition[];
  /** What of its lists cannot be used, a sentence each. */
  readonly faults: readonly string[];
}

const MAX_PAGES = 1_000;
const MAX_TOOLS = 20_000;
const PAGE_MS = 30_000;

/**
 * Reads every page of a server's tools. What is wrong with one entry drops that entry; pages that do not advance end the
 * reading with what came before. Rejects where the server cannot be reached or does not list.
 */
export async function listServer(connection: ServerConnection): Promise<ServerListing> {
  const capabilities = await connection.capabilities();
  const tools = new Map<string, Definition>();
  const faults: string[] = [];
  const seen = new Set<string>();
  let cursor: string | undefined;
  for (let page = 0; capabilities.tools !== undefined; page += 1) {
    const result = await requestServer(connection, {
      method: 'tools/list',
      params: cursor === undefined ? {} : { cursor },
      timeoutMs: PAGE_MS,
      mayAsk: false,
    });
    takePage(result, tools, faults);
    const { nextCursor } = result;
    if (typeof nextCursor !== 'string') break;
    if (seen.has(nextCursor) || page >= MAX_PAGES || tools.size >= MAX_TOOLS) {
      faults.push(
        'its list of tools does not end: a page leads to one that came before, or there are too many; what came so far is taken',
      );
      break;
    }
    seen.add(nextCursor);
    cursor = nextCursor;
  }
  return { capabilities, tools: [...tools.values()], faults };
}

function takePage(result: JsonObject, tools: Map<string, Definition>, faults: string[]): void {
  const entries = result['tools'];
  if (!isArray(entries)) {
    faults.push('a page of its list has no `tools`');
    return;
  }
  for (const entry of entries) {
    const definition = parseDefinition(entry);
    if (typeof definition === 'string') faults.push(`${definition}: it is left out`);
    else if (tools.has(definition.name)) faults.push(`it lists \`${definition.name}\` twice: the first counts`);
    else tools.set(definition.name, definition);
  }
}
