import { performance } from 'node:perf_hooks';
import type { Snapshot } from '../../policy/call.ts';
import { checkCall } from '../../policy/check.ts';
import type { ToolAnswer } from '../../policy/conditions/condition.ts';
import type { Tool } from '../../policy/tool.ts';
import type { Verdict } from '../../policy/verdict.ts';
import type { CallNames } from '../audit/events.ts';
import type { Gateway } from '../gateway.ts';
import { applyReports } from '../session-reports.ts';
import type { Session } from '../sessions.ts';
import type { Allowed, Checked } from './allowed.ts';
import { renderCheck } from './answer-check.ts';
import { type InSession, nextEntry, storedEntry } from './append.ts';
import { heedsOtherSessions } from './carried-marks.ts';
import { chooseSession, sessionAtHand } from './choose-session.ts';
import { countDecision } from './count-decision.ts';
import { placeOf } from './place.ts';
import type { ReadCall } from './read-call.ts';
import { outcomeEvent, type Settled } from './settled.ts';
import { snapshotAtHand } from './snapshot.ts';

/**
 * Whether a call may be such a read, before its session is looked at: with one process, a read that no rule counts, orders,
 * taints by or takes a value of, and whose entry is not handed out (docs/performance.md).
 */
export function mayRideAlong(gateway: Gateway, read: ReadCall): boolean {
  const { request, call, tool, loaded } = read;
  return (
    tool !== undefined &&
    loaded.unwatched.has(tool.id) &&
    request.purpose === 'forward' &&
    !request.wantEntry &&
    request.members.history === undefined &&
    request.members.idempotencyKey === undefined &&
    request.members.confirmation === undefined &&
    call.run === undefined &&
    call.undoes === undefined &&
    gateway.store.kind === 'sqlite' &&
    gateway.storeIsUp()
  );
}

/** Whether an allowed read need not wait for the store. */
export function ridesAlong(gateway: Gateway, read: ReadCall, opened: InSession, verdict: Verdict): boolean {
  const plain = !opened.session.isNew && opened.adopted === undefined && opened.session.record.mode === 'held';
  return plain && verdict.decision === 'allow' && mayRideAlong(gateway, read);
}

/**
 * Decides such a read at once, where everything that its check reads is in memory and nobody is in its session's line.
 * Undefined where that is not so, or where it is not plainly allowed: then the long way decides it.
 */
export function decideAtHand(gateway: Gateway, read: ReadCall): Checked | undefined {
  if (!mayRideAlong(gateway, read) || heedsOtherSessions(read)) return undefined;
  const startedAt = performance.now();
  const opened = sessionAtHand(gateway, read, chooseSession(gateway, read));
  const snapshot = opened === undefined ? undefined : snapshotAtHand(gateway, read, opened);
  if (opened === undefined || snapshot === undefined) return undefined;
  const verdict = checkCall(snapshot, read.call);
  if (verdict.decision !== 'allow' || verdict.tool === undefined) return undefined;
  const checkMs = performance.now() - startedAt;
  read.request.span?.checked(startedAt);
  countDecision(gateway, verdict);
  gateway.metrics.checkTook(checkMs);
  return rideAlong(gateway, read, opened, snapshot, verdict, verdict.tool, checkMs);
}

/** Appends the entry of such a read in memory; it goes to the store with others of its session, a moment later. */
export function rideAlong(
  gateway: Gateway,
  read: ReadCall,
  opened: InSession,
  snapshot: Snapshot,
  verdict: Verdict,
  tool: Tool,
  checkMs: number,
): Checked {
  const appended = nextEntry(read, opened, snapshot, verdict, gateway.crypto);
  gateway.sessions.ride(opened.session, appended.record, storedEntry(appended, true), appended.link);
  const { session } = appended.record;
  const { step } = appended.body;
  const logged = gateway.audit.append({
    event: 'decision',
    via: read.request.via,
    decision: verdict.decision,
    reasons: verdict.reasons,
    policy: snapshot.policy,
    latency: { check: checkMs },
    ...namesOf(read, tool, verdict, session, step),
  });
  const check = renderCheck(read, verdict, { session, step });
  const rides = opened.session.name;
  return { kind: 'allowed', read, tool, place: placeOf(appended), check, answers: NO_ANSWERS, rides, logged };
}

const NO_ANSWERS: readonly ToolAnswer[] = [];

/** What became of such a read, in memory at once, and in the store with its entry; false where somebody is in the line. */
export function settleAtHand(gateway: Gateway, allowed: Allowed, settled: Settled): boolean {
  const session = allowed.rides === undefined ? undefined : gateway.sessions.stillAtHand(allowed.rides);
  if (session === undefined) return false;
  report(gateway, session, allowed, settled);
  return true;
}

/** As `settleAtHand`, behind whoever is in the line. */
export function settleRide(gateway: Gateway, allowed: Allowed, settled: Settled): Promise<void> {
  const { place } = allowed;
  return gateway.sessions.inLine(place.key, async () => {
    const session = await gateway.sessions.findRiding(place.key);
    if (session === undefined) throw new Error(`the session of a call that was sent is gone: ${place.key.session}`);
    report(gateway, session, allowed, settled);
  });
}

function report(gateway: Gateway, session: Session, allowed: Allowed, settled: Settled): void {
  const { place, tool } = allowed;
  const { outcome } = settled;
  const { record } = applyReports(session, [
    { step: place.step, tool, before: undefined, after: outcome, believed: true },
  ]);
  gateway.sessions.rideReport(session, record, { step: place.step, outcome });
  gateway.metrics.settled(tool.id, outcome);
  gateway.audit
    .append(outcomeEvent(allowed, settled))
    .catch((error: unknown) => gateway.log.error({ err: error }, 'the outcome of a read is not logged'));
}

function namesOf(read: ReadCall, tool: Tool, verdict: Verdict, session: string, step: number): CallNames {
  const names = { tool: tool.id, agent: verdict.agent, caller: read.request.caller.name, session, step };
  return read.request.route === undefined ? names : { ...names, route: read.request.route };
}
