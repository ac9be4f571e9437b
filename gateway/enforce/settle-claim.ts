import { mayFollow } from '../../receipts/history-reports.ts';
import { parseJson } from '../../receipts/json.ts';
import type { JsonObject, JsonValue } from '../../receipts/json-value.ts';
import type { CallOutcome } from '../exchange.ts';
import type { Gateway } from '../gateway.ts';
import { effectsOf } from '../runs/outcome-effects.ts';
import { applyReports, type StepReport } from '../session-reports.ts';
import type { ClaimRecord, Operation, SessionRecord } from '../store/port.ts';
import { claimedCall, placeOfClaim } from './claimed-call.ts';
import { parseResult } from './read-result.ts';
import { claimEnds, settle } from './settle.ts';
import { outcomeOf } from './step-facts.ts';

/** What recovery, or a person, says of a claim that nobody is at work on. */
export interface SettledByHand {
  readonly outcome: CallOutcome;
  /** A code, or a person's reason. */
  readonly why: string;
  /** Name of the approver. */
  readonly by?: string;
}

const MAX_ATTEMPTS = 20;

/**
 * Settles a claim whose call is not on its way: the report in the history, the claim's end with what it holds, what
 * follows for its run, and the audit line, in one commit. Resolves with whether it was stored: not where somebody else
 * took the claim or settled it. Throws `StoreFault`.
 */
export async function settleClaim(gateway: Gateway, claim: ClaimRecord, settled: SettledByHand): Promise<boolean> {
  const tool = gateway.loaded.catalogue.tools.get(claim.tool);
  const session = await gateway.store.findSessionById(claim.sid);
  if (session === undefined) return (await gateway.commit(claimEnds(gateway, claim, settled))).ok;
  if (tool === undefined) return settleLost(gateway, claim, session, settled);
  return settle(gateway, claimedCall(gateway, claim, tool, session), { upstreamMs: 0, ...settled, ...keptBody(claim) });
}

/** The same for a call whose tool the catalogue has lost: nothing of it counts for rules any more. */
function settleLost(
  gateway: Gateway,
  claim: ClaimRecord,
  row: SessionRecord,
  settled: SettledByHand,
): Promise<boolean> {
  const { outcome, why, by } = settled;
  const { key, step, run, undoes } = placeOfClaim(gateway, claim, row);
  const of = { ...(run === undefined ? {} : { run }), ...(undoes === undefined ? {} : { undoes }) };
  return gateway.sessions.inLine(key, async () => {
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      const session = await gateway.sessions.find(key);
      if (session === undefined) return false;
      const [known] = await gateway.store.findSteps(claim.sid, [step]);
      const said = outcomeOf(known?.outcome);
      const quiet = said !== undefined && !mayFollow(said, outcome);
      const own: StepReport = { step, tool: undefined, before: said, after: outcome, believed: true, quiet, ...of };
      const effects = await effectsOf(gateway, session, { step, tool: undefined, outcome, late: true, ...of });
      const change = applyReports(session, [own, ...effects.reports], effects.alsoChange);
      const line = gateway.audit.prepare({
        event: 'outcome',
        ...(by === undefined ? { by: 'gateway' } : { by: 'approver', approver: by }),
        outcome,
        why,
        tool: claim.tool,
        agent: claim.agent,
        caller: claim.caller,
        session: key.session,
        step,
        ...of,
      });
      const lines = [...effects.lines, line];
      const operations: readonly Operation[] = [
        ...change.operations,
        ...claimEnds(gateway, claim, settled),
        ...effects.operations,
        ...lines.map(({ n, line: text }) => ({ op: 'outbox', replica: gateway.audit.replica, n, line: text }) as const),
      ];
      const result = await gateway.commit(operations);
      if (result.ok) {
        gateway.sessions.keep(change.record, session);
        gateway.undoWork.ring();
        for (const stored of lines) await gateway.audit.write(stored);
        return true;
      }
      for (const unwritten of lines) gateway.audit.abandon(unwritten);
      if (result.conflict === 'claim_fenced') return false;
      gateway.sessions.forget(key);
    }
    throw new Error(`the outcome of step ${step} of ${key.session} could not be stored for other calls`);
  });
}

/** What the backend said when the call was made counts as its answer once it is known that the call ran. */
function keptBody({ answer }: ClaimRecord): { readonly body?: Uint8Array; readonly contentType?: string } {
  if (answer?.kind !== 'kept' || answer.status >= 400) return {};
  const { body, contentType } = answer;
  return contentType === undefined ? { body } : { body, contentType };
}

/** The answer that the backend gave when the call was made, where it was kept and is JSON. */
export function answerOf(claim: ClaimRecord): JsonValue | undefined {
  return claim.answer?.kind === 'kept' ? parseResult(claim.answer.body, claim.answer.contentType) : undefined;
}

/** The arguments of a claimed call; none where they are no longer kept. */
export function argumentsOf(claim: ClaimRecord): JsonObject {
  const value = claim.request === undefined ? {} : parseJson(claim.request);
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as JsonObject;
  throw new Error('arguments in the store are no object');
}
