import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import Database from 'better-sqlite3';
import { checkStore } from '../../gateway/store/check-store.ts';
import { openStore, parseStorePlace } from '../../gateway/store/open.ts';
import { StoreFault, StoreSetupError } from '../../gateway/store/port.ts';
import { openFile } from '../../gateway/store/sqlite-file.ts';
import { aClaim, aConfirmation, anEntry, anUndo, append, aRun, aSession, fresh, hold, move, open } from './records.ts';

const dir = mkdtempSync(join(tmpdir(), 'toolgate-file-'));
after(() => rmSync(dir, { recursive: true }));

function place(): string {
  return join(dir, fresh(), 'store.db');
}

/** Text that must not stand in the file of an encrypted store. */
const PRIVATE = 'Ana Müller, Rua do Carmo 12';

/** A store with a private value in every column that is sealed. */
async function fill(path: string, encryptionKey?: Uint8Array): Promise<{ link: string; secret: Uint8Array }> {
  const store = await openStore(path, encryptionKey === undefined ? {} : { encryptionKey });
  const session = aSession();
  const { sid } = session;
  const [first, second, run] = [aClaim({ request: PRIVATE }), aClaim({ request: PRIVATE }), aRun()];
  const body = Buffer.from(PRIVATE);
  const result = await store.commit([
    open(session),
    ...append(session, 1, anEntry(0, { undoArguments: PRIVATE })),
    ...append(session, 2, anEntry(1)),
    { op: 'report_step', sid, step: 1, outcome: 'ran', seen: true, undoArguments: PRIVATE },
    { op: 'watch', sid, record: { tool: 't', step: 0, arguments: PRIVATE, result: PRIVATE }, keep: 1 },
    { op: 'claim', claim: first },
    { op: 'claim', claim: second },
    move(second, 'outcome_unknown', { answer: { kind: 'kept', status: 200, body } }),
    { op: 'put_confirmation', confirmation: aConfirmation({ display: PRIVATE }) },
    { op: 'touch_run', run, from: ['open'] },
    { op: 'put_undo', undo: anUndo(run, 0, { arguments: PRIVATE }) },
    hold('shop/2026-11', '2', '9', { link: first.link }),
  ]);
  assert.deepEqual(result, { ok: true });
  const secret = store.secret();
  await store.close();
  return { link: first.link, secret };
}

function everyByteOf(path: string): Buffer {
  const home = join(path, '..');
  return Buffer.concat(readdirSync(home).map((name) => readFileSync(join(home, name))));
}

