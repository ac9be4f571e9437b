import type { Tool } from '../../policy/tool.ts';
import { resultBytesDigest } from '../../receipts/digest.ts';
import type { Outcome } from '../../receipts/history.ts';
import { mayFollow } from '../../receipts/history-reports.ts';
import type { JsonObject } from '../../receipts/json-value.ts';
import { faultPoint } from '../fault-points.ts';
import type { Gateway } from '../gateway.ts';
import { type Effects, effectsOf, NO_EFFECTS } from '../runs/outcome-effects.ts';
import { applyReports, type StepReport } from '../session-reports.ts';
import type { Session } from '../sessions.ts';
import type { ClaimRecord, Operation } from '../store/port.ts';
import type { Allowed } from './allowed.ts';
import { commitFor } from './commit-for.ts';
import { parseResult, type ReadResult, readResult } from './read-result.ts';
import { settleRide } from './ride-along.ts';
import { outcomeEvent, type Settled } from './settled.ts';
import { outcomeOf, readBody } from './step-facts.ts';
import { bindArguments } from './undo-arguments.ts';
import { endHolds, restoreSpend } from './usage.ts';
import { watchAnswer } from './watched.ts';

const MAX_ATTEMPTS = 20;

/**
 * Stores what became of an allowed call: the report on its step, what later rules read of the result, what an undo
 * binds, the claim's end, and what follows for its run. Tries again while other calls of the session come first; throws
 * `StoreFault` where the store is away. Resolves with whether it was stored: not where the claim is somebody else's.
 */
export async function settle(gateway: Gateway, allowed: Allowed, settled: Settled): Promise<boolean> {
  if (allowed.rides !== undefined) {
    await settleRide(gateway, allowed, settled);
    return true;
  }
  return gateway.sessions.inLine(allowed.place.key, () => settleInLine(gateway, allowed, settled));
}

async function settleInLine(gateway: Gateway, given: Allowed, settled: Settled): Promise<boolean> {
  const { key } = given.place;
  let allowed = given;
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    const session = await gateway.sessions.find(key);
    if (session === undefined) throw new Error(`the session of a call that was sent is gone: ${key.session}`);
    const effects = await effectsOfCall(gateway, session, allowed, settled);
    const change = allowed.place.own
      ? applyReports(session, await reportsOf(gateway, session, allowed, settled, effects), effects.alsoChange)
      : { record: session.record, operations: [] };
    const line = gateway.audit.prepare(outcomeEvent(allowed, settled));
    const lines = [...effects.lines, line];
    const operations: readonly Operation[] = [
      ...change.operations,
      ...claimEnd(gateway, allowed, settled),
      ...endHolds(allowed.read.loaded, allowed.tool.id, allowed.place.link, settled.outcome),
      ...(await restoredBy(gateway, allowed, settled)),
      ...watchedOf(allowed, settled),
      ...effects.operations,
      ...lines.map(({ n, line: text }) => ({ op: 'outbox', replica: gateway.audit.replica, n, line: text }) as const),
    ];
    const committing = commitFor(gateway, allowed.read, operations);
    if (effects.failsRun) faultPoint('marking-run-failed');
    const result = await committing;
    if (!result.ok) {
      for (const unwritten of lines) gateway.audit.abandon(unwritten);
      if (result.conflict === 'claim_fenced') {
        const late = await takenOver(gateway, allowed, settled);
        if (late === undefined) return false;
        allowed = late;
      }
      gateway.sessions.forget(key);
      continue;
    }
    gateway.sessions.keep(change.record, session);
    gateway.metrics.settled(allowed.tool.id, settled.outcome);
    if (effects.operations.length > 0) gateway.undoWork.ring();
    // The store has the outcome and its line; the log catches up by itself where it cannot be written now.
    for (const stored of lines) {
      gateway.audit
        .write(stored)
        .catch((error: unknown) => gateway.log.error({ err: error }, 'an outcome is not logged yet'));
    }
    return true;
  }
  throw new Error(`the outcome of step ${given.place.step} of ${key.session} could not be stored for other calls`);
}

/**
 * Somebody took the claim over from an owner that was silent too long. Whoever has it now says what became of it; only
 * where that was "nobody knows" is what this owner saw still worth something, under the fence of today.
 */
async function takenOver(gateway: Gateway, allowed: Allowed, settled: Settled): Promise<Allowed | undefined> {
  const { claim, place } = allowed;
  const now = claim === undefined ? undefined : await gateway.store.findClaim({ link: claim.link });
  gateway.log.warn({ session: place.key.session, step: place.step, state: now?.state }, 'a claim was taken over');
  if (now?.state !== 'outcome_unknown' || now.fence === claim?.fence || settled.outcome === 'outcome_unknown') {
    return undefined;
  }
  return { ...allowed, claim: now, again: true };
}

function effectsOfCall(gateway: Gateway, session: Session, allowed: Allowed, settled: Settled): Promise<Effects> {
  const { place, tool } = allowed;
  if (!place.own || isUntold(allowed, settled)) return Promise.resolve(NO_EFFECTS);
  const { step, run, undoes } = place;
  return effectsOf(gateway, session, {
    step,
    tool,
    outcome: settled.outcome,
    late: allowed.again === true,
    ...(run === undefined ? {} : { run }),
    ...(undoes === undefined ? {} : { undoes }),
  });
}

