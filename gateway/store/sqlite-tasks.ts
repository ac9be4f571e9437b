import type { Database } from 'better-sqlite3';
import { addDecimals, subtractDecimals } from './decimal.ts';
import { hourOf, type Value } from './lower.ts';
import { CLAIM_COLUMNS, RUN_COLUMNS, SEALED_CLAIM } from './queries.ts';
import { type Cell, openRow, type Row } from './rows.ts';
import type { Ground } from './sqlite-ground.ts';
import { Numbered } from './sqlite-numbered.ts';
import type { TaskName } from './store-reads.ts';

/** A read that writes too, and so belongs into the transaction of a group. */
export type Task = (values: readonly Value[]) => readonly Row[];

export function makeTasks({ db, sealer, forget }: Ground): Readonly<Record<TaskName, Task>> {
  const raw = (sql: string): Numbered<Cell[]> => new Numbered<Cell[]>(db, sql).raw();
  const takeClaims = raw(`UPDATE claims SET owner = ?1, fence = fence + 1, lease_until_ms = ?3 WHERE rowid IN (
    SELECT rowid FROM claims WHERE settled_at_ms IS NULL AND state IN ('claimed', 'sending') AND lease_until_ms < ?2
    AND (run_by <> 'gateway' OR owner IS NOT ?1) ORDER BY created_at_ms LIMIT ?4) RETURNING ${CLAIM_COLUMNS}`);
  const renewClaims = new Numbered(
    db,
    `UPDATE claims SET lease_until_ms = ?2 WHERE settled_at_ms IS NULL AND owner = ?1
    AND run_by = 'gateway' AND state IN ('claimed', 'sending')`,
  );
  const renewRuns = new Numbered(
    db,
    `UPDATE runs SET lease_until_ms = ?2 WHERE state IN ('failed', 'undoing') AND owner = ?1
    AND lease_until_ms > 0`,
  );
  const takeRun = raw(`UPDATE runs SET owner = ?1, lease_until_ms = ?3 WHERE (caller, run) IN (
    SELECT caller, run FROM runs r WHERE state IN ('failed', 'undoing') AND (owner IS NULL OR lease_until_ms < ?2)
    AND coalesce((SELECT u.state IN ('undo_pending', 'undoing') AND u.due_at_ms <= ?2 FROM undos u
      WHERE u.caller = r.caller AND u.run = r.run AND u.state <> 'compensated' ORDER BY u.step DESC LIMIT 1), 1)
    ORDER BY updated_at_ms LIMIT 1) RETURNING ${RUN_COLUMNS}`);
  const sweep = makeSweep(db);
  return {
    takeLapsedClaims: ([owner, nowMs, leaseUntilMs, limit]) =>
      takeClaims
        .all(owner, nowMs, leaseUntilMs, limit)
        .map((row) => (sealer === undefined ? row : openRow(row, SEALED_CLAIM, sealer))),
    renewLeases: ([owner, leaseUntilMs]) => {
      renewClaims.run(owner, leaseUntilMs);
      renewRuns.run(owner, leaseUntilMs);
      return [];
    },
    takeUndoWork: ([owner, nowMs, leaseUntilMs]) => takeRun.all(owner, nowMs, leaseUntilMs),
    sweep: ([nowMs, claimsMs, sessionsMs]) => {
      const gone = sweep(Number(nowMs), Number(claimsMs), Number(sessionsMs));
      for (const each of forget) each();
      return [[gone]];
    },
  };
}

/** Rows of one table that go at a time, so that no group behind a sweep waits long. */
const SWEPT_ROWS = 500;
const SWEPT_SESSIONS = 50;

