import pg from 'pg';
import { addDecimals } from './decimal.ts';
import { parseStorePlace } from './open.ts';
import { StoreFault } from './port.ts';
import { messageOf } from './postgres-connection.ts';
import { openSchema } from './postgres-migrate.ts';
import { POSTGRES_MIGRATIONS } from './postgres-schema.ts';
import { CLAIM_COLUMNS, SEALED_CLAIM, type SealedColumn } from './queries.ts';
import { openRow, type Row } from './rows.ts';
import type { Sealer } from './seal.ts';
import { openFileReadOnly } from './sqlite-file.ts';

/** What `toolgate store check` found. */
export interface StoreReport {
  readonly kind: 'sqlite' | 'postgres';
  readonly schema: number;
  readonly encrypted: boolean;
  /** Rows by what they are. */
  readonly rows: Readonly<Record<string, number>>;
  /** What is wrong, a sentence each; empty where the store is sound. */
  readonly problems: readonly string[];
}

type Look = (sql: string) => Promise<readonly Row[]>;

const TABLES = [
  'sessions',
  'steps',
  'claims',
  'confirmations',
  'receipts',
  'holds',
  'counters',
  'runs',
  'undos',
  'outbox',
];

/** Each counts rows that must not be there. */
const UNSOUND: readonly (readonly [sentence: string, sql: string])[] = [
  [
    'entries belong to no session',
    'SELECT count(*) FROM steps WHERE sid NOT IN (SELECT sid FROM sessions) AND sid NOT IN (SELECT sid FROM swept)',
  ],
  [
    'sessions have a head that is none of their entries',
    `SELECT count(*) FROM sessions s WHERE head_step IS NOT NULL
      AND NOT EXISTS (SELECT 1 FROM steps t WHERE t.sid = s.sid AND t.step = s.head_step AND t.link = s.head_link)`,
  ],
  [
    'claims are settled without an outcome, or have an outcome and are not settled',
    "SELECT count(*) FROM claims WHERE (settled_at_ms IS NOT NULL) <> (state IN ('ran', 'failed'))",
  ],
  [
    'undos belong to no run',
    'SELECT count(*) FROM undos u WHERE NOT EXISTS (SELECT 1 FROM runs r WHERE r.caller = u.caller AND r.run = u.run)',
  ],
];

/** How many of the newest claims have their sealed values opened. */
const SAMPLE = 1_000;

/**
 * Looks at a store from outside and changes nothing; a gateway may be using it meanwhile.
 *
 * @throws StoreSetupError where it cannot be used as it is (no such schema, wrong key), StoreFault where it cannot be
 *   reached.
 */
export async function checkStore(place: string, encryptionKey?: Uint8Array): Promise<StoreReport> {
  const parsed = parseStorePlace(place);
  return parsed.kind === 'sqlite' ? checkSqlite(parsed.path, encryptionKey) : checkPostgres(parsed.url, encryptionKey);
}

async function checkSqlite(path: string, key: Uint8Array | undefined): Promise<StoreReport> {
  const { db, sealer } = openFileReadOnly(path, key);
  try {
    // One snapshot, however long the look takes.
    db.exec('BEGIN');
    const problems = db
      .prepare<unknown[], string>('PRAGMA integrity_check(20)')
      .pluck()
      .all()
      .filter((line) => line !== 'ok')
      .map((line) => `the file is damaged: ${line}`);
    const look: Look = async (sql) => db.prepare<unknown[], Row>(sql).raw().all();
    const schema = Number(db.pragma('user_version', { simple: true }));
    return await report('sqlite', schema, look, sealer, problems);
  } finally {
    db.close();
  }
}

async function checkPostgres(url: string, key: Uint8Array | undefined): Promise<StoreReport> {
  const { sealer } = await openSchema(url, key, true);
  const client = new pg.Client({ connectionString: url, application_name: 'toolgate check' });
  try {
    await client.connect();
    await client.query('BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY');
    await client.query('SET LOCAL search_path TO toolgate');
    const look: Look = async (text) =>
      (await client.query<(string | number | null | Buffer)[]>({ text, rowMode: 'array' })).rows;
    return await report('postgres', POSTGRES_MIGRATIONS.length, look, sealer, []);
  } catch (cause) {
    if (cause instanceof StoreFault) throw cause;
    throw new StoreFault(`PostgreSQL cannot be checked: ${messageOf(cause)}`, { cause });
  } finally {
    await client.end().catch(() => undefined);
  }
}

async function report(
  kind: StoreReport['kind'],
  schema: number,
  look: Look,
  sealer: Sealer | undefined,
  damage: readonly string[],
): Promise<StoreReport> {
  const count = async (sql: string): Promise<number> => Number((await look(sql))[0]?.[0] ?? 0);
  const rows: Record<string, number> = {};
  for (const table of TABLES) rows[table] = await count(`SELECT count(*) FROM ${table}`);
  const problems = [...damage];
  for (const [sentence, sql] of UNSOUND) {
    const found = await count(sql);
    if (found > 0) problems.push(`${found} ${sentence}`);
  }
  problems.push(...(await wrongCounters(look)));
  if (sealer !== undefined) problems.push(...(await brokenSeals(look, sealer)));
  return { kind, schema, encrypted: sealer !== undefined, rows, problems };
}

/** Every counter must hold exactly what the holds of its bucket add up to. */
async function wrongCounters(look: Look): Promise<readonly string[]> {
  const sums = new Map<string, string>();
  for (const [bucket, amount] of await look("SELECT bucket, amount FROM holds WHERE sliding = 0 AND state = 'held'")) {
    sums.set(String(bucket), addDecimals(sums.get(String(bucket)) ?? '0', String(amount)));
  }
  const problems: string[] = [];
  for (const [bucket, held] of await look('SELECT bucket, held FROM counters')) {
    const sum = sums.get(String(bucket)) ?? '0';
    sums.delete(String(bucket));
    if (addDecimals(sum, '0') !== addDecimals(String(held), '0')) {
      problems.push(`the counter of \`${bucket}\` holds ${held}, its holds add up to ${sum}`);
    }
  }
  for (const bucket of sums.keys()) problems.push(`the holds of \`${bucket}\` have no counter`);
  return problems;
}

async function brokenSeals(look: Look, sealer: Sealer): Promise<readonly string[]> {
  const sealed: readonly SealedColumn[] = SEALED_CLAIM;
  const problems: string[] = [];
  for (const row of await look(`SELECT ${CLAIM_COLUMNS} FROM claims ORDER BY created_at_ms DESC LIMIT ${SAMPLE}`)) {
    try {
      openRow(row, sealed, sealer);
    } catch (error) {
      problems.push(`claim \`${row[0]}\`: ${messageOf(error)}`);
    }
  }
  return problems;
}
