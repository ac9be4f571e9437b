import { type Store, type StoreOptions, StoreSetupError } from './port.ts';
import { openSqliteStore } from './sqlite-store.ts';

/** Where a store is, as the config's `store` says. */
export type StorePlace =
  | { readonly kind: 'sqlite'; readonly path: string }
  | { readonly kind: 'postgres'; readonly url: string };

/**
 * Reads where a store is: `postgres://...` or `postgresql://...`, else the path of a SQLite file, bare or as
 * `sqlite:path`.
 */
export function parseStorePlace(text: string): StorePlace {
  if (/^postgres(?:ql)?:\/\//.test(text)) return { kind: 'postgres', url: text };
  const path = text.startsWith('sqlite:') ? text.slice('sqlite:'.length) : text;
  if (path === '' || path.startsWith(':') || path.includes('://') || path.includes('\0')) {
    throw new StoreSetupError(`\`store\` must be a file, \`sqlite:file\` or \`postgres://...\`, got \`${text}\``);
  }
  return { kind: 'sqlite', path };
}

/**
 * Opens the store at `place` (see `parseStorePlace`), which is made where there is none.
 *
 * @throws StoreSetupError where it cannot be used as it is (wrong key, newer schema); StoreFault where it cannot be
 *   reached, or a SQLite file belongs to another gateway.
 */
export async function openStore(place: string, options: StoreOptions = {}): Promise<Store> {
  const parsed = parseStorePlace(place);
  if (parsed.kind === 'sqlite') return openSqliteStore(parsed.path, options);
  // Its driver is read where it is used alone.
  const { openPostgresStore } = await import('./postgres-store.ts');
  return openPostgresStore(parsed.url, options);
}
