import { parseJson } from '../../receipts/json.ts';
import type { JsonObject, JsonValue } from '../../receipts/json-value.ts';
import type { OutcomeEvent } from '../audit/events.ts';
import type { Gateway } from '../gateway.ts';
import { applyReports, type StepReport } from '../session-reports.ts';
import type { Session } from '../sessions.ts';
import type { ClaimRecord, Operation, SessionKey, StepRecord } from '../store/port.ts';
import { parseResult, type ReadResult, readResult } from './read-result.ts';
import { outcomeOf, readBody } from './step-facts.ts';
import { endHolds } from './usage.ts';
import { watchAnswer } from './watched.ts';

/** What settled a claim whose outcome was unknown. */
export interface ClaimSettlement {
  readonly outcome: 'ran' | 'failed';
  /** A code: how it became known. */
  readonly why: string;
}

const MAX_ATTEMPTS = 20;

/**
 * Settles a claim whose outcome was unknown: its step is reported, what it reserved settled or released, and of a kept
 * answer read what an answer that came in time would have given. False where somebody else settled it before. Throws
 * `StoreFault` where the store is away.
 */
export async function settleUnknown(
  gateway: Gateway,
  claim: ClaimRecord,
  settlement: ClaimSettlement,
): Promise<boolean> {
  const found = await gateway.store.findSessionById(claim.sid);
  if (found === undefined) throw new Error(`the session of a claim is gone: step ${claim.step} of ${claim.tool}`);
  const key: SessionKey = found;
  return gateway.sessions.inLine(key, async () => {
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      const settled = await settleOnce(gateway, key, claim, settlement);
      if (settled !== 'moved') return settled;
      gateway.sessions.forget(key);
    }
    throw new Error(`the outcome of step ${claim.step} of ${key.session} could not be stored for other calls`);
  });
}

async function settleOnce(
  gateway: Gateway,
  key: SessionKey,
  claim: ClaimRecord,
  { outcome, why }: ClaimSettlement,
): Promise<boolean | 'moved'> {
  const session = await gateway.sessions.find(key);
  if (session === undefined) throw new Error(`the session of a claim is gone: ${key.session}`);
  // A receipt of another issuer's has no step here: only its claim is settled.
  const [step] = await gateway.store.findSteps(claim.sid, [claim.step]);
  const own = step?.link === claim.link ? step : undefined;
  const result = outcome === 'ran' ? answerOf(claim) : undefined;
  const change =
    own === undefined
      ? { record: session.record, operations: [] }
      : applyReports(session, [reportOf(gateway, session, own, outcome, result)]);
  const line = gateway.audit.prepare(eventOf(key, claim, outcome, why));
  const { link, fence, tool: toolId, sid } = claim;
  const watched = { sid, step: claim.step, toolId, arguments: argumentsOf(claim) };
  const operations: readonly Operation[] = [
    ...change.operations,
    { op: 'move_claim', link, fence, from: ['outcome_unknown'], to: outcome, why, atMs: gateway.now() },
    ...endHolds(gateway.loaded, toolId, link, outcome),
    ...(own === undefined || outcome !== 'ran'
      ? []
      : watchAnswer(gateway.loaded, result === undefined ? watched : { ...watched, result })),
    { op: 'outbox', replica: gateway.audit.replica, n: line.n, line: line.line },
  ];
  const committed = await gateway.commit(operations);
  if (!committed.ok) {
    gateway.audit.abandon(line);
    return committed.conflict === 'claim_fenced' ? false : 'moved';
  }
  if (own !== undefined) gateway.sessions.keep(change.record, session);
  gateway.audit
    .write(line)
    .catch((error: unknown) => gateway.log.error({ err: error }, 'an outcome is not logged yet'));
  return true;
}

function reportOf(
  gateway: Gateway,
  session: Session,
  record: StepRecord,
  outcome: 'ran' | 'failed',
  result: JsonValue | undefined,
): StepReport {
  const body = readBody(record);
  const tool = gateway.loaded.catalogue.tools.get(body.tool);
  const { run, undoes } = body;
  return {
    step: record.step,
    tool,
    before: outcomeOf(record.outcome),
    after: outcome,
    believed: true,
    ...(run === undefined ? {} : { run }),
    ...(undoes === undefined ? {} : { undoes }),
    ...(tool === undefined || result === undefined ? {} : read(gateway, session, record, tool, result)),
  };
}

function read(
  gateway: Gateway,
  session: Session,
  record: StepRecord,
  tool: NonNullable<StepReport['tool']>,
  result: JsonValue,
): ReadResult {
  const bound = record.undoArguments === undefined ? {} : asObject(parseJson(record.undoArguments));
  return readResult(gateway, session, { step: record.step, tool, boundArguments: bound }, result);
}

/** The answer that the backend gave when the call was made, where it was kept and is JSON. */
export function answerOf(claim: ClaimRecord): JsonValue | undefined {
  return claim.answer?.kind === 'kept' ? parseResult(claim.answer.body, claim.answer.contentType) : undefined;
}

/** The arguments of a claimed call; none where they are no longer kept. */
export function argumentsOf(claim: ClaimRecord): JsonObject {
  return claim.request === undefined ? {} : asObject(parseJson(claim.request));
}

function eventOf(key: SessionKey, claim: ClaimRecord, outcome: 'ran' | 'failed', why: string): OutcomeEvent {
  return {
    event: 'outcome',
    by: 'gateway',
    outcome,
    why,
    tool: claim.tool,
    agent: claim.agent,
    caller: claim.caller,
    session: key.session,
    step: claim.step,
    ...(claim.run === undefined ? {} : { run: claim.run }),
  };
}

function asObject(value: JsonValue): JsonObject {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as JsonObject;
  throw new Error('arguments in the store are no object');
}
