import { Client, type ClientCapabilities, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';

/** How a client connects in a test. */
export interface ClientOptions {
  readonly key?: string;
  readonly era?: 'legacy' | 'modern';
  readonly capabilities?: ClientCapabilities;
  /** Set up before it connects: what it answers when it is asked. */
  readonly prepare?: (client: Client) => void;
  readonly name?: string;
  /** Sent with every request. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** The SDK's own client, which knows nothing of Toolgate. */
export async function connectClient(url: string, options: ClientOptions = {}): Promise<Client> {
  const { key, era = 'legacy', capabilities = {}, prepare, name = 'test-client' } = options;
  const client = new Client(
    { name, version: '1.0.0' },
    { capabilities, versionNegotiation: { mode: era === 'legacy' ? 'legacy' : { pin: '2026-07-28' } } },
  );
  prepare?.(client);
  const headers = { ...options.headers, ...(key === undefined ? {} : { authorization: `Bearer ${key}` }) };
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } }));
  return client;
}

/** The text of a tool's result. */
export function textOf(result: { readonly content?: unknown }): string {
  const [first] = Array.isArray(result.content) ? result.content : [];
  return typeof first?.text === 'string' ? first.text : '';
}

/** What a tool's result says of the check. */
export interface SaidCheck {
  readonly decision?: string;
  readonly reason?: string;
  readonly session?: string;
  readonly step?: number;
  readonly detail?: Readonly<Record<string, unknown>>;
  readonly confirmation?: { readonly id: string };
}

/** `_meta["toolgate/check"]` of a result; empty where there is none. */
export function checkOf(result: { readonly _meta?: Readonly<Record<string, unknown>> | undefined }): SaidCheck {
  return (result._meta?.['toolgate/check'] ?? {}) as SaidCheck;
}
