import type { Snapshot } from '../../policy/call.ts';
import { appendToView, reportToView, type SessionView } from '../../policy/session.ts';
import type { Verdict } from '../../policy/verdict.ts';
import { encodeBase64url } from '../../receipts/base64url.ts';
import { canonicalize } from '../../receipts/canonical.ts';
import type { Crypto } from '../../receipts/crypto.ts';
import type { EntryBody, LateReport } from '../../receipts/history.ts';
import { linkOf, writeBody } from '../../receipts/history-links.ts';
import { MAX_TOOL_LENGTH } from '../../receipts/history-parse.ts';
import type { Gateway } from '../gateway.ts';
import { newestLate } from '../late-reports.ts';
import { NO_EFFECTS } from '../runs/outcome-effects.ts';
import type { Operation, SessionRecord, StepRecord } from '../store/port.ts';
import type { OpenedSession } from './choose-session.ts';
import type { ReadCall } from './read-call.ts';
import { reportedMoves } from './settle.ts';
import { bindArguments } from './undo-arguments.ts';
import { endHolds } from './usage.ts';

export type InSession = Extract<OpenedSession, { kind: 'session' }>;

/** An entry that is about to be stored, and what storing it does to its session. */
export interface Appended {
  readonly body: EntryBody;
  /** The body in canonical form. */
  readonly bodyText: string;
  readonly link: Uint8Array;
  readonly linkText: string;
  /** The session's row after the commit. */
  readonly record: SessionRecord;
  readonly operations: readonly Operation[];
}

/** The view that a call is checked against: the stored one, with what a carried history newly reports. */
export function viewOf(gateway: Gateway, opened: InSession): SessionView {
  const { adopted, session } = opened;
  const { view } = session.record;
  if (adopted === undefined || opened.adoptedTool === undefined || !opened.believed) return view;
  const tool = gateway.loaded.catalogue.tools.get(opened.adoptedTool.tool);
  if (tool === undefined) return view;
  const { run, undoes } = opened.adoptedTool;
  const reported = reportToView(view, {
    tool,
    before: undefined,
    after: adopted.outcome,
    ...(run === undefined ? {} : { run }),
    ...(undoes === undefined ? {} : { undoes }),
  });
  const { reports, alsoChange } = opened.effects ?? NO_EFFECTS;
  return alsoChange(
    reports.reduce(
      (after, { tool: undone, ...report }) =>
        undone === undefined ? after : reportToView(after, { ...report, tool: undone }),
      reported,
    ),
  );
}

/** An entry that is about to be stored, without what storing it takes. */
export type NextEntry = Omit<Appended, 'operations'>;

/** Makes the entry of a verdict, as the next of its session (docs/formats.md). */
export function nextEntry(
  read: ReadCall,
  opened: InSession,
  snapshot: Snapshot,
  verdict: Verdict,
  crypto: Crypto,
): NextEntry {
  const { session, prevReport } = opened;
  const before = session.record;
  const step = before.head === undefined ? 0 : before.head.step + 1;
  const { run, undoes } = read.call;
  const reports = lateReportsOf(opened);
  const at = snapshot.nowMs;
  const body: EntryBody = {
    step,
    tool: verdict.tool?.id ?? cut(read.call.tool),
    agent: verdict.agent,
    arguments: snapshot.digests.arguments,
    origins: snapshot.digests.origins,
    labels: verdict.labels,
    decision: verdict.decision,
    reasons: verdict.reasons,
    at,
    policy: snapshot.policy,
    ...(run === undefined ? {} : { run }),
    ...(undoes === undefined ? {} : { undoes }),
    ...(reports.length === 0 ? {} : { reports }),
  };
  const bodyText = writeBody(body);
  const link = linkOf(crypto, session.genesis, session.headLink, prevReport, bodyText);
  const linkText = encodeBase64url(link);
  const appendedEntry = {
    step,
    decision: verdict.decision,
    labels: verdict.labels,
    ...(verdict.tool === undefined ? {} : { tool: verdict.tool }),
    ...(run === undefined ? {} : { run }),
    ...(undoes === undefined ? {} : { undoes }),
  };
  const record: SessionRecord = {
    ...before,
    head: { step, link: linkText },
    headReport: {},
    lateReports: [],
    view: appendToView(snapshot.session.view, appendedEntry),
    version: session.isNew ? before.version : before.version + 1,
    usedAtMs: at,
  };
  return { body, bodyText, link, linkText, record };
}

