import { runOf } from '../../policy/session.ts';
import type { Tool } from '../../policy/tool.ts';
import { callFingerprint } from '../../receipts/digest.ts';
import type { EnforceAnswer } from '../exchange.ts';
import type { Gateway } from '../gateway.ts';
import type { ClaimRecord } from '../store/port.ts';
import { isResendSafe, replayClaim, scopeKeyOf } from './claims.ts';
import { KEY_IN_FLIGHT, KEY_MISSING, KEY_REUSED } from './problems.ts';
import type { ReadCall } from './read-call.ts';
import { resendCall } from './resend.ts';

/**
 * What a request gets that repeats an idempotency key: the first call's answer, or why there is none. One whose outcome is
 * unknown is sent again under its own claim where that is safe (and `sendsAgain`). `undefined` where the key is new, at once where there is none. Stands after rows 1 and
 * 3 and before any decision, so that a repeat appends nothing and asks nobody.
 */
export function answerRepeat(
  gateway: Gateway,
  read: ReadCall,
  sendsAgain = true,
): Promise<EnforceAnswer | undefined> | undefined {
  const { tool } = read;
  if (tool === undefined || read.request.purpose !== 'forward') return undefined;
  const scopeKey = scopeKeyOf(gateway, read);
  const missing =
    scopeKey === undefined && read.loaded.idempotencyRequired.has(tool.id) && read.request.via !== 'engine';
  return scopeKey === undefined && !missing ? undefined : answerKeyed(gateway, read, tool, scopeKey, sendsAgain);
}

async function answerKeyed(
  gateway: Gateway,
  read: ReadCall,
  tool: Tool,
  scopeKey: string | undefined,
  sendsAgain: boolean,
): Promise<EnforceAnswer | undefined> {
  if (read.call.faults.length > 0 || tool.input.validate(read.call.arguments).length > 0) return undefined;
  if (scopeKey === undefined) return { kind: 'problem', problem: KEY_MISSING };
  const claim = await gateway.store.findClaim({ scopeKey });
  if (claim === undefined) return undefined;
  if (claim.fingerprint !== callFingerprint(gateway.crypto, tool.id, read.canonical)) {
    return { kind: 'problem', problem: KEY_REUSED };
  }
  if (sendsAgain && claim.state === 'outcome_unknown' && isResendSafe(tool) && (await isStillWanted(gateway, claim))) {
    const answer = await resendCall(gateway, claim, read.request);
    if (answer.kind === 'moved') return { kind: 'problem', problem: KEY_IN_FLIGHT };
    if (answer.kind !== 'unsafe') return answer;
  }
  return replayClaim(gateway, read, claim);
}

/** A write of a run that ended is not done again: its undo may have been. */
export async function isStillWanted(gateway: Gateway, claim: ClaimRecord): Promise<boolean> {
  if (claim.run === undefined || claim.undoes !== undefined || !claim.writes) return true;
  const session = await gateway.store.findSessionById(claim.sid);
  return session !== undefined && runOf(session.view, claim.run)?.ended !== true;
}
