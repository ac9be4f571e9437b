import { readFileSync } from 'node:fs';

/** A file of the known-answer vectors. */
export function readVector<T>(name: string): T {
  return JSON.parse(readFileSync(new URL(`../vectors/${name}`, import.meta.url), 'utf8')) as T;
}

export type Words = Record<string, unknown>;

interface ShopFile {
  readonly agents: Record<string, { privilege: string; tools: string[] }>;
  readonly server: string;
  readonly tools: Record<string, Words>;
  readonly rulebook: string;
}

const SHOP: ShopFile = readVector<ShopFile>('shop.json');

/** The files that the shop's config names. */
export const SHOP_FILES: Readonly<Record<string, string>> = { 'policy.co': SHOP.rulebook };

/** What a scenario changes of the shop. */
export interface ShopChange {
  readonly language?: string;
  readonly override?: Record<string, Words>;
  readonly settings?: Record<string, unknown>;
}

/** The shop of the vectors as a gateway config: every tool a hand-listed call of one route. */
export function shopConfig(upstream: string, change: ShopChange = {}): Record<string, unknown> {
  const agentsOf = (tool: string): string[] =>
    Object.entries(SHOP.agents)
      .filter(([, { tools }]) => tools.includes(tool))
      .map(([name]) => name);
  const tools = Object.entries(SHOP.tools).map(([name, words]) => ({
    name,
    ...words,
    ...change.override?.[name],
  }));
  return {
    tenant: 'shop',
    audience: 'shop-gateway',
    language: change.language ?? 'en',
    rulebook: './policy.co',
    ...change.settings,
    agents: Object.fromEntries(Object.entries(SHOP.agents).map(([name, { privilege }]) => [name, { privilege }])),
    routes: [
      {
        name: SHOP.server,
        path: '/shop',
        upstream,
        agents: Object.keys(SHOP.agents),
        http: tools.map(({ name, writes, input }: Words) => ({
          name,
          method: writes === true ? 'POST' : 'GET',
          path: `/${String(name)}`,
          ...(writes === true ? { writes } : {}),
          input,
        })),
        tools: tools.map((words) => {
          const { writes: _writes, input: _input, ...rest }: Words = words;
          return { ...rest, agents: agentsOf(String(words['name'])) };
        }),
      },
    ],
  };
}
