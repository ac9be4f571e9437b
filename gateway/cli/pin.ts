import { pinnedPart } from '../mcp/definition.ts';
import { listServer } from '../mcp/list-server.ts';
import { lookAtServers } from '../mcp/look-at-servers.ts';
import { type Pin, type Pins, pinFileOf, readPins, writePins } from '../mcp/pin-book.ts';
import { renderDifferences } from '../mcp/pin-differences.ts';
import type { ServerRegistry } from '../mcp/server-registry.ts';
import { messageOf } from '../message-of.ts';
import { readWhole, type WholeConfig } from '../serve/whole-config.ts';
import { CliFault } from './command.ts';

export interface PinOptions {
  /** Shows what differs and writes nothing. */
  readonly diff?: boolean;
  readonly json?: boolean;
  /** Pins the tools of these servers alone; of all where it is empty. */
  readonly servers: readonly string[];
}

/** What there is to print, and whether anything differed from the pins. */
export interface PinResult {
  readonly text: string;
  readonly differs: boolean;
}

/**
 * `toolgate pin`: asks every MCP server of a configuration for its tools and pins their definitions as they are now; with
 * `diff` tells what differs from the pins. Throws `CliFault` where a server that was asked for is not there.
 */
export function pin(file: string, options: PinOptions): Promise<PinResult> {
  return lookAtServers(async (provider, registry) => {
    const whole = await readWhole(file, process.env, provider);
    const path = pinFileOf(whole.config.file);
    const before = await readPins(path);
    const now = await definitionsOf(whole, registry, options.servers);
    const asked = new Set([...now.keys()].map(serverOf));
    const differences = renderDifferences(before, now, asked);
    if (options.diff === true) {
      const text =
        options.json === true ? `${JSON.stringify({ differences }, null, 2)}\n` : textOf(differences, 'as pinned\n');
      return { text, differs: differences.length > 0 };
    }
    const kept = [...before].filter(([id]) => !asked.has(serverOf(id)));
    await writePins(path, new Map([...kept, ...now]));
    const told = { pinned: now.size, file: path, differences };
    const text =
      options.json === true
        ? `${JSON.stringify(told, null, 2)}\n`
        : `${textOf(differences, '')}pinned ${now.size} tools in ${path}\n`;
    return { text, differs: differences.length > 0 };
  });
}

async function definitionsOf(
  { config }: WholeConfig,
  registry: ServerRegistry,
  servers: readonly string[],
): Promise<Pins> {
  const routes = config.routes.filter(
    ({ name, source }) => source.kind === 'mcp' && (servers.length === 0 || servers.includes(name)),
  );
  const unknown = servers.find((name) => !routes.some((route) => route.name === name));
  if (unknown !== undefined) throw new CliFault(1, `\`${unknown}\` is no MCP route of the configuration`);
  const pins = new Map<string, Pin>();
  for (const route of routes) {
    const listing = await listServer(registry.get(route)).catch((error: unknown) => {
      throw new CliFault(2, messageOf(error));
    });
    for (const { name, digest, listed } of listing.tools) {
      pins.set(`${route.name}/${name}`, { digest, by: 'operator', definition: pinnedPart(listed) });
    }
  }
  return pins;
}

function textOf(differences: readonly { readonly text: string }[], none: string): string {
  return differences.length === 0 ? none : `${differences.map(({ text }) => text).join('\n')}\n`;
}

function serverOf(id: string): string {
  return id.slice(0, id.indexOf('/'));
}
