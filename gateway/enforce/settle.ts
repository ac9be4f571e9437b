import type { Tool } from '../../policy/tool.ts';
import { resultBytesDigest } from '../../receipts/digest.ts';
import type { JsonObject } from '../../receipts/json-value.ts';
import type { OutcomeEvent } from '../audit/events.ts';
import { compensatedBy } from '../compensated-step.ts';
import type { CallOutcome } from '../exchange.ts';
import type { Gateway } from '../gateway.ts';
import { applyReports, type StepReport } from '../session-reports.ts';
import type { Session } from '../sessions.ts';
import type { ClaimRecord, Operation, StoredAnswer } from '../store/port.ts';
import type { Allowed } from './allowed.ts';
import { parseResult, type ReadResult, readResult } from './read-result.ts';
import { readBody } from './step-facts.ts';
import { bindArguments } from './undo-arguments.ts';
import { endHolds, restoreSpend } from './usage.ts';
import { watchAnswer } from './watched.ts';

/** What became of a sent call, as its answer says. */
export interface Settled {
  readonly outcome: CallOutcome;
  /** The whole body, where it was read. */
  readonly body?: Uint8Array;
  readonly contentType?: string;
  readonly answer?: StoredAnswer;
  readonly upstreamStatus?: number;
  readonly upstreamMs: number;
  /** A code: why it failed or is unknown. */
  readonly why?: string;
  /** How many records of the answer a filter held back. */
  readonly heldBack?: number;
}

const MAX_ATTEMPTS = 20;

/**
 * Stores what became of an allowed call: the report on its step, what later rules read of the result, what an undo
 * binds, the claim's end. Tries again while other calls of the session come first; throws `StoreFault` where the store is away.
 */
export async function settle(gateway: Gateway, allowed: Allowed, settled: Settled): Promise<void> {
  const { key } = allowed.place;
  await gateway.sessions.inLine(key, async () => {
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      const session = await gateway.sessions.find(key);
      if (session === undefined) throw new Error(`the session of a call that was sent is gone: ${key.session}`);
      const change = allowed.place.own
        ? applyReports(session, await reportsOf(gateway, session, allowed, settled))
        : { record: session.record, operations: [] };
      const line = gateway.audit.prepare(outcomeEvent(allowed, settled));
      const operations: readonly Operation[] = [
        ...change.operations,
        ...claimEnd(gateway, allowed, settled),
        ...endHolds(allowed.read.loaded, allowed.tool.id, allowed.place.link, settled.outcome),
        ...(await restoredBy(gateway, allowed, settled)),
        ...watchedOf(allowed, settled),
        { op: 'outbox', replica: gateway.audit.replica, n: line.n, line: line.line },
      ];
      if (allowed.unwaited && gateway.storeIsUp()) gateway.commitLater(operations);
      else {
        const result = await gateway.commit(operations);
        if (!result.ok) {
          gateway.audit.abandon(line);
          // Whoever took the claim over says what became of it.
          if (result.conflict === 'claim_fenced') return;
          gateway.sessions.forget(key);
          continue;
        }
      }
      gateway.sessions.keep(change.record, session);
      gateway.metrics.settled(allowed.tool.id, settled.outcome);
      // The store has the outcome and its line; the log catches up by itself where it cannot be written now.
      gateway.audit
        .write(line)
        .catch((error: unknown) => gateway.log.error({ err: error }, 'an outcome is not logged yet'));
      return;
    }
    throw new Error(`the outcome of step ${allowed.place.step} of ${key.session} could not be stored for other calls`);
  });
}

function outcomeEvent(allowed: Allowed, settled: Settled): OutcomeEvent {
  const { place, read, tool } = allowed;
  const { outcome, upstreamMs, upstreamStatus, why } = settled;
  return {
    event: 'outcome',
    by: 'gateway',
    outcome,
    tool: tool.id,
    agent: place.agent,
    caller: read.request.caller.name,
    session: place.key.session,
    step: place.step,
    latency: { upstream: upstreamMs },
    ...(read.request.route === undefined ? {} : { route: read.request.route }),
    ...(place.run === undefined ? {} : { run: place.run }),
    ...(upstreamStatus === undefined ? {} : { upstream_status: upstreamStatus }),
    ...(why === undefined ? {} : { why }),
    ...(settled.heldBack === undefined ? {} : { held_back: settled.heldBack }),
  };
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
): Promise<readonly StepReport[]> {
  const { place, tool, read } = allowed;
  const { run, undoes, step } = place;
  const own: StepReport = {
    step,
    tool,
    before: undefined,
    after: settled.outcome,
    believed: true,
    ...(run === undefined ? {} : { run }),
    ...(undoes === undefined ? {} : { undoes }),
    ...(settled.outcome === 'ran' ? readAnswer(gateway, session, step, tool, read.call.arguments, settled) : {}),
  };
  if (undoes === undefined || settled.outcome !== 'ran') return [own];
  return [own, ...(await compensatedBy(gateway, session, undoes))];
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

function claimEnd(gateway: Gateway, allowed: Allowed, settled: Settled): readonly Operation[] {
  const { claim, place } = allowed;
  const undone: Operation[] = [];
  const { undoes } = place;
  if (undoes !== undefined && settled.outcome === 'failed') {
    undone.push({ op: 'mark_undo', sid: place.sid, step: undoes, undoAllowed: false });
  }
  return claim === undefined ? undone : [...undone, ...claimMoves(gateway, claim, settled)];
}

function claimMoves(gateway: Gateway, claim: ClaimRecord, settled: Settled): readonly Operation[] {
  const { link, fence } = claim;
  const { outcome, answer, why } = settled;
  const moved: Operation = {
    op: 'move_claim',
    link,
    fence,
    from: ['claimed', 'sending'],
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
