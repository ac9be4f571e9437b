import { Readable } from 'node:stream';
import type { CallOutcome, EnforceAnswer } from '../exchange.ts';
import type { Gateway } from '../gateway.ts';
import type { ClaimRecord } from '../store/port.ts';
import type { Allowed } from './allowed.ts';
import { claimedCall, type Resent } from './claimed-call.ts';
import { isResendSafe } from './claims.ts';
import { forward } from './forward.ts';

/** Why a call was not sent again: it might do more than the first send did, or somebody else has its claim by now. */
export type NotResent = { readonly kind: 'unsafe' } | { readonly kind: 'moved' };

/**
 * Sends a claimed call again, under the same claim and with the same key, where that can do no more than the first send
 * did. Nothing is sent where it could, or where the claim is somebody else's by now.
 */
export async function resend(gateway: Gateway, claim: ClaimRecord): Promise<CallOutcome | 'unsafe' | 'moved'> {
  const sent = await resendCall(gateway, claim);
  if (sent.kind === 'unsafe' || sent.kind === 'moved') return sent.kind;
  if (sent.kind !== 'forwarded') return 'outcome_unknown';
  drain(sent);
  return sent.outcome;
}

/** As `resend`, with the backend's answer, for the request that repeats the call. */
export async function resendCall(
  gateway: Gateway,
  claim: ClaimRecord,
  resent?: Resent,
): Promise<EnforceAnswer | NotResent> {
  const tool = gateway.loaded.catalogue.tools.get(claim.tool);
  const session = await gateway.store.findSessionById(claim.sid);
  if (tool === undefined || session === undefined || claim.request === undefined || !isResendSafe(tool)) {
    return { kind: 'unsafe' };
  }
  const { link, fence } = claim;
  const atMs = gateway.now();
  const taken = { owner: gateway.replica, leaseUntilMs: atMs + gateway.leaseMs, atMs } as const;
  gateway.flights.begin(link);
  try {
    const result = await gateway.commit([{ op: 'retake_claim', link, fence, from: [claim.state], ...taken }]);
    if (!result.ok) {
      gateway.flights.end(link);
      return { kind: 'moved' };
    }
  } catch (error) {
    gateway.flights.end(link);
    throw error;
  }
  const { settledAtMs: _settled, why: _why, ...open } = claim;
  const retaken: ClaimRecord = {
    ...open,
    state: 'sending',
    fence: fence + 1,
    owner: gateway.replica,
    runBy: 'gateway',
  };
  const allowed: Allowed = claimedCall(gateway, retaken, tool, session, resent);
  return forward(gateway, allowed);
}

/** Reads a streamed answer to its end where nobody else does: only then is its outcome known. */
export function drain({ answer }: Extract<EnforceAnswer, { readonly kind: 'forwarded' }>): void {
  if (answer.kind === 'answer' && answer.body instanceof Readable) answer.body.resume();
}
