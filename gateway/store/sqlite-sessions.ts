import { OPCODES, type Value } from './lower.ts';
import { rowKey, SEALED } from './queries.ts';
import { type Ground, type Handler, sealText } from './sqlite-ground.ts';
import { Numbered } from './sqlite-numbered.ts';

/** How many callers' bounds are remembered before that starts anew. */
const REMEMBERED = 100_000;

/** Sessions, their entries, and what is watched of their answers. */
export function makeSessionOperations(ground: Ground): Record<number, Handler> {
  const { db } = ground;
  const keyTaken = db
    .prepare('SELECT 1 FROM sessions WHERE (issuer = ? AND caller = ? AND session = ?) OR sid = ?')
    .pluck();
  const countAll = db.prepare('SELECT count(*) FROM sessions WHERE issuer = ? AND caller = ?').pluck();
  const countLive = db
    .prepare('SELECT count(*) FROM sessions WHERE issuer = ? AND caller = ? AND used_hour >= ? AND used_at_ms >= ?')
    .pluck();
  const insert = db.prepare(`INSERT INTO sessions (sid, issuer, caller, session, mode, nonce, audience, head_step,
    head_link, head_report, late_reports, view, version, frozen, opened_at_ms, used_at_ms, used_hour, allowed_at_ms)
    VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)`);
  const advance = new Numbered(
    db,
    `UPDATE sessions SET version = version + 1, head_step = coalesce(?3, head_step),
    head_link = coalesce(?4, head_link), head_report = ?5, late_reports = ?6,
    allowed_at_ms = CASE WHEN view = ?7 THEN allowed_at_ms ELSE ?8 END, view = ?7, used_at_ms = ?8
    WHERE sid = ?1 AND version = ?2 AND frozen IS NULL RETURNING used_hour`,
  ).pluck();
  const stamp = db.prepare('UPDATE sessions SET used_hour = ? WHERE sid = ?');
  const frozenOf = db.prepare('SELECT frozen FROM sessions WHERE sid = ?').pluck();
  const freeze = new Numbered(db, 'UPDATE sessions SET version = version + 1, frozen = ?2 WHERE sid = ?1');
  const append = db.prepare(`INSERT INTO steps (sid, step, link, body, token, outcome, result, seen, forwarded, fields,
    undo_arguments, undo_allowed) VALUES (?,?,?,?,?,?,?,?,?,?,?,?) ON CONFLICT DO NOTHING`);
  const sign = new Numbered(db, 'UPDATE steps SET token = ?3 WHERE sid = ?1 AND step = ?2');
  const followed = db.prepare('SELECT 1 FROM steps WHERE sid = ? AND step = ?').pluck();
  const reported = `outcome = ?3, result = coalesce(?4, result), seen = max(seen, ?5), fields = coalesce(?6, fields),
    undo_arguments = coalesce(?7, undo_arguments)`;
  const report = new Numbered(db, `UPDATE steps SET ${reported} WHERE sid = ?1 AND step = ?2`);
  const reportLate = new Numbered(
    db,
    `UPDATE steps SET
    frozen_outcome = CASE WHEN late = 1 THEN frozen_outcome ELSE outcome END,
    frozen_result = CASE WHEN late = 1 THEN frozen_result ELSE result END, late = 1, ${reported}
    WHERE sid = ?1 AND step = ?2`,
  );
  const markUndo = new Numbered(db, 'UPDATE steps SET undo_allowed = ?3 WHERE sid = ?1 AND step = ?2');
  const watch = db.prepare(`INSERT INTO watched (sid, tool, step, arguments, result) VALUES (?,?,?,?,?)
    ON CONFLICT DO UPDATE SET arguments = excluded.arguments, result = excluded.result`);
  const unwatch = new Numbered(
    db,
    `DELETE FROM watched WHERE sid = ?1 AND tool = ?2 AND step <=
    (SELECT step FROM watched WHERE sid = ?1 AND tool = ?2 ORDER BY step DESC LIMIT 1 OFFSET ?3)`,
  );

  // No fewer sessions than a caller has: only where this bound reaches the maximum are the live ones counted. Nobody
  // else writes to the file, and a commit that is taken back leaves the bound too high, which is still a bound.
  const atMost = new Map<string, number>();

  function tooMany(v: readonly Value[], i: number): boolean {
    const caller = rowKey(v[i + 1], v[i + 2]);
    const maxLive = Number(v[i + 18]);
    let bound = atMost.get(caller);
    if (bound === undefined) {
      if (atMost.size >= REMEMBERED) atMost.clear();
      bound = Number(countAll.get(v[i + 1], v[i + 2]));
    }
    if (bound >= maxLive) {
      bound = Number(countAll.get(v[i + 1], v[i + 2]));
      if (bound >= maxLive && Number(countLive.get(v[i + 1], v[i + 2], v[i + 20], v[i + 19])) >= maxLive) return true;
    }
    atMost.set(caller, bound + 1);
    return false;
  }

  return {
    [OPCODES.open_session]: (v, i) => {
      if (keyTaken.get(v[i + 1], v[i + 2], v[i + 3], v[i]) !== undefined) return 'session_exists';
      if (tooMany(v, i)) return 'too_many_sessions';
      insert.run(v.slice(i, i + 18));
      return undefined;
    },
    [OPCODES.advance_session]: (v, i) => {
      const sid = String(v[i]);
      const stamped = advance.get(sid, v[i + 1], v[i + 2], v[i + 3], v[i + 4], v[i + 5], v[i + 6], v[i + 7]);
      if (stamped === undefined) return typeof frozenOf.get(sid) === 'string' ? 'session_frozen' : 'session_moved';
      if (stamped !== v[i + 8]) stamp.run(v[i + 8], sid);
      return undefined;
    },
    [OPCODES.freeze_session]: (v, i) => missing(freeze.run(v[i], v[i + 1])),
    [OPCODES.append_entry]: (v, i) => {
      const row = v.slice(i, i + 12);
      const sealed = sealText(ground, SEALED.undoArguments, rowKey(v[i], v[i + 1]), v[i + 10]);
      const values = sealed === v[i + 10] ? row : [...row.slice(0, 10), sealed, row[11]];
      return missing(append.run(values));
    },
    [OPCODES.sign_entry]: (v, i) => missing(sign.run(v[i], v[i + 1], v[i + 2])),
    [OPCODES.report_step]: (v, i) => {
      const late = followed.get(v[i], Number(v[i + 1]) + 1) !== undefined;
      const sealed = sealText(ground, SEALED.undoArguments, rowKey(v[i], v[i + 1]), v[i + 6]);
      const statement = late ? reportLate : report;
      return missing(statement.run(v[i], v[i + 1], v[i + 2], v[i + 3], v[i + 4], v[i + 5], sealed));
    },
    [OPCODES.mark_undo]: (v, i) => missing(markUndo.run(v[i], v[i + 1], v[i + 2])),
    [OPCODES.watch]: (v, i) => {
      const key = rowKey(v[i], v[i + 1], v[i + 2]);
      const args = sealText(ground, SEALED.watchedArguments, key, v[i + 3]);
      watch.run(v[i], v[i + 1], v[i + 2], args, sealText(ground, SEALED.watchedResult, key, v[i + 4]));
      unwatch.run(v[i], v[i + 1], v[i + 5]);
      return undefined;
    },
  };
}

function missing(done: { readonly changes: number }): 'session_moved' | undefined {
  return done.changes === 0 ? 'session_moved' : undefined;
}