describe('the file of a SQLite store', () => {
  test('an existing file is opened in WAL mode with synchronous=FULL', async () => {
    const path = place();
    await (await openStore(path)).close();
    for (const round of [1, 2]) {
      const { db } = openFile(path, { mayCreate: false, key: undefined, expectSecret: undefined });
      assert.equal(db.pragma('journal_mode', { simple: true }), 'wal', `round ${round}`);
      assert.equal(db.pragma('synchronous', { simple: true }), 2);
      db.close();
    }
  });

  test('the secret is made once and kept', async () => {
    const path = place();
    const { secret } = await fill(path);
    assert.equal(secret.byteLength, 32);
    const store = await openStore(path);
    assert.deepEqual(store.secret(), secret);
    await store.close();
    assert.notDeepEqual((await fill(place())).secret, secret);
  });

  test('nothing private and no secret stands in the files of an encrypted store', async () => {
    const [open, sealed] = [place(), place()];
    const plain = await fill(open);
    assert.ok(everyByteOf(open).includes(PRIVATE), 'the text is found where nothing is sealed');
    assert.ok(everyByteOf(open).includes(Buffer.from(plain.secret)));
    const { secret } = await fill(sealed, Buffer.alloc(32, 7));
    const bytes = everyByteOf(sealed);
    assert.equal(bytes.includes(PRIVATE), false);
    assert.equal(bytes.includes(Buffer.from(PRIVATE, 'utf8').toString('base64').slice(0, 20)), false);
    assert.equal(bytes.includes(Buffer.from(secret)), false);
  });

  test('an encrypted store is opened with its key alone, and an open one without', async () => {
    const [open, sealed] = [place(), place()];
    const key = Buffer.alloc(32, 7);
    const { link } = await fill(sealed, key);
    await fill(open);
    await assert.rejects(openStore(sealed), { name: 'StoreSetupError', message: /`store.encryption_key` is not set/ });
    await assert.rejects(openStore(sealed, { encryptionKey: Buffer.alloc(32, 8) }), { message: /is not the key/ });
    await assert.rejects(openStore(open, { encryptionKey: key }), { message: /made without encryption/ });
    await assert.rejects(openStore(place(), { encryptionKey: Buffer.alloc(16) }), {
      message: /must be 32 bytes, got 16/,
    });
    const store = await openStore(sealed, { encryptionKey: key });
    assert.equal((await store.findClaim({ link }))?.request, PRIVATE);
    await store.close();
  });

  test('a sealed value that was moved to another row is not believed', async () => {
    const path = place();
    const key = Buffer.alloc(32, 7);
    const { link } = await fill(path, key);
    const db = new Database(path);
    db.prepare('UPDATE claims SET request = (SELECT request FROM claims WHERE link <> ?1) WHERE link = ?1').run({
      1: link,
    });
    db.close();
    const store = await openStore(path, { encryptionKey: key });
    await assert.rejects(store.findClaim({ link }), /claims.request cannot be opened/);
    await store.close();
    assert.match(String((await checkStore(path, key)).problems), /claims.request cannot be opened/);
  });

  test('a newer schema, another program’s file and no database are refused by name', async () => {
    const [newer, foreign, none] = [place(), place(), place()];
    await fill(newer);
    await fill(foreign);
    await fill(none);
    const change = (path: string, sql: string): void => {
      const db = new Database(path);
      db.exec(sql);
      db.close();
    };
    change(newer, 'PRAGMA user_version = 99');
    change(foreign, 'PRAGMA application_id = 7');
    writeFileSync(none, 'not a database, whatever its name says'.repeat(200));
    await assert.rejects(openStore(newer), { name: 'StoreSetupError', message: /schema 99.*use a newer toolgate/ });
    await assert.rejects(checkStore(newer), StoreSetupError);
    await assert.rejects(openStore(foreign), { name: 'StoreSetupError', message: /another program/ });
    await assert.rejects(openStore(none), { name: 'StoreFault', message: /no SQLite file/ });
    const plain = join(dir, `${fresh()}.db`);
    change(plain, 'CREATE TABLE t (a)');
    await assert.rejects(openStore(plain), { name: 'StoreSetupError', message: /another program/ });
    await assert.rejects(checkStore(join(dir, 'nowhere.db')), StoreFault);
  });

  test('a file of the first schema is brought to the newest, and what it held goes on', async () => {
    const path = place();
    const [bucket, link, sid] = [fresh(), fresh(), fresh()];
    const older = await openStore(path);
    await older.commit([hold(bucket, '2', '5', { link })]);
    await older.close();
    const db = new Database(path);
    db.exec(`DROP INDEX holds_counted; DROP INDEX counters_session; ALTER TABLE counters DROP COLUMN sid;
      PRAGMA user_version = 1`);
    db.close();
    assert.equal((await checkStore(path)).schema, 1);
    const store = await openStore(path);
    assert.equal((await store.commit([hold(bucket, '4', '5')])).ok, false);
    await store.commit([{ op: 'settle_holds', link }, hold(fresh(), '1', '5', { ofSession: sid })]);
    assert.equal((await store.readCounters([bucket])).get(bucket)?.settled, '2');
    await store.close();
    assert.deepEqual((await checkStore(path)).problems, []);
  });

  test('a check finds what does not add up', async () => {
    const path = place();
    const { link } = await fill(path);
    assert.deepEqual((await checkStore(path)).problems, []);
    const db = new Database(path);
    db.exec(`UPDATE counters SET held = '3';
      DELETE FROM runs;
      UPDATE claims SET settled_at_ms = 1 WHERE link = '${link}';
      DELETE FROM steps WHERE step = 1;
      INSERT INTO steps (sid, step, link, body, seen, forwarded, undo_allowed) VALUES ('gone', 0, 'l', '{}', 0, 0, 0);`);
    db.close();
    const { problems } = await checkStore(path);
    assert.deepEqual(problems, [
      '1 entries belong to no session',
      '1 sessions have a head that is none of their entries',
      '1 claims are settled without an outcome, or have an outcome and are not settled',
      '1 undos belong to no run',
      'the counter of `shop/2026-11` holds 3, its holds add up to 2',
    ]);
  });

  test('a place is a file or a PostgreSQL URL', () => {
    assert.deepEqual(parseStorePlace('./data/toolgate.db'), { kind: 'sqlite', path: './data/toolgate.db' });
    assert.deepEqual(parseStorePlace('sqlite:/var/lib/t.db'), { kind: 'sqlite', path: '/var/lib/t.db' });
    assert.deepEqual(parseStorePlace('postgresql://h/d'), { kind: 'postgres', url: 'postgresql://h/d' });
    for (const wrong of ['', 'sqlite:', ':memory:', 'sqlite::memory:', 'mysql://h/d']) {
      assert.throws(() => parseStorePlace(wrong), StoreSetupError, wrong);
    }
  });
});