/** Deletes what is past its keeping, at most about `SWEPT_ROWS` of each table; returns how many rows went. */
function makeSweep(db: Database): (nowMs: number, claimsMs: number, sessionsMs: number) => number {
  const claims = db.prepare(`DELETE FROM claims WHERE rowid IN (SELECT rowid FROM claims WHERE settled_at_ms < ?
    AND settled_at_ms IS NOT NULL ORDER BY settled_at_ms LIMIT ${SWEPT_ROWS})`);
  const receipts = db.prepare(`DELETE FROM receipts WHERE (issuer, caller, session, step) IN (
    SELECT issuer, caller, session, step FROM receipts WHERE until_ms < ? LIMIT ${SWEPT_ROWS})`);
  const confirmations = db.prepare(`DELETE FROM confirmations WHERE rowid IN (
    SELECT rowid FROM confirmations WHERE expires_ms < ? LIMIT ${SWEPT_ROWS})`);
  const holds = db.prepare(`DELETE FROM holds WHERE (link, bucket) IN (
    SELECT link, bucket FROM holds WHERE sliding = 1 AND until_ms < ? LIMIT ${SWEPT_ROWS})`);
  const expired = db
    .prepare<unknown[], string>(`SELECT bucket FROM counters c WHERE until_ms < ?
      AND (sid IS NULL OR NOT EXISTS (SELECT 1 FROM sessions s WHERE s.sid = c.sid)) LIMIT ${SWEPT_ROWS}`)
    .pluck();
  const ofSession = db.prepare<unknown[], string>('SELECT bucket FROM counters WHERE sid = ? LIMIT ?').pluck();
  const dropBucket = makeDropBucket(db);
  const idle = new Numbered<string>(
    db,
    `SELECT sid FROM sessions WHERE used_hour <= ?1 AND used_at_ms < ?2
      AND sid NOT IN (SELECT sid FROM claims WHERE settled_at_ms IS NULL)
      AND sid NOT IN (SELECT sid FROM runs WHERE state IN ('failed', 'undoing', 'needs_person'))
      ORDER BY used_hour LIMIT ${SWEPT_SESSIONS}`,
  ).pluck();
  const steps = db.prepare('DELETE FROM steps WHERE rowid IN (SELECT rowid FROM steps WHERE sid = ? LIMIT ?)');
  const ends = [
    db.prepare('DELETE FROM watched WHERE sid = ?'),
    db.prepare('DELETE FROM undos WHERE (caller, run) IN (SELECT caller, run FROM runs WHERE sid = ?)'),
    db.prepare('DELETE FROM runs WHERE sid = ?'),
    db.prepare('DELETE FROM sessions WHERE sid = ?'),
  ];
  const doom = db.prepare('INSERT INTO swept (sid) VALUES (?) ON CONFLICT DO NOTHING');
  const doomed = db.prepare<unknown[], string>(`SELECT sid FROM swept LIMIT ${SWEPT_SESSIONS}`).pluck();
  const forget = db.prepare('DELETE FROM swept WHERE sid = ?');
  return (nowMs, claimsMs, sessionsMs) => {
    let gone = claims.run(nowMs - claimsMs).changes;
    gone += receipts.run(nowMs).changes;
    gone += confirmations.run(nowMs - claimsMs).changes;
    gone += holds.run(nowMs).changes;
    let most = SWEPT_ROWS;
    for (const bucket of expired.all(nowMs)) {
      if (most <= 0) break;
      const rows = dropBucket(bucket, most);
      gone += rows;
      most -= rows;
    }
    // A session goes at once, so that no call goes on in one half of it; its entries follow as they can.
    for (const sid of idle.all(hourOf(nowMs - sessionsMs), nowMs - sessionsMs)) {
      for (const statement of ends) gone += statement.run(sid).changes;
      doom.run(sid);
    }
    let left = SWEPT_ROWS;
    for (const sid of doomed.all()) {
      const entries = steps.run(sid, left).changes;
      gone += entries;
      left -= entries;
      for (const bucket of left > 0 ? ofSession.all(sid, left) : []) {
        if (left <= 0) break;
        const rows = dropBucket(bucket, left);
        gone += rows;
        left -= rows;
      }
      if (left <= 0) break;
      forget.run(sid);
    }
    return gone;
  };
}

/**
 * Deletes a bucket that counts for nothing any more, with what is held in it: at most `most` holds at a time, the counter
 * last, so that a counter always says what its holds come to. Returns how many rows went.
 */
function makeDropBucket(db: Database): (bucket: string, most: number) => number {
  const dropHolds = new Numbered<string>(
    db,
    `DELETE FROM holds WHERE bucket = ?1 AND link IN (
      SELECT link FROM holds WHERE bucket = ?1 AND sliding = 0 LIMIT ?2) RETURNING amount`,
  ).pluck();
  const held = db.prepare<unknown[], string>('SELECT held FROM counters WHERE bucket = ?').pluck();
  const setHeld = new Numbered(db, 'UPDATE counters SET held = ?2 WHERE bucket = ?1');
  const dropCounter = db.prepare('DELETE FROM counters WHERE bucket = ?');
  return (bucket, most) => {
    const amounts = dropHolds.all(bucket, most);
    if (amounts.length < most) return amounts.length + dropCounter.run(bucket).changes;
    setHeld.run(bucket, subtractDecimals(held.get(bucket) ?? '0', amounts.reduce(addDecimals, '0')));
    return amounts.length;
  };
}
