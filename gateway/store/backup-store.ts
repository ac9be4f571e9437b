import { link, open, rm } from 'node:fs/promises';
import { messageOf } from '../message-of.ts';
import { parseStorePlace } from './open.ts';
import { StoreFault, StoreSetupError } from './port.ts';
import { openFileReadOnly } from './sqlite-file.ts';

/**
 * Copies a SQLite store into a new file while a gateway uses it: one moment of it, whole, as a file that is opened like
 * any other store. Nothing in the store is changed.
 *
 * @throws StoreSetupError where the store is none of SQLite's, the copy is there already or cannot be written; StoreFault
 *   where the store cannot be read.
 */
export async function backupStore(place: string, copy: string, encryptionKey?: Uint8Array): Promise<void> {
  const parsed = parseStorePlace(place);
  if (parsed.kind === 'postgres') {
    throw new StoreSetupError(
      `PostgreSQL makes its own copies: \`pg_dump --format=custom --schema=toolgate --file=${copy} "$STORE_URL"\``,
    );
  }
  const part = `${copy}.part`;
  await rm(part, { force: true });
  const { db } = openFileReadOnly(parsed.path, encryptionKey);
  try {
    // One read snapshot, however much is written meanwhile; the online backup would begin anew at every commit.
    db.prepare('VACUUM INTO ?').run(part);
  } catch (error) {
    throw new StoreFault(`the store could not be copied to \`${part}\`: ${messageOf(error)}`, { cause: error });
  } finally {
    db.close();
  }
  try {
    const file = await open(part, 'r+');
    try {
      await file.chmod(0o600);
      await file.sync();
    } finally {
      await file.close();
    }
    // A link is never made over a file that is there: an older copy is not written over.
    await link(part, copy);
  } catch (error) {
    const there = error instanceof Error && 'code' in error && error.code === 'EEXIST';
    const why = there ? 'is there already; name another file' : `cannot be written: ${messageOf(error)}`;
    throw new StoreSetupError(`\`${copy}\` ${why}`, { cause: error });
  } finally {
    await rm(part, { force: true });
  }
}
