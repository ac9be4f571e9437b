import { performance } from 'node:perf_hooks';
import type { Snapshot } from '../../policy/call.ts';
import { checkCall } from '../../policy/check.ts';
import type { Verdict } from '../../policy/verdict.ts';
import type { HistoryFault } from '../../receipts/history.ts';
import { signLink } from '../../receipts/history-links.ts';
import type { JsonObject } from '../../receipts/json-value.ts';
import type { CallNames } from '../audit/events.ts';
import type { PreparedLine } from '../audit/line.ts';
import type { EnforceAnswer, Problem, ToolCheck } from '../exchange.ts';
import { faultPoint } from '../fault-points.ts';
import type { Gateway } from '../gateway.ts';
import { headerOf, type Session } from '../sessions.ts';
import {
  type CommitResult,
  type ConfirmationRecord,
  type Conflict,
  type Operation,
  StoreFault,
} from '../store/port.ts';
import type { Checked } from './allowed.ts';
import { renderCheck } from './answer-check.ts';
import { type Appended, appendEntry, type InSession, viewOf } from './append.ts';
import { heedsOtherSessions, lineOfCaller, withOtherSessions } from './carried-marks.ts';
import { chooseSession, openSession, type SessionChoice } from './choose-session.ts';
import { makeClaim } from './claims.ts';
import { commitFor } from './commit-for.ts';
import { callDigest, makeConfirmation, renderConfirmation, toConfirmation } from './confirmations.ts';
import { countDecision } from './count-decision.ts';
import { failedBy, withFailure } from './failed-by-refusal.ts';
import { placeOf } from './place.ts';
import { RUN_FOREIGN, SESSION_BUSY, TOO_MANY_SESSIONS } from './problems.ts';
import type { ReadCall } from './read-call.ts';
import { answerRepeat } from './repeat.ts';
import { rideAlong, ridesAlong } from './ride-along.ts';
import { takeSnapshot, withConfirmation } from './snapshot.ts';
import { holdsOf } from './usage.ts';

/** How often a call is checked again because another call of its session was recorded first. */
const MAX_ATTEMPTS = 8;

export type Decided =
  | Checked
  | { readonly kind: 'held'; readonly check: ToolCheck }
  /** Another call with the same key was recorded first, and this one is its repeat. */
  | { readonly kind: 'repeated'; readonly answer: EnforceAnswer }
  | { readonly kind: 'problem'; readonly problem: Problem };

/** Checks a call in its session's line and records the answer; a lost race is checked again. */
export async function decide(gateway: Gateway, read: ReadCall): Promise<Decided> {
  const choice = chooseSession(gateway, read);
  const inTurn = (): Promise<Decided> => decideInLine(gateway, read, choice);
  return heedsOtherSessions(read) ? gateway.sessions.inLine(lineOfCaller(choice.key), inTurn) : inTurn();
}

function decideInLine(gateway: Gateway, read: ReadCall, choice: SessionChoice): Promise<Decided> {
  return gateway.sessions.inLine(choice.key, async () => {
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      const decided = await decideOnce(gateway, read, choice);
      if (decided !== 'moved') return decided;
      gateway.sessions.forget(choice.key);
    }
    return { kind: 'problem', problem: SESSION_BUSY };
  });
}

async function decideOnce(gateway: Gateway, read: ReadCall, choice: SessionChoice): Promise<Decided | 'moved'> {
  const startedAt = performance.now();
  const opened = await openSession(gateway, read, choice);
  // Looked at once more behind the session: whatever comes first from here on moves the session, or the claim, under us.
  const repeated =
    read.request.members.idempotencyKey === undefined ? undefined : await answerRepeat(gateway, read, false);
  if (repeated !== undefined) return { kind: 'repeated', answer: repeated };
  if (opened.kind === 'foreign') return answerForeign(gateway, read, choice, opened.fault);
  const view = await withOtherSessions(gateway, read, opened.session, viewOf(gateway, opened));
  const first = await takeSnapshot(gateway, read, opened, view);
  const judged = await judge(gateway, read, opened.session, first);
  read.request.span?.checked(startedAt);
  if (judged.standing !== undefined) {
    // Nothing is stored here that would tell a copy which another replica has gone on from.
    if (!(await isCurrent(gateway, opened.session))) return 'moved';
    return answerStanding(read, judged.verdict, opened.session, judged.standing);
  }
  return record(gateway, read, opened, judged, performance.now() - startedAt);
}

