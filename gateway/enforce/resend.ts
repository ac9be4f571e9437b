import { Readable } from 'node:stream';
import { canonicalize } from '../../receipts/canonical.ts';
import { parseJson } from '../../receipts/json.ts';
import type { JsonObject, JsonValue } from '../../receipts/json-value.ts';
import type { CallOutcome, EnforceAnswer, EnforceRequest } from '../exchange.ts';
import type { Gateway } from '../gateway.ts';
import type { ClaimRecord } from '../store/port.ts';
import type { Allowed } from './allowed.ts';
import { isResendSafe, LEASE_MS } from './claims.ts';
import { forward } from './forward.ts';
import { type ReadCall, readCall } from './read-call.ts';

/**
 * Sends a claimed call again, under the same claim and with the same key, where that can do no more than the first send
 * did. `unsafe` where it could, or where the claim is somebody else's by now; nothing is sent then.
 */
export async function resend(gateway: Gateway, claim: ClaimRecord): Promise<CallOutcome | 'unsafe'> {
  const sent = await resendCall(gateway, claim);
  if (sent === 'unsafe' || sent.kind !== 'forwarded') return 'unsafe';
  if (sent.answer.kind === 'answer' && sent.answer.body instanceof Readable) sent.answer.body.resume();
  return sent.outcome;
}

/** As `resend`, with the backend's answer. */
export async function resendCall(gateway: Gateway, claim: ClaimRecord): Promise<EnforceAnswer | 'unsafe'> {
  const allowed = await retake(gateway, claim);
  return allowed === undefined ? 'unsafe' : forward(gateway, allowed);
}

async function retake(gateway: Gateway, claim: ClaimRecord): Promise<Allowed | undefined> {
  const { loaded } = gateway;
  const tool = loaded.catalogue.tools.get(claim.tool);
  const session = await gateway.store.findSessionById(claim.sid);
  if (tool === undefined || session === undefined || claim.request === undefined || !isResendSafe(tool))
    return undefined;
  const now = gateway.now();
  const taken = { owner: gateway.replica, leaseUntilMs: now + LEASE_MS, atMs: now } as const;
  const from = [claim.state];
  const result = await gateway.commit([{ op: 'retake_claim', link: claim.link, fence: claim.fence, from, ...taken }]);
  if (!result.ok) return undefined;
  const { run, undoes, link, step, agent, sid } = claim;
  return {
    kind: 'allowed',
    read: readAgain(gateway, claim, session.session),
    tool,
    place: {
      key: { issuer: session.issuer, caller: session.caller, session: session.session },
      sid,
      step,
      link,
      agent,
      own: session.issuer === loaded.issuer,
      ...(run === undefined ? {} : { run }),
      ...(undoes === undefined ? {} : { undoes }),
    },
    claim: { ...claim, state: 'sending', fence: claim.fence + 1, owner: gateway.replica },
    unwaited: false,
  };
}

/** The call of a claim, read again from what the claim kept of it. */
function readAgain(gateway: Gateway, claim: ClaimRecord, session: string): ReadCall {
  const args = parseJson(claim.request ?? '{}');
  const request: EnforceRequest = {
    caller: { name: claim.caller, host: true, agents: new Set([claim.agent]) },
    tool: claim.tool,
    arguments: asObject(args),
    members: { session, agent: claim.agent, origins: {}, turns: [], labels: {}, context: {} },
    byReceipt: true,
    purpose: 'forward',
    via: 'engine',
    wantEntry: false,
    passedHeaders: [],
  };
  return { ...readCall(gateway.loaded, request), canonical: canonicalize(args) };
}

function asObject(value: JsonValue): JsonObject {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as JsonObject;
  throw new Error('a claim keeps arguments that are no object');
}