/**
 * A receipt whose call certainly was not sent may be sent again (docs/formats.md, "Receipts"): nothing is reported, since
 * nothing could follow a `failed`.
 */
function isUntold({ receipt, place }: Allowed, { outcome, answer, by }: Settled): boolean {
  return receipt !== undefined && place.undoes === undefined && outcome === 'failed' && answer === undefined && !by;
}

/** The claim of a call that nothing was sent for is let go, and its step reported failed. Logs where even that cannot be stored. */
export async function releaseClaim(gateway: Gateway, allowed: Allowed, why: string): Promise<void> {
  try {
    await settle(gateway, allowed, { outcome: 'failed', upstreamMs: 0, why });
  } catch (error) {
    gateway.log.error({ err: error, session: allowed.place.key.session }, 'a claim could not be let go; it lapses');
  }
}

async function reportsOf(
  gateway: Gateway,
  session: Session,
  allowed: Allowed,
  settled: Settled,
  effects: Effects,
): Promise<readonly StepReport[]> {
  if (isUntold(allowed, settled)) return [];
  const { place, tool, read } = allowed;
  const { run, undoes, step } = place;
  const [known] = allowed.again === true ? await gateway.store.findSteps(place.sid, [step]) : [];
  const said = outcomeOf(known?.outcome);
  const own: StepReport = {
    step,
    tool,
    before: known?.seen === true ? said : undefined,
    after: settled.outcome,
    believed: true,
    quiet: said !== undefined && !mayFollow(said, settled.outcome),
    ...(run === undefined ? {} : { run }),
    ...(undoes === undefined ? {} : { undoes }),
    ...(settled.outcome === 'ran' ? readAnswer(gateway, session, step, tool, read.call.arguments, settled) : {}),
  };
  return [own, ...effects.reports];
}

/** What of a whole answer is kept for later rules; nothing where it was streamed past. */
function readAnswer(
  gateway: Gateway,
  session: Session,
  step: number,
  tool: Tool,
  args: JsonObject,
  settled: Settled,
): ReadResult {
  const { body, contentType } = settled;
  if (body === undefined || body.length === 0) return {};
  const value = parseResult(body, contentType);
  if (value === undefined) return { result: resultBytesDigest(gateway.crypto, session.nonce, body) };
  return readResult(gateway, session, { step, tool, boundArguments: bindArguments(tool, args) }, value);
}

function claimEnd(gateway: Gateway, { claim }: Allowed, settled: Settled): readonly Operation[] {
  return claim === undefined ? [] : claimMoves(gateway, claim, settled);
}

/** What of a claim's end an outcome takes: the claim and what it holds. */
export function claimEnds(
  gateway: Gateway,
  claim: ClaimRecord,
  settled: Pick<Settled, 'outcome' | 'why'>,
): readonly Operation[] {
  return [...claimMoves(gateway, claim, settled), ...endHolds(gateway.loaded, claim.tool, claim.link, settled.outcome)];
}

/** The end of a claim by the report of whoever ran the call itself; not of what it holds. What was undone since had run. */
export function reportedMoves(gateway: Gateway, claim: ClaimRecord, outcome: Outcome): readonly Operation[] {
  if (claim.state === 'ran' || claim.state === 'failed') return [];
  const to = outcome === 'compensated' ? 'ran' : outcome;
  if (to === 'outcome_unknown' && claim.state === to) return [];
  return claimMoves(gateway, claim, { outcome: to });
}

function claimMoves(
  gateway: Gateway,
  claim: ClaimRecord,
  settled: Pick<Settled, 'outcome' | 'answer' | 'why'>,
): readonly Operation[] {
  const { link, fence } = claim;
  const { outcome, answer, why } = settled;
  const moved: Operation = {
    op: 'move_claim',
    link,
    fence,
    from: claim.state === 'outcome_unknown' ? ['outcome_unknown'] : ['claimed', 'sending'],
    to: outcome,
    atMs: gateway.now(),
    ...(answer === undefined ? {} : { answer }),
    ...(why === undefined ? {} : { why }),
  };
  return [moved];
}

/** An undo that ran gives back what its step spent, where the undoing tool says that it does. */
async function restoredBy(gateway: Gateway, allowed: Allowed, settled: Settled): Promise<readonly Operation[]> {
  const { place, tool, read } = allowed;
  if (place.undoes === undefined || settled.outcome !== 'ran' || !tool.restores) return [];
  const [undone] = await gateway.store.findSteps(place.sid, [place.undoes]);
  return undone === undefined ? [] : restoreSpend(read.loaded, readBody(undone).tool, undone.link);
}

function watchedOf(allowed: Allowed, settled: Settled): readonly Operation[] {
  const { place, tool, read } = allowed;
  if (settled.outcome !== 'ran' || !place.own || !read.loaded.rules.watched.has(tool.id)) return [];
  const { body, contentType } = settled;
  const result = body === undefined ? undefined : parseResult(body, contentType);
  const watched = { sid: place.sid, step: place.step, toolId: tool.id, arguments: read.call.arguments };
  return watchAnswer(read.loaded, result === undefined ? watched : { ...watched, result });
}
