import { randomBytes } from 'node:crypto';
import type {
  ClaimRecord,
  ConfirmationRecord,
  Operation,
  RunRecord,
  SessionRecord,
  StepRecord,
  UndoRecord,
} from '../../gateway/store/port.ts';
import { openView } from '../../policy/session.ts';

export const NOW_MS = 1_795_979_000_000;

/** A name that no other test has, as random as the real ones. */
export function fresh(): string {
  return randomBytes(16).toString('base64url');
}

export function aSession(change: Partial<SessionRecord> = {}): SessionRecord {
  return {
    sid: fresh(),
    issuer: 'shop-gateway',
    caller: fresh(),
    session: 'chat-17',
    mode: 'held',
    nonce: fresh(),
    audience: 'shop-gateway',
    headReport: {},
    lateReports: [],
    view: openView(),
    version: 1,
    openedAtMs: NOW_MS,
    usedAtMs: NOW_MS,
    ...change,
  };
}

export function open(session: SessionRecord, maxLive = 1_000, liveSinceMs = 0): Operation {
  return { op: 'open_session', session, maxLive, liveSinceMs };
}

export function anEntry(step: number, change: Partial<StepRecord> = {}): StepRecord {
  return {
    step,
    link: fresh(),
    body: `{"step":${step},"tool":"shop/get_order"}`,
    seen: false,
    forwarded: true,
    undoAllowed: false,
    reportFrozen: false,
    ...change,
  };
}

export function advance(
  session: SessionRecord,
  expectVersion: number,
  change: Partial<Extract<Operation, { op: 'advance_session' }>> = {},
): Operation {
  return {
    op: 'advance_session',
    sid: session.sid,
    expectVersion,
    headReport: {},
    lateReports: [],
    view: session.view,
    usedAtMs: NOW_MS,
    ...change,
  };
}

/** The two operations that put an entry at the head of a session. */
export function append(session: SessionRecord, version: number, entry: StepRecord): readonly Operation[] {
  return [
    advance(session, version, { head: { step: entry.step, link: entry.link } }),
    { op: 'append_entry', sid: session.sid, entry },
  ];
}

export function aClaim(change: Partial<ClaimRecord> = {}): ClaimRecord {
  return {
    link: fresh(),
    fingerprint: fresh(),
    sid: fresh(),
    step: 0,
    tool: 'shop/charge_card',
    caller: 'app',
    agent: 'desk',
    writes: true,
    runBy: 'gateway',
    state: 'claimed',
    owner: 'replica-1',
    fence: 1,
    leaseUntilMs: NOW_MS + 30_000,
    createdAtMs: NOW_MS,
    ...change,
  };
}

export function move(
  claim: ClaimRecord,
  to: ClaimRecord['state'],
  change: Partial<Extract<Operation, { op: 'move_claim' }>> = {},
): Operation {
  return {
    op: 'move_claim',
    link: claim.link,
    fence: claim.fence,
    from: [claim.state],
    to,
    atMs: NOW_MS + 5,
    ...change,
  };
}

export function aConfirmation(change: Partial<ConfirmationRecord> = {}): ConfirmationRecord {
  return {
    id: fresh(),
    sid: fresh(),
    session: 'chat-17',
    caller: 'app',
    mode: 'held',
    point: 'until_write',
    step: 3,
    link: fresh(),
    tool: 'shop/refund_card',
    agent: 'desk',
    arguments: fresh(),
    shown: fresh(),
    expiresMs: NOW_MS + 86_400_000,
    state: 'pending',
    callDigest: fresh(),
    asked: '{"reasons":["writes"]}',
    display: '{"amount":"12.50","note":"for Ana Müller"}',
    createdAtMs: NOW_MS,
    ...change,
  };
}

export function aRun(change: Partial<RunRecord> = {}): RunRecord {
  return { caller: fresh(), run: 'r-9', sid: fresh(), agent: 'desk', state: 'open', updatedAtMs: NOW_MS, ...change };
}

export function anUndo(run: RunRecord, step: number, change: Partial<UndoRecord> = {}): UndoRecord {
  return {
    caller: run.caller,
    run: run.run,
    step,
    tool: 'shop/charge_card',
    undoTool: 'shop/refund_card',
    state: 'undo_pending',
    round: 1,
    attempts: 0,
    dueAtMs: NOW_MS,
    ...change,
  };
}

export function hold(
  bucket: string,
  amount: string,
  max: string,
  change: Partial<Extract<Operation, { op: 'hold' }>> = {},
): Operation {
  return { op: 'hold', bucket, link: fresh(), amount, max, atMs: NOW_MS, ...change };
}
