import { OPCODES, type Value } from './lower.ts';
import { rowKey, SEALED } from './queries.ts';
import { type Ground, type Handler, sealText } from './sqlite-ground.ts';
import { Numbered } from './sqlite-numbered.ts';

/** Claims with their answers, what may be spent once, and the lines that tell of it. */
export function makeClaimOperations(ground: Ground): Record<number, Handler> {
  const { db, sealer } = ground;
  const claim =
    db.prepare(`INSERT INTO claims (link, scope_key, fingerprint, sid, step, tool, caller, agent, run, undoes,
    writes, run_by, state, upstream_key, owner, fence, lease_until_ms, created_at_ms, settled_at_ms, why, answer_kind,
    answer_status, answer_type, answer_body, request)
    VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?) ON CONFLICT DO NOTHING`);
  const where = "WHERE link = ?1 AND fence = ?2 AND instr(?3, '|' || state || '|') > 0";
  // Two statements: the columns of an index are rewritten where a statement names them, even if they stay as they are.
  const move = new Numbered(db, `UPDATE claims SET state = ?4, why = ?5 ${where} AND settled_at_ms IS NULL`);
  const settle = new Numbered(
    db,
    `UPDATE claims SET state = ?4, why = ?5, settled_at_ms = ?6,
    request = CASE WHEN ?6 IS NULL THEN request ELSE NULL END, answer_kind = coalesce(?7, answer_kind),
    answer_status = CASE WHEN ?7 IS NULL THEN answer_status ELSE ?8 END,
    answer_type = CASE WHEN ?7 IS NULL THEN answer_type ELSE ?9 END,
    answer_body = CASE WHEN ?7 IS NULL THEN answer_body ELSE ?10 END,
    scope_key = CASE WHEN ?4 = 'failed' AND ?7 IS NULL THEN NULL ELSE scope_key END ${where}`,
  );
  const retake = new Numbered(
    db,
    `UPDATE claims SET state = 'sending', owner = ?4, fence = fence + 1, lease_until_ms = ?5, settled_at_ms = NULL,
    why = NULL, run_by = 'gateway', request = coalesce(?6, request) ${where}`,
  );
  const putConfirmation =
    db.prepare(`INSERT INTO confirmations (id, sid, session, caller, mode, point, step, link, tool,
    agent, arguments, shown, expires_ms, state, call_digest, asked, display, approver, note, created_at_ms, decided_at_ms)
    VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)`);
  const moveConfirmation = new Numbered(
    db,
    `UPDATE confirmations SET state = ?3, approver = coalesce(?4, approver),
    note = coalesce(?5, note), decided_at_ms = ?6 WHERE id = ?1 AND instr(?2, '|' || state || '|') > 0`,
  );
  const confirmationState = db.prepare('SELECT state FROM confirmations WHERE id = ?').pluck();
  const spend = db.prepare(`INSERT INTO receipts (issuer, caller, session, step, link, until_ms)
    VALUES (?,?,?,?,?,?) ON CONFLICT DO NOTHING`);
  const spentLink = db
    .prepare('SELECT link FROM receipts WHERE issuer = ? AND caller = ? AND session = ? AND step = ?')
    .pluck();
  const outbox = db.prepare('INSERT INTO outbox (replica, n, line) VALUES (?,?,?)');
  const written = db.prepare('DELETE FROM outbox WHERE replica = ? AND n <= ?');

  function sealBody(link: Value | undefined, body: Value | undefined): Uint8Array | null {
    if (typeof body !== 'string') return null;
    const bytes = Buffer.from(body, 'latin1');
    return sealer === undefined ? bytes : sealer.seal(SEALED.answerBody, rowKey(link), bytes);
  }

  return {
    [OPCODES.claim]: (v, i) => {
      const row: unknown[] = v.slice(i, i + 25);
      row[23] = sealBody(v[i], v[i + 23]);
      row[24] = sealText(ground, SEALED.request, rowKey(v[i]), v[i + 24]);
      return claim.run(row).changes === 0 ? 'claim_exists' : undefined;
    },
    [OPCODES.move_claim]: (v, i) => {
      const plain = v[i + 5] === null && v[i + 6] === null;
      let changes = plain ? move.run(v[i], v[i + 1], v[i + 2], v[i + 3], v[i + 4]).changes : 0;
      if (changes === 0) {
        const body = sealBody(v[i], v[i + 9]);
        changes = settle.run(...v.slice(i, i + 9), body).changes;
      }
      return changes === 0 ? 'claim_fenced' : undefined;
    },
    [OPCODES.retake_claim]: (v, i) => {
      const request = sealText(ground, SEALED.request, rowKey(v[i]), v[i + 5]);
      return retake.run(...v.slice(i, i + 5), request).changes === 0 ? 'claim_fenced' : undefined;
    },
    [OPCODES.put_confirmation]: (v, i) => {
      const row: unknown[] = v.slice(i, i + 21);
      row[16] = sealText(ground, SEALED.display, rowKey(v[i]), v[i + 16]);
      putConfirmation.run(row);
      return undefined;
    },
    [OPCODES.move_confirmation]: (v, i) => {
      if (moveConfirmation.run(...v.slice(i, i + 6)).changes > 0) return undefined;
      return confirmationState.get(v[i]) === 'spent' ? 'confirmation_spent' : 'confirmation_state';
    },
    [OPCODES.spend_receipt]: (v, i) => {
      if (spend.run(v.slice(i, i + 6)).changes > 0) return undefined;
      return spentLink.get(v[i], v[i + 1], v[i + 2], v[i + 3]) === v[i + 4] ? 'receipt_spent' : 'receipt_forked';
    },
    [OPCODES.outbox]: (v, i) => {
      outbox.run(v[i], v[i + 1], v[i + 2]);
      return undefined;
    },
    [OPCODES.outbox_written]: (v, i) => {
      written.run(v[i], v[i + 1]);
      return undefined;
    },
  };
}
