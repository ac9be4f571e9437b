import type { Snapshot } from '../../policy/call.ts';
import type { Tool } from '../../policy/tool.ts';
import type { Verdict } from '../../policy/verdict.ts';
import type { CallNames } from '../audit/events.ts';
import type { Gateway } from '../gateway.ts';
import { applyReports } from '../session-reports.ts';
import type { StepRecord } from '../store/port.ts';
import type { Allowed, Checked } from './allowed.ts';
import { renderCheck } from './answer-check.ts';
import { type Appended, appendEntry, type InSession } from './append.ts';
import { placeOf } from './place.ts';
import type { ReadCall } from './read-call.ts';
import { outcomeEvent, type Settled } from './settled.ts';

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
  const appended = appendEntry(gateway, read, opened, snapshot, verdict);
  gateway.sessions.ride(opened.session, appended.record, entryOf(appended));
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
  return { kind: 'allowed', read, tool, place: placeOf(appended), check, answers: [], unwaited: true, logged };
}

/** What became of such a read: in memory at once, and in the store with its entry. */
export function settleRide(gateway: Gateway, allowed: Allowed, settled: Settled): Promise<void> {
  const { place, tool } = allowed;
  return gateway.sessions.inLine(place.key, async () => {
    const session = await gateway.sessions.findRiding(place.key);
    if (session === undefined) throw new Error(`the session of a call that was sent is gone: ${place.key.session}`);
    const { outcome } = settled;
    const report = { step: place.step, tool, before: undefined, after: outcome, believed: true };
    const { record } = applyReports(session, [report]);
    gateway.sessions.rideReport(session, record, { step: place.step, outcome });
    gateway.metrics.settled(tool.id, outcome);
    gateway.audit
      .append(outcomeEvent(allowed, settled))
      .catch((error: unknown) => gateway.log.error({ err: error }, 'the outcome of a read is not logged'));
  });
}

function entryOf(appended: Appended): StepRecord {
  for (const operation of appended.operations) if (operation.op === 'append_entry') return operation.entry;
  throw new Error('an appended entry has no operation that stores it');
}

function namesOf(read: ReadCall, tool: Tool, verdict: Verdict, session: string, step: number): CallNames {
  const names = { tool: tool.id, agent: verdict.agent, caller: read.request.caller.name, session, step };
  return read.request.route === undefined ? names : { ...names, route: read.request.route };
}