/** Whether a session in memory is as it stands in the store. */
async function isCurrent(gateway: Gateway, { record }: Session): Promise<boolean> {
  return (await gateway.sessions.findNow(record))?.record.version === record.version;
}

interface Judged {
  readonly snapshot: Snapshot;
  readonly verdict: Verdict;
  /** A confirmation that was asked for this very call before, and still waits. */
  readonly standing?: ConfirmationRecord;
  /** The confirmation that admitted the call. */
  readonly confirmedBy?: string;
}

/** The check, and for a confirm a look at whether the same call was asked about, or approved, before. */
async function judge(gateway: Gateway, read: ReadCall, session: Session, snapshot: Snapshot): Promise<Judged> {
  const verdict = logged(gateway, checkCall(snapshot, read.call));
  const presented = snapshot.confirmation === 'invalid' ? undefined : snapshot.confirmation;
  if (verdict.decision !== 'confirm') {
    const admitted = verdict.reasons[0] === 'confirmed' && presented !== undefined;
    return { snapshot, verdict, ...(admitted ? { confirmedBy: presented.id } : {}) };
  }
  if (session.isNew) return { snapshot, verdict };
  const known = await gateway.store.findConfirmationOfCall(session.record.sid, callDigest(gateway, read, verdict));
  if (known === undefined || (known.state !== 'pending' && known.state !== 'approved')) return { snapshot, verdict };
  // What row 10 would say if the person had said yes: whether it still covers this call at this point.
  const approved = withConfirmation(snapshot, toConfirmation(known));
  const covered = checkCall(approved, read.call);
  if (covered.reasons[0] !== 'confirmed') return { snapshot, verdict };
  if (known.state === 'pending') return { snapshot, verdict, standing: known };
  return { snapshot: approved, verdict: covered, confirmedBy: known.id };
}

