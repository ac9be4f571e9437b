import type { RouteSource, ToolProvider, ToolSource } from '../catalogue/tool-source.ts';
import type { Config, RouteConfig } from '../config/config.ts';
import { type ConfigPath, ProblemLog } from '../config/problem.ts';
import { messageOf } from '../message-of.ts';
import type { Definition } from './definition.ts';
import { pinnedPart } from './definition.ts';
import { listServer, type ServerListing } from './list-server.ts';
import { allowsMethod } from './methods.ts';
import { type Pin, type PinFirstUse, type Pins, pinFileOf, readPins } from './pin-book.ts';
import { RECORDED_READS } from './recorded-reads.ts';
import type { ServerRegistry } from './server-registry.ts';

export interface ProviderOptions {
  readonly registry: ServerRegistry;
  /** Pins a definition that is seen for the first time; absent for commands that only look. */
  readonly pinFirstUse?: PinFirstUse;
  /** Told of a server that could not be listed. */
  readonly onUnreachable?: (server: string) => void;
}

/** Finds the tools of MCP routes by asking their servers. A server that is not there has none, and is no error. */
export function createMcpProvider(options: ProviderOptions): ToolProvider {
  return async (route, positionOf, config) => {
    const log = new ProblemLog(positionOf);
    const path: ConfigPath = ['routes', route.index, 'mcp'];
    let listing: ServerListing;
    try {
      listing = await listServer(options.registry.get(route));
    } catch (error) {
      const why = messageOf(error);
      log.warning(
        'server_unreachable',
        path,
        `the MCP server \`${route.name}\` could not be asked for its tools, so it has none for now: ${why}`,
      );
      options.onUnreachable?.(route.name);
      return { tools: [], complete: false, unlisted: true, problems: log.problems };
    }
    for (const fault of listing.faults) log.warning('listed_tool', path, `the MCP server \`${route.name}\`: ${fault}`);
    const tools = await sourcesOf(route, config, listing, options.pinFirstUse, log);
    return { tools, complete: false, problems: log.problems } satisfies RouteSource;
  };
}

/** Longest `server__tool` of an endpoint over all routes. */
const MAX_NAME = 128;

async function sourcesOf(
  route: RouteConfig,
  config: Config,
  listing: ServerListing,
  pinFirstUse: PinFirstUse | undefined,
  log: ProblemLog,
): Promise<readonly ToolSource[]> {
  const path: ConfigPath = ['routes', route.index, 'mcp'];
  const file = pinFileOf(config.file);
  let pins = await readPinsOrTell(file, path, log);
  if (pins === undefined) return [];
  const isFirstList = ![...pins.keys()].some((id) => id.startsWith(`${route.name}/`));
  const added = new Map<string, Pin>();
  const definitions = listing.tools.filter((definition) => {
    if (route.name.length + 2 + definition.name.length > MAX_NAME) {
      log.warning(
        'listed_tool',
        path,
        `\`${route.name}__${definition.name}\` has more than ${MAX_NAME} characters: it is left out`,
      );
      return false;
    }
    const id = `${route.name}/${definition.name}`;
    const { record } = pinState(route, definition, pins?.get(id), isFirstList);
    if (record !== undefined) added.set(id, record);
    return true;
  });
  if (pinFirstUse !== undefined && added.size > 0) {
    try {
      // Another worker may have seen another definition first: that one counts.
      pins = await pinFirstUse(added);
    } catch (error) {
      const why = messageOf(error);
      log.warning(
        'pin',
        path,
        `the pins of first use cannot be kept in \`${file}\` (${why}): they hold until the next start`,
      );
    }
  }
  const tools = definitions.map((definition) => {
    const id = `${route.name}/${definition.name}`;
    const state = pinState(route, definition, pins?.get(id), isFirstList);
    if (state.pin !== undefined) {
      const what = state.pin === 'changed' ? 'differs from its pin' : 'is not pinned';
      log.warning('pin', path, `the definition of \`${id}\` ${what}: it is not offered until \`toolgate pin\` pins it`);
    }
    return sourceOf(route, definition, state, path);
  });
  return [...tools, ...readsOf(route, listing, path)];
}

async function readPinsOrTell(file: string, path: ConfigPath, log: ProblemLog): Promise<Pins | undefined> {
  try {
    return await readPins(file);
  } catch (error) {
    log.error('bad_pins', path, messageOf(error));
    return undefined;
  }
}

interface PinState {
  /** Whether the words of globs that lower a guard apply to it. */
  readonly pinned: boolean;
  readonly pin?: 'changed' | 'missing';
  /** To be written down, since it was seen for the first time. */
  readonly record?: Pin;
}

function pinState(route: RouteConfig, definition: Definition, known: Pin | undefined, isFirstList: boolean): PinState {
  const said = route.tools.find(({ name, pin }) => name === definition.name && pin !== undefined)?.pin;
  if (said !== undefined) return said === definition.digest ? { pinned: true } : { pinned: false, pin: 'changed' };
  if (route.pins === 'off') return { pinned: false };
  if (route.pins === 'required' && known?.by !== 'operator') return { pinned: false, pin: 'missing' };
  if (known !== undefined) {
    return known.digest === definition.digest ? { pinned: known.by !== 'later' } : { pinned: false, pin: 'changed' };
  }
  const { digest, listed } = definition;
  const record: Pin = { digest, by: isFirstList ? 'first_use' : 'later', definition: pinnedPart(listed) };
  return { pinned: isFirstList, record };
}

function sourceOf(route: RouteConfig, definition: Definition, { pinned, pin }: PinState, path: ConfigPath): ToolSource {
  const { name, description, input, output, listed } = definition;
  const trusted = route.annotations === 'trusted';
  const annotations = trusted ? listed['annotations'] : undefined;
  const says = (hint: string, value: boolean): boolean =>
    typeof annotations === 'object' && annotations !== null && (annotations as Record<string, unknown>)[hint] === value;
  return {
    name,
    ...(description === undefined ? {} : { description }),
    input,
    ...(output === undefined ? {} : { result: output }),
    // What a server says of itself lowers no guard, unless the operator says that it may.
    writes: { assumed: !says('readOnlyHint', true) },
    readsOutside: trusted ? says('openWorldHint', true) : true,
    listed,
    pinned,
    ...(pin === undefined ? {} : { pin }),
    path,
  };
}

/** Requests other than calls that bring content: where the server has them and the route lets them through. */
function readsOf(route: RouteConfig, { capabilities }: ServerListing, path: ConfigPath): readonly ToolSource[] {
  return Object.entries(RECORDED_READS).flatMap(([name, { method, capability, input }]) =>
    capabilities[capability] === undefined || !allowsMethod(route.methods, method)
      ? []
      : [
          {
            name,
            description: `the protocol's own \`${method}\` of this server`,
            input,
            writes: { assumed: false },
            readsOutside: route.annotations !== 'trusted',
            // What is asked for stands in its address: that it holds one is no leak by itself.
            sendsOut: true,
            pinned: true,
            path,
          },
        ],
  );
}
