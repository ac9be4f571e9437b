import { microsOf } from './decimal.ts';
import type { Operation, StoredAnswer } from './port.ts';

/** What crosses to where SQL is run: nothing but flat primitives, which cost the least to copy between threads. */
export type Value = string | number | null;

/**
 * Codes of the operations. They number handlers in the SQLite worker and branches in the PostgreSQL function, so a code
 * is never given a second meaning.
 */
export const OPCODES: Readonly<Record<Operation['op'], number>> = {
  open_session: 1,
  advance_session: 2,
  freeze_session: 3,
  append_entry: 4,
  sign_entry: 5,
  report_step: 6,
  mark_undo: 7,
  watch: 8,
  claim: 9,
  move_claim: 10,
  put_confirmation: 11,
  move_confirmation: 12,
  spend_receipt: 13,
  hold: 14,
  settle_holds: 15,
  release_holds: 16,
  touch_run: 17,
  put_undo: 18,
  move_undo: 19,
  outbox: 20,
  outbox_written: 21,
  retake_claim: 22,
};

/** How many values follow each opcode. */
export const ARITY: Readonly<Record<number, number>> = {
  [OPCODES.open_session]: 21,
  [OPCODES.advance_session]: 9,
  [OPCODES.freeze_session]: 2,
  [OPCODES.append_entry]: 12,
  [OPCODES.sign_entry]: 3,
  [OPCODES.report_step]: 7,
  [OPCODES.mark_undo]: 3,
  [OPCODES.watch]: 6,
  [OPCODES.claim]: 25,
  [OPCODES.move_claim]: 10,
  [OPCODES.put_confirmation]: 21,
  [OPCODES.move_confirmation]: 6,
  [OPCODES.spend_receipt]: 6,
  [OPCODES.hold]: 9,
  [OPCODES.settle_holds]: 1,
  [OPCODES.release_holds]: 1,
  [OPCODES.touch_run]: 11,
  [OPCODES.put_undo]: 11,
  [OPCODES.move_undo]: 8,
  [OPCODES.outbox]: 3,
  [OPCODES.outbox_written]: 2,
  [OPCODES.retake_claim]: 6,
};

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** A yearly bucket must outlive its year. */
const BUCKET_KEPT_DAYS = 401;

/** Hours since the epoch: what sessions are indexed by, so that using one does not move it in an index each time. */
export function hourOf(ms: number): number {
  return Math.floor(ms / HOUR_MS);
}

/** Lists of states as `|a|b|`, which both databases look into with one string function. */
function oneOf(states: readonly string[]): string {
  return `|${states.join('|')}|`;
}

