import {
  Client,
  type ClientCapabilities,
  type PriorDiscovery,
  StreamableHTTPClientTransport,
} from '@modelcontextprotocol/client';
import type { CallRelay } from '../exchange.ts';
import type { ServerFetch } from './http-fetch.ts';
import { OWN_NAME } from './own-name.ts';
import { type StdioCommand, StdioTransport } from './stdio-transport.ts';

/** A call that is on its way. */
export interface ActiveCall extends CallRelay {
  /** Something was heard of it, so that its time begins anew. */
  readonly heard: () => void;
}

/** A connection to an MCP server that speaks for one client's session, or for all of them (a process). */
export interface Link {
  readonly client: Client;
  /** Calls that are on their way over it. */
  readonly active: Set<ActiveCall>;
  /** A call whose answer is filtered has gone over it. */
  filtered: boolean;
  /** Ends it, also at the server. */
  end(): Promise<void>;
}

/** How long a server may take to say what it is, in milliseconds. */
const CONNECT_MS = 20_000;
/** A process that says nothing for so long to the newer era's greeting is of the older. */
const PROBE_MS = 3_000;

/**
 * Makes the SDK's client. It validates no answer, keeps no cache and answers no question by itself: what passes is passed
 * on as it came.
 */
export function makeClient(
  capabilities: ClientCapabilities,
  mode: 'auto' | 'legacy',
  onToolsChanged?: () => void,
): Client {
  const client = new Client(OWN_NAME, {
    capabilities,
    versionNegotiation: { mode, probe: { timeoutMs: PROBE_MS } },
    inputRequired: { autoFulfill: false },
    ...(onToolsChanged === undefined
      ? {}
      : { listChanged: { tools: { autoRefresh: false, debounceMs: 100, onChanged: () => onToolsChanged() } } }),
  });
  return client;
}

/** Connects over streamable HTTP. Rejects with the SDK's error. */
export async function linkHttp(
  url: string,
  { fetch }: ServerFetch,
  client: Client,
  prior: PriorDiscovery | undefined,
): Promise<Link> {
  const transport = new StreamableHTTPClientTransport(new URL(url), { fetch });
  await client.connect(transport, { timeout: CONNECT_MS, ...(prior === undefined ? {} : { prior }) });
  return {
    client,
    active: new Set(),
    filtered: false,
    end: async () => {
      // The server may be gone, or keep its sessions: it was told, that is all that there is to do.
      await transport.terminateSession().catch(() => undefined);
      await client.close();
    },
  };
}

/** Starts a process and connects to it. A process that ends when it is greeted in the newer era is started again in the older. */
export async function linkStdio(command: StdioCommand, make: (mode: 'auto' | 'legacy') => Client): Promise<Link> {
  let client = make('auto');
  try {
    await client.connect(new StdioTransport(command), { timeout: CONNECT_MS });
  } catch {
    await client.close();
    client = make('legacy');
    await client.connect(new StdioTransport(command), { timeout: CONNECT_MS });
  }
  const connected = client;
  return { client: connected, active: new Set(), filtered: false, end: () => connected.close() };
}