/** Stores the entry with all that its decision takes, in one commit; `moved` where another call came first. */
async function record(
  gateway: Gateway,
  read: ReadCall,
  opened: InSession,
  judged: Judged,
  checkMs: number,
): Promise<Decided | 'moved'> {
  const { snapshot, verdict } = judged;
  if (verdict.tool !== undefined && ridesAlong(gateway, read, opened, verdict)) {
    countDecision(gateway, verdict);
    gateway.metrics.checkTook(checkMs);
    return rideAlong(gateway, read, opened, snapshot, verdict, verdict.tool, checkMs);
  }
  const failing = await failedBy(gateway, read, opened, verdict);
  const appended = withFailure(appendEntry(gateway, read, opened, snapshot, verdict), failing);
  const { tool } = verdict;
  const forwards = verdict.decision === 'allow' && tool !== undefined && read.request.purpose === 'forward';
  const allows = verdict.decision === 'allow' && tool !== undefined;
  const needsClaim = allows && (tool.writes || (forwards && read.request.members.idempotencyKey !== undefined));
  const place = placeOf(appended);
  const claim = needsClaim ? makeClaim(gateway, read, tool, place, undoneLinkOf(read, snapshot)) : undefined;
  const asked =
    verdict.decision === 'confirm'
      ? makeConfirmation(gateway, read, opened.session, verdict, {
          step: appended.body.step,
          link: appended.linkText,
          arguments: appended.body.arguments,
          origins: appended.body.origins,
        })
      : undefined;
  const line = gateway.audit.prepare({
    event: 'decision',
    via: read.request.via,
    decision: verdict.decision,
    reasons: verdict.reasons,
    policy: snapshot.policy,
    latency: { check: checkMs },
    ...namesOf(read, appended, verdict),
    ...(verdict.waived === undefined ? {} : { waived: verdict.waived }),
    ...(verdict.pointer === undefined ? {} : { pointer: verdict.pointer }),
    ...(asked === undefined ? {} : { confirmation: asked.id }),
    ...(judged.confirmedBy === undefined ? {} : { confirmation: judged.confirmedBy }),
  });
  // Lines of what follows from the call, or from what its history newly reports.
  const others = [...failing.lines, ...(opened.effects?.lines ?? [])];
  const { replica } = gateway.audit;
  const operations = [
    ...appended.operations,
    ...(asked === undefined ? [] : [{ op: 'put_confirmation', confirmation: asked } as const]),
    ...spendOf(judged, snapshot),
    ...(claim === undefined ? [] : [{ op: 'claim', claim } as const]),
    ...holdsOf(read.loaded, verdict, read, snapshot, appended.linkText),
    ...runOf(read, appended, verdict),
    ...failing.operations,
    ...freezeOf(opened),
    ...[line, ...others].map(({ n, line: text }) => ({ op: 'outbox', replica, n, line: text }) as const),
  ];
  const inFlight = forwards ? claim?.link : undefined;
  const result = await commitWith(gateway, read, { lines: [line, ...others], operations, inFlight });
  if (!result.ok) return problemOf(result);
  gateway.sessions.keep(appended.record, opened.session);
  countDecision(gateway, verdict);
  gateway.metrics.checkTook(checkMs);
  if (others.length > 0) gateway.undoWork.ring();
  for (const other of others) await gateway.audit.write(other);
  const handsOut = read.request.wantEntry || read.request.purpose === 'decide' || appended.record.mode === 'carried';
  const check = renderCheck(read, verdict, {
    session: appended.record.session,
    step: appended.body.step,
    ...(handsOut ? { entry: entryOf(read, appended) } : {}),
    ...(appended.record.mode === 'carried' && opened.session.isNew
      ? { history: { ...headerOf(appended.record) } }
      : {}),
    ...(asked === undefined ? {} : { confirmation: renderConfirmation(read, asked) }),
    ...(claim?.upstreamKey === undefined || !claim.writes ? {} : { idempotencyKey: claim.upstreamKey }),
  });
  if (verdict.decision !== 'allow' || tool === undefined) {
    await gateway.audit.write(line);
    return { kind: 'held', check };
  }
  const answers = snapshot.answers ?? [];
  const allowed = { kind: 'allowed', read, tool, place, check, answers, line } as const;
  return claim === undefined ? allowed : { ...allowed, claim };
}

/** Commits; what certainly did not happen takes its audit lines with it. `inFlight` is the claim that is then sent. */
async function commitWith(
  gateway: Gateway,
  read: ReadCall,
  commit: {
    readonly lines: readonly PreparedLine[];
    readonly operations: readonly Operation[];
    readonly inFlight: string | undefined;
  },
): Promise<CommitResult> {
  const { lines, operations, inFlight } = commit;
  if (inFlight !== undefined) gateway.flights.begin(inFlight);
  try {
    const committing = commitFor(gateway, read, operations);
    if (lines.length > 1) faultPoint('marking-run-failed');
    const result = await committing;
    if (result.ok) return result;
    for (const line of lines) gateway.audit.abandon(line);
    if (inFlight !== undefined) gateway.flights.end(inFlight);
    return result;
  } catch (error) {
    if (inFlight !== undefined) gateway.flights.end(inFlight);
    gateway.sessions.forgetOf(read.request.caller.name);
    if (error instanceof StoreFault && !error.maybe) for (const line of lines) gateway.audit.abandon(line);
    throw error;
  }
}