/** Makes the entry of a verdict with all that storing it takes. */
export function appendEntry(
  gateway: Gateway,
  read: ReadCall,
  opened: InSession,
  snapshot: Snapshot,
  verdict: Verdict,
): Appended {
  const next = nextEntry(read, opened, snapshot, verdict, gateway.crypto);
  return { ...next, operations: [...operationsOf(read, opened, verdict, next), ...endedBy(gateway, opened)] };
}

/** The entry as the store keeps it. */
export function storedEntry(next: NextEntry, forwarded: boolean, undoArguments?: string): StepRecord {
  return {
    step: next.body.step,
    link: next.linkText,
    body: next.bodyText,
    seen: false,
    forwarded,
    undoAllowed: false,
    reportFrozen: false,
    ...(undoArguments === undefined ? {} : { undoArguments }),
  };
}

function operationsOf(read: ReadCall, opened: InSession, verdict: Verdict, next: NextEntry): readonly Operation[] {
  const { record } = next;
  const { loaded, request } = read;
  const { session, adopted } = opened;
  const { sid } = record;
  const operations: Operation[] = [];
  if (session.isNew) {
    const liveSinceMs = record.usedAtMs - loaded.sessions.carryMs;
    operations.push({ op: 'open_session', session: record, maxLive: loaded.sessions.max, liveSinceMs });
  } else {
    const { head, headReport, lateReports, view, usedAtMs } = record;
    const expectVersion = session.record.version;
    const moved = { expectVersion, headReport, lateReports, view, usedAtMs, ...(head === undefined ? {} : { head }) };
    operations.push({ op: 'advance_session', sid, ...moved });
  }
  if (adopted !== undefined) operations.push(...adoptedOperations(opened, sid, adopted));
  const forwards = verdict.decision === 'allow' && request.purpose === 'forward';
  const undoArguments = verdict.decision === 'allow' ? boundByArguments(read, verdict) : undefined;
  operations.push({ op: 'append_entry', sid, entry: storedEntry(next, forwards, undoArguments) });
  if (verdict.decision === 'allow' && read.call.undoes !== undefined) {
    operations.push({ op: 'mark_undo', sid, step: read.call.undoes, undoAllowed: true });
  }
  return operations;
}

/** What a carried history newly reports, and what follows from it for other steps and for the run. */
function adoptedOperations(opened: InSession, sid: string, adopted: LateReport): readonly Operation[] {
  const { believed, effects = NO_EFFECTS } = opened;
  const followed = effects.reports.map(
    ({ step, after }): Operation => ({ op: 'report_step', sid, step, outcome: after, seen: true }),
  );
  return [{ op: 'report_step', sid, seen: believed, ...adopted }, ...followed, ...effects.operations];
}

/** The end of the claim of a call that its caller ran itself, and of what it holds. */
function endedBy(gateway: Gateway, { adopted, adoptedClaim: claim, believed }: InSession): readonly Operation[] {
  if (adopted === undefined || claim === undefined || !believed) return [];
  const { outcome } = adopted;
  const known = outcome === 'compensated' ? 'ran' : outcome;
  return [...reportedMoves(gateway, claim, outcome), ...endHolds(gateway.loaded, claim.tool, claim.link, known)];
}

/** What of the call its undo will bind, kept where there is any. */
function boundByArguments(read: ReadCall, verdict: Verdict): string | undefined {
  const bound = verdict.tool === undefined ? {} : bindArguments(verdict.tool, read.call.arguments);
  return Object.keys(bound).length === 0 ? undefined : canonicalize(bound);
}

function lateReportsOf(opened: InSession): readonly LateReport[] {
  const { late, session } = opened;
  const followed = (opened.effects?.reports ?? []).filter(({ quiet }) => quiet !== true);
  const told = followed.map(({ step, after }) => ({ step, outcome: after }));
  const kept = newestLate([...session.record.lateReports, ...told]);
  return late === undefined ? kept : newestLate([...kept, late]);
}

function cut(tool: string): string {
  const points = [...tool];
  return points.length <= MAX_TOOL_LENGTH ? tool : points.slice(0, MAX_TOOL_LENGTH).join('');
}
