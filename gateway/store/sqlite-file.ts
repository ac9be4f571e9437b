import { existsSync, statSync } from 'node:fs';
import Database from 'better-sqlite3';
import { StoreFault, StoreSetupError } from './port.ts';
import { makeSecret, type OpenSecret, openSecret, type Sealer } from './seal.ts';
import { SQLITE_APPLICATION_ID, SQLITE_MIGRATIONS } from './sqlite-schema.ts';

/** Another process may hold the file this long before a commit gives up on it. */
const BUSY_TIMEOUT_MS = 1_000;

export interface OpenFile {
  readonly db: Database.Database;
  readonly secret: Uint8Array;
  readonly sealer: Sealer | undefined;
  /** Device and inode: another file may come to stand at the path. */
  readonly identity: string;
}

/** Device and inode of the file at `path`; undefined where there is none. */
export function identityOf(path: string): string | undefined {
  const stat = statSync(path, { throwIfNoEntry: false });
  return stat === undefined ? undefined : `${stat.dev}:${stat.ino}`;
}

/**
 * Opens the store's file for writing, makes it where `mayCreate`, and brings it to the newest schema.
 *
 * @param expectSecret what the store's secret was before: a file of another store is refused.
 * @throws StoreSetupError where it cannot be used as it is (other schema, wrong key); SQLite's error or StoreFault where
 *   it cannot be reached now.
 */
export function openFile(
  path: string,
  options: { mayCreate: boolean; key: Uint8Array | undefined; expectSecret: Uint8Array | undefined },
): OpenFile {
  if (!options.mayCreate && !existsSync(path))
    throw new StoreFault(`the store's file \`${path}\` is gone; put it back, or restart to begin a new one`);
  const db = new Database(path, { timeout: BUSY_TIMEOUT_MS });
  try {
    setPragmas(db, path);
    migrate(db, path, options.key);
    const { secret, sealer } = readMeta(db, path, options.key);
    if (options.expectSecret !== undefined && !Buffer.from(secret).equals(options.expectSecret)) {
      throw new StoreFault(
        `\`${path}\` is now the file of another store; put the former one back, or restart to use this one`,
      );
    }
    const identity = identityOf(path);
    if (identity === undefined) throw new StoreFault(`the store's file \`${path}\` is gone`);
    return { db, secret, sealer, identity };
  } catch (error) {
    db.close();
    throw error;
  }
}

/** Opens the store's file for reading alone, as a command does that looks at it from outside. */
export function openFileReadOnly(path: string, key: Uint8Array | undefined): OpenFile {
  if (!existsSync(path)) throw new StoreFault(`there is no store at \`${path}\``);
  const db = new Database(path, { readonly: true, timeout: BUSY_TIMEOUT_MS });
  try {
    checkVersion(db, path);
    return { db, ...readMeta(db, path, key), identity: identityOf(path) ?? '' };
  } catch (error) {
    db.close();
    throw error;
  }
}

/**
 * Takes the lock by which one gateway process owns the file, and keeps it until the database that it returns is closed
 * or the process ends, however it ends. It is a lock on a file of its own, so that the store itself stays readable.
 */
export function takeOwnership(path: string): Database.Database {
  const lock = new Database(`${path}-owner`, { timeout: BUSY_TIMEOUT_MS });
  try {
    lock.exec('BEGIN EXCLUSIVE');
    return lock;
  } catch (cause) {
    lock.close();
    if (cause instanceof Database.SqliteError && cause.code.startsWith('SQLITE_BUSY')) {
      throw new StoreFault(`\`${path}\` is in use by another gateway; stop it, or use PostgreSQL for several`, {
        cause,
      });
    }
    throw cause;
  }
}

function setPragmas(db: Database.Database, path: string): void {
  const mode = db.pragma('journal_mode = WAL', { simple: true });
  if (mode !== 'wal')
    throw new StoreSetupError(`\`${path}\` cannot be put into WAL mode (it stays \`${String(mode)}\`)`);
  db.pragma('synchronous = FULL');
  // better-sqlite3 is built with NORMAL for files that already are in WAL mode: without FULL a commit that was answered
  // can be lost with the power.
  const synchronous = db.pragma('synchronous', { simple: true });
  if (synchronous !== 2) throw new StoreSetupError(`\`${path}\` cannot be set to synchronous=FULL`);
  db.pragma('cache_size = -32000');
  db.pragma('temp_store = MEMORY');
  db.pragma('wal_autocheckpoint = 4000');
  db.pragma('journal_size_limit = 67108864');
}

function checkVersion(db: Database.Database, path: string): number {
  const application = db.pragma('application_id', { simple: true });
  const version = Number(db.pragma('user_version', { simple: true }));
  if (version > 0 && application !== SQLITE_APPLICATION_ID) {
    throw new StoreSetupError(`\`${path}\` is a SQLite file of another program`);
  }
  if (version > SQLITE_MIGRATIONS.length) {
    throw new StoreSetupError(
      `\`${path}\` has schema ${version}, this toolgate knows up to ${SQLITE_MIGRATIONS.length}; use a newer toolgate`,
    );
  }
  return version;
}

function migrate(db: Database.Database, path: string, key: Uint8Array | undefined): void {
  if (checkVersion(db, path) === SQLITE_MIGRATIONS.length) return;
  db.exec('BEGIN IMMEDIATE');
  try {
    const version = checkVersion(db, path);
    if (version === 0 && db.prepare('SELECT count(*) FROM sqlite_master').pluck().get() !== 0) {
      throw new StoreSetupError(`\`${path}\` is a SQLite file of another program`);
    }
    for (const migration of SQLITE_MIGRATIONS.slice(version)) db.exec(migration);
    if (version === 0) writeMeta(db, key);
    db.pragma(`application_id = ${SQLITE_APPLICATION_ID}`);
    db.pragma(`user_version = ${SQLITE_MIGRATIONS.length}`);
    db.exec('COMMIT');
  } catch (error) {
    if (db.inTransaction) db.exec('ROLLBACK');
    throw error;
  }
}

function writeMeta(db: Database.Database, key: Uint8Array | undefined): void {
  const put = db.prepare('INSERT INTO meta (name, value) VALUES (?, ?)');
  const { salt, secret } = makeSecret(key);
  put.run('salt', salt);
  put.run('secret', secret);
  put.run('probe', Buffer.alloc(1));
}

function readMeta(db: Database.Database, path: string, key: Uint8Array | undefined): OpenSecret {
  const get = db.prepare<unknown[], Uint8Array>('SELECT value FROM meta WHERE name = ?').pluck();
  return openSecret(`\`${path}\``, key, get.get('salt'), get.get('secret'));
}