function problemOf(conflict: Conflict): Decided | 'moved' {
  switch (conflict.conflict) {
    case 'too_many_sessions':
      return { kind: 'problem', problem: TOO_MANY_SESSIONS };
    case 'run_foreign':
      return { kind: 'problem', problem: RUN_FOREIGN };
    default:
      return 'moved';
  }
}

/** A genuine history of somebody else's session: told so, and nothing is appended anywhere. */
async function answerForeign(
  gateway: Gateway,
  read: ReadCall,
  choice: SessionChoice,
  fault: HistoryFault,
): Promise<Decided> {
  const verdict: Verdict = {
    decision: 'refuse',
    reasons: ['history_invalid'],
    detail: { fault: fault.fault, entry: fault.entry },
    step: 'history',
    tool: undefined,
    agent: read.agent,
    labels: [],
  };
  await gateway.audit.append({
    event: 'decision',
    via: read.request.via,
    decision: 'refuse',
    reasons: verdict.reasons,
    policy: read.loaded.policy,
    latency: {},
    tool: read.call.tool,
    agent: read.agent,
    caller: read.request.caller.name,
    session: choice.key.session,
    ...(read.request.route === undefined ? {} : { route: read.request.route }),
  });
  countDecision(gateway, verdict);
  return { kind: 'held', check: renderCheck(read, verdict, { session: choice.key.session, step: 0 }) };
}

/** The same call again while its confirmation waits: the same confirmation again, and nothing is appended. */
function answerStanding(read: ReadCall, verdict: Verdict, session: Session, standing: ConfirmationRecord): Decided {
  const confirmation = renderConfirmation(read, standing);
  const recorded = { session: session.record.session, step: standing.step, confirmation };
  return { kind: 'held', check: renderCheck(read, verdict, recorded) };
}

function spendOf(judged: Judged, snapshot: Snapshot): readonly Operation[] {
  if (judged.confirmedBy === undefined) return [];
  const from = ['pending', 'approved'] as const;
  return [{ op: 'move_confirmation', id: judged.confirmedBy, from, to: 'spent', atMs: snapshot.nowMs }];
}

/** A run lives in the session of its first allowed call; an undo is for runs that take no others. */
function runOf(read: ReadCall, appended: Appended, verdict: Verdict): readonly Operation[] {
  const { run, undoes } = read.call;
  if (verdict.decision !== 'allow' || run === undefined || undoes !== undefined) return [];
  const { sid, usedAtMs: updatedAtMs } = appended.record;
  const { agent } = verdict;
  const touched = { caller: read.request.caller.name, run, sid, agent, state: 'open', updatedAtMs } as const;
  return [{ op: 'touch_run', run: touched, from: ['open'] }];
}

function freezeOf(opened: InSession): readonly Operation[] {
  const { forked } = opened;
  return forked === undefined ? [] : [{ op: 'freeze_session', sid: forked.sid, why: 'forked' }];
}

/** Link of the step that the call undoes. */
function undoneLinkOf(read: ReadCall, snapshot: Snapshot): string | undefined {
  return read.call.undoes === undefined ? undefined : snapshot.steps.get(read.call.undoes)?.link;
}

function entryOf(read: ReadCall, appended: Appended): JsonObject {
  return { ...appended.body, token: signLink(read.loaded.signing, appended.link) };
}

function namesOf(read: ReadCall, appended: Appended, verdict: Verdict): CallNames {
  const { run, undoes } = read.call;
  return {
    tool: appended.body.tool,
    agent: verdict.agent,
    caller: read.request.caller.name,
    session: appended.record.session,
    step: appended.body.step,
    ...(read.request.route === undefined ? {} : { route: read.request.route }),
    ...(run === undefined ? {} : { run }),
    ...(undoes === undefined ? {} : { undoes }),
  };
}

/** A check that failed on an error of its own refuses, and the log says why. */
function logged(gateway: Gateway, verdict: Verdict): Verdict {
  if (verdict.error !== undefined)
    gateway.log.error({ err: verdict.error }, 'the check of a call failed and refused it');
  return verdict;
}
