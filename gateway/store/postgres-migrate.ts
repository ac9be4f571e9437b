import pg from 'pg';
import { StoreFault, StoreSetupError } from './port.ts';
import { messageOf } from './postgres-connection.ts';
import { POSTGRES_FUNCTIONS } from './postgres-functions.ts';
import { POSTGRES_MIGRATIONS } from './postgres-schema.ts';
import { makeSecret, type OpenSecret, openSecret } from './seal.ts';

/** One migrates, whoever else starts at the same time waits for it. An arbitrary number of Toolgate's own. */
const MIGRATION_LOCK = 0x546c4774;
/** `trim_scale` came with 13. */
const OLDEST_SERVER = 130_000;

/**
 * Makes the `toolgate` schema or brings it to the newest version, and opens the store's secret.
 *
 * @param readOnly refuses an older schema instead of changing it.
 * @throws StoreSetupError where the database cannot be used as it is, StoreFault where it cannot be reached.
 */
export async function openSchema(url: string, key: Uint8Array | undefined, readOnly = false): Promise<OpenSecret> {
  const client = new pg.Client({ connectionString: url, application_name: 'toolgate', connectionTimeoutMillis: 5_000 });
  client.on('error', () => undefined);
  try {
    await client.connect();
    const version = Number((await client.query('SHOW server_version_num')).rows[0]?.server_version_num);
    if (version < OLDEST_SERVER) throw new StoreSetupError('the store needs PostgreSQL 13 or newer');
    await client.query('BEGIN');
    if (readOnly) await client.query('SET TRANSACTION READ ONLY');
    else await client.query('SELECT pg_advisory_xact_lock($1)', [MIGRATION_LOCK]);
    await migrate(client, key, readOnly);
    const meta = await client.query<{ name: string; value: Buffer }>('SELECT name, value FROM toolgate.meta');
    await client.query('COMMIT');
    const values = new Map(meta.rows.map((row) => [row.name, row.value]));
    return openSecret('the PostgreSQL store', key, values.get('salt'), values.get('secret'));
  } catch (error) {
    if (error instanceof StoreSetupError) throw error;
    throw new StoreFault(`PostgreSQL cannot be used: ${messageOf(error)}`, { cause: error });
  } finally {
    await client.end().catch(() => undefined);
  }
}

async function migrate(client: pg.Client, key: Uint8Array | undefined, readOnly: boolean): Promise<void> {
  const newest = POSTGRES_MIGRATIONS.length;
  const known = await client.query("SELECT to_regclass('toolgate.schema_version') IS NOT NULL AS known");
  const there = known.rows[0]?.known === true;
  const version = there
    ? Number((await client.query('SELECT version FROM toolgate.schema_version')).rows[0]?.version)
    : 0;
  if (version > newest) {
    throw new StoreSetupError(
      `the PostgreSQL store has schema ${version}, this toolgate knows up to ${newest}; use a newer toolgate`,
    );
  }
  if (readOnly) {
    if (version < newest)
      throw new StoreSetupError(
        `the PostgreSQL store has schema ${version}; start the gateway to bring it to ${newest}`,
      );
    return;
  }
  if (version === newest) return;
  if (!there) {
    await client.query('CREATE SCHEMA IF NOT EXISTS toolgate');
    await client.query('CREATE TABLE toolgate.schema_version (version integer NOT NULL)');
    await client.query('INSERT INTO toolgate.schema_version VALUES (0)');
  }
  await client.query('SET LOCAL search_path TO toolgate');
  for (const migration of POSTGRES_MIGRATIONS.slice(version)) await client.query(migration);
  await client.query(POSTGRES_FUNCTIONS);
  await client.query('UPDATE toolgate.schema_version SET version = $1', [newest]);
  if (version > 0) return;
  const { salt, secret } = makeSecret(key);
  await client.query("INSERT INTO toolgate.meta VALUES ('salt', $1), ('secret', $2), ('probe', '')", [
    Buffer.from(salt),
    Buffer.from(secret),
  ]);
}