/** Appends the opcode and its values to `out`, in the order that the statements bind them. */
export function lowerOperation(operation: Operation, out: Value[]): void {
  const code = OPCODES[operation.op];
  switch (operation.op) {
    case 'open_session': {
      const s = operation.session;
      const allowedAtMs = s.head === undefined ? null : s.usedAtMs;
      out.push(code, s.sid, s.issuer, s.caller, s.session, s.mode, s.nonce, s.audience, s.head?.step ?? null);
      out.push(s.head?.link ?? null, JSON.stringify(s.headReport), lateOf(s.lateReports), JSON.stringify(s.view));
      out.push(s.version, s.frozen ?? null, s.openedAtMs, s.usedAtMs, hourOf(s.usedAtMs), allowedAtMs);
      out.push(operation.maxLive, operation.liveSinceMs, hourOf(operation.liveSinceMs));
      return;
    }
    case 'advance_session': {
      const o = operation;
      out.push(code, o.sid, o.expectVersion, o.head?.step ?? null, o.head?.link ?? null, JSON.stringify(o.headReport));
      out.push(lateOf(o.lateReports), JSON.stringify(o.view), o.usedAtMs, hourOf(o.usedAtMs));
      return;
    }
    case 'freeze_session':
      out.push(code, operation.sid, operation.why);
      return;
    case 'append_entry': {
      const e = operation.entry;
      out.push(code, operation.sid, e.step, e.link, e.body, e.token ?? null, e.outcome ?? null, e.result ?? null);
      out.push(Number(e.seen), Number(e.forwarded), jsonOf(e.fields), e.undoArguments ?? null, Number(e.undoAllowed));
      return;
    }
    case 'sign_entry':
      out.push(code, operation.sid, operation.step, operation.token);
      return;
    case 'report_step': {
      const o = operation;
      out.push(code, o.sid, o.step, o.outcome, o.result ?? null, Number(o.seen), jsonOf(o.fields));
      out.push(o.undoArguments ?? null);
      return;
    }
    case 'mark_undo':
      out.push(code, operation.sid, operation.step, Number(operation.undoAllowed));
      return;
    case 'watch': {
      const r = operation.record;
      out.push(code, operation.sid, r.tool, r.step, r.arguments, r.result, operation.keep);
      return;
    }
    case 'claim': {
      const c = operation.claim;
      out.push(code, c.link, c.scopeKey ?? null, c.fingerprint, c.sid, c.step, c.tool, c.caller, c.agent);
      out.push(c.run ?? null, c.undoes ?? null, Number(c.writes), c.runBy, c.state, c.upstreamKey ?? null, c.owner);
      out.push(c.fence, c.leaseUntilMs, c.createdAtMs, c.settledAtMs ?? null, c.why ?? null);
      pushAnswer(c.answer, out);
      out.push(c.request ?? null);
      return;
    }
    case 'move_claim': {
      const o = operation;
      const settles = o.to === 'ran' || o.to === 'failed';
      out.push(code, o.link, o.fence, oneOf(o.from), o.to, o.why ?? null, settles ? o.atMs : null);
      pushAnswer(o.answer, out);
      return;
    }
    case 'retake_claim': {
      const o = operation;
      out.push(code, o.link, o.fence, oneOf(o.from), o.owner, o.leaseUntilMs, o.request ?? null);
      return;
    }
    case 'put_confirmation': {
      const c = operation.confirmation;
      out.push(code, c.id, c.sid, c.session, c.caller, c.mode, c.point, c.step, c.link, c.tool, c.agent, c.arguments);
      out.push(c.shown, c.expiresMs, c.state, c.callDigest, c.asked, c.display, c.approver ?? null, c.note ?? null);
      out.push(c.createdAtMs, c.decidedAtMs ?? null);
      return;
    }
    case 'move_confirmation': {
      const o = operation;
      out.push(code, o.id, oneOf(o.from), o.to, o.approver ?? null, o.note ?? null, o.atMs);
      return;
    }
    case 'spend_receipt': {
      const k = operation.key;
      out.push(code, k.issuer, k.caller, k.session, k.step, operation.link, operation.untilMs);
      return;
    }
    case 'hold': {
      const o = operation;
      const untilMs =
        o.untilMs ??
        (o.sinceMs === undefined
          ? (Math.floor(o.atMs / DAY_MS) + BUCKET_KEPT_DAYS) * DAY_MS
          : o.atMs + (o.atMs - o.sinceMs));
      out.push(code, o.bucket, o.link, o.amount, microsOf(o.amount) ?? null, o.max, o.atMs, o.sinceMs ?? null, untilMs);
      out.push(o.ofSession ?? null);
      return;
    }
    case 'settle_holds':
    case 'release_holds':
      out.push(code, operation.link);
      return;
    case 'touch_run': {
      const r = operation.run;
      const keepsOwner = r.state === 'failed' || r.state === 'undoing';
      out.push(code, r.caller, r.run, r.sid, r.agent, r.state, r.why ?? null, r.left ?? null, r.owner ?? null);
      out.push(r.leaseUntilMs ?? null, r.updatedAtMs, `${oneOf(operation.from)}${keepsOwner ? '+' : ''}`);
      return;
    }
    case 'put_undo': {
      const u = operation.undo;
      out.push(code, u.caller, u.run, u.step, u.tool, u.undoTool, u.arguments ?? null, u.state, u.round, u.attempts);
      out.push(u.dueAtMs, u.why ?? null);
      return;
    }
    case 'move_undo': {
      const o = operation;
      out.push(
        code,
        o.caller,
        o.run,
        o.step,
        oneOf(o.from),
        o.to,
        o.attempts ?? null,
        o.dueAtMs ?? null,
        o.why ?? null,
      );
      return;
    }
    case 'outbox':
      out.push(code, operation.replica, operation.n, operation.line);
      return;
    case 'outbox_written':
      out.push(code, operation.replica, operation.n);
      return;
  }
}

/** Kind, status, content type and body; the body as one character per byte, which is copied faster than a typed array. */
function pushAnswer(answer: StoredAnswer | undefined, out: Value[]): void {
  if (answer === undefined) out.push(null, null, null, null);
  else if (answer.kind === 'tombstone') out.push(answer.kind, answer.status, null, null);
  else out.push(answer.kind, answer.status, answer.contentType ?? null, bytesToText(answer.body));
}

function bytesToText(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1');
}

function lateOf(reports: readonly unknown[]): string | null {
  return reports.length === 0 ? null : JSON.stringify(reports);
}

function jsonOf(value: object | undefined): string | null {
  return value === undefined ? null : JSON.stringify(value);
}
