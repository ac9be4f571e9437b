import type { Statement } from 'better-sqlite3';
import { OPCODES } from './lower.ts';
import { rowKey, SEALED } from './queries.ts';
import { type Ground, type Handler, sealText } from './sqlite-ground.ts';
import { Numbered } from './sqlite-numbered.ts';

/** Runs and what undoes them. */
export function makeRunOperations(ground: Ground): Record<number, Handler> {
  const { db } = ground;
  const runOf: Statement<unknown[], [string, string, string | null, number | null]> = db
    .prepare<unknown[], [string, string, string | null, number | null]>(
      'SELECT sid, state, owner, lease_until_ms FROM runs WHERE caller = ? AND run = ?',
    )
    .raw();
  const insertRun = db.prepare(`INSERT INTO runs (caller, run, sid, agent, state, why, remains, owner, lease_until_ms,
    updated_at_ms) VALUES (?,?,?,?,?,?,?,?,?,?)`);
  const updateRun = new Numbered(
    db,
    `UPDATE runs SET agent = ?3, state = ?4, why = ?5, remains = ?6, owner = ?7,
    lease_until_ms = ?8, updated_at_ms = ?9 WHERE caller = ?1 AND run = ?2`,
  );
  const putUndo = db.prepare(`INSERT OR REPLACE INTO undos (caller, run, step, tool, undo_tool, arguments, state, round,
    attempts, due_at_ms, why) VALUES (?,?,?,?,?,?,?,?,?,?,?)`);
  const moveUndo = new Numbered(
    db,
    `UPDATE undos SET state = ?5, attempts = coalesce(?6, attempts),
    due_at_ms = coalesce(?7, due_at_ms), why = ?8
    WHERE caller = ?1 AND run = ?2 AND step = ?3 AND instr(?4, '|' || state || '|') > 0`,
  );

  return {
    [OPCODES.touch_run]: (v, i) => {
      const [caller, run, sid, agent, state, why, left, owner, leaseUntilMs, updatedAtMs] = v.slice(i, i + 10);
      const from = String(v[i + 10]);
      const stored = runOf.get(caller, run);
      if (stored === undefined) {
        insertRun.run(v.slice(i, i + 10));
        return undefined;
      }
      const [storedSid, storedState, storedOwner, storedLease] = stored;
      if (storedSid !== sid) return 'run_foreign';
      if (!from.includes(`|${storedState}|`)) return 'run_state';
      const heldByOther = storedOwner !== null && storedOwner !== owner && Number(storedLease) > Number(updatedAtMs);
      if (owner !== null && heldByOther) return 'run_state';
      const keeps = owner === null && from.endsWith('+');
      updateRun.run(
        caller,
        run,
        agent,
        state,
        why,
        left,
        keeps ? storedOwner : owner,
        keeps ? storedLease : leaseUntilMs,
        updatedAtMs,
      );
      return undefined;
    },
    [OPCODES.put_undo]: (v, i) => {
      const row: unknown[] = v.slice(i, i + 11);
      row[5] = sealText(ground, SEALED.undo, rowKey(v[i], v[i + 1], v[i + 2]), v[i + 5]);
      putUndo.run(row);
      return undefined;
    },
    [OPCODES.move_undo]: (v, i) => (moveUndo.run(...v.slice(i, i + 8)).changes === 0 ? 'undo_state' : undefined),
  };
}
