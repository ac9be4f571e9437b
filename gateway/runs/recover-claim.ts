import { isResendSafe } from '../enforce/claims.ts';
import { isStillWanted } from '../enforce/repeat.ts';
import { resend } from '../enforce/resend.ts';
import { settleClaim } from '../enforce/settle-claim.ts';
import type { Gateway } from '../gateway.ts';
import type { ClaimRecord } from '../store/port.ts';

/**
 * Ends a claim whose owner has gone (docs/execution.md, "After a crash"). What was not sent is let go. What may have been
 * sent goes again with the same key where that does no more than the first send; else nobody knows, and a person is asked.
 * Never rejects: what cannot be done now is tried again once the lease has lapsed.
 */
export async function recoverClaim(gateway: Gateway, claim: ClaimRecord): Promise<void> {
  const { log } = gateway;
  const names = { tool: claim.tool, sid: claim.sid, step: claim.step, state: claim.state };
  try {
    if (claim.runBy === 'host') {
      await settleClaim(gateway, claim, { outcome: 'outcome_unknown', why: 'not_reported' });
      return;
    }
    if (claim.state === 'claimed') {
      await settleClaim(gateway, claim, { outcome: 'failed', why: 'owner_gone' });
      log.warn(names, 'a call was let go: whoever was to send it has gone before it did');
      return;
    }
    const tool = gateway.loaded.catalogue.tools.get(claim.tool);
    if (tool !== undefined && isResendSafe(tool) && (await isStillWanted(gateway, claim))) {
      const outcome = await resend(gateway, claim);
      log.warn({ ...names, outcome }, 'a call whose sender has gone was sent again with the same key');
      if (outcome !== 'unsafe') return;
    }
    await settleClaim(gateway, claim, { outcome: 'outcome_unknown', why: 'owner_gone' });
    log.warn(names, 'it is not known whether a call was done: whoever sent it has gone');
  } catch (error) {
    log.error({ err: error, ...names }, 'a claim whose owner has gone is still open; it is tried again');
  }
}
