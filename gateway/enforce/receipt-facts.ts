import { encodeBase64url } from '../../receipts/base64url.ts';
import type { ReceiptClaim, ReceiptFacts, VerifiedReceipt } from '../../receipts/receipt.ts';
import type { Gateway } from '../gateway.ts';
import type { Session } from '../sessions.ts';
import type { ClaimRecord, StepRecord } from '../store/port.ts';
import { isResendSafe } from './claims.ts';
import type { ReadCall } from './read-call.ts';

/** How many steps of an issuer's history are compared with what was admitted of it before. */
const COMPARED_STEPS = 256;

interface Found {
  readonly session: Session | undefined;
  /** The claim under the receipt's link. */
  readonly claim: ClaimRecord | undefined;
  /** The receipt is of this gateway's own history. */
  readonly own: boolean;
}

/** What only the store knows of a receipt that has verified, and the link of the step that its call undoes. */
export async function readReceiptFacts(
  gateway: Gateway,
  read: ReadCall,
  receipt: VerifiedReceipt,
  { session, claim, own }: Found,
): Promise<{ readonly facts: ReceiptFacts; readonly undoneLink: string | undefined }> {
  const { entry, verified } = receipt;
  const { step, undoes } = entry;
  const { issuer, session: name, entries, prev } = verified.history;
  const { tool, loaded, request } = read;
  const caller = request.caller.name;
  const knownLinks = new Map<number, string>();
  const isWhole = !own && prev === undefined && entries.length > 1;
  const admitted = await gateway.store.findReceipts(
    { issuer, caller, session: name },
    { upTo: step, limit: isWhole ? COMPARED_STEPS : 2 },
  );
  for (const kept of admitted) knownLinks.set(kept.step, kept.link);
  const records = own && session !== undefined ? await ownSteps(gateway, session, step, undoes) : [];
  for (const record of records) {
    // What the call undoes lies further back than what a receipt shows.
    if (record.step >= step - 1) knownLinks.set(record.step, record.link);
  }
  const record = records.find((one) => one.step === step);
  const wasAdmitted = admitted.some((one) => one.step === step && one.link === encodeBase64url(receipt.link));
  // A frozen session has two lines, and no receipt of either is worth anything.
  if (session?.record.frozen !== undefined) knownLinks.set(step, '');
  const facts: ReceiptFacts = {
    foreign: own && session === undefined,
    knownLinks,
    claim: claimState(claim, { caller, record, wasAdmitted, writes: tool?.writes ?? true }),
    resendSafe: tool === undefined || !isResendSafe(tool) ? 'no' : tool.writes ? 'write' : 'read',
    ...(own ? { policy: loaded.policy } : {}),
  };
  return { facts, undoneLink: records.find((one) => one.step === undoes)?.link };
}

function ownSteps(
  gateway: Gateway,
  session: Session,
  step: number,
  undoes: number | undefined,
): Promise<readonly StepRecord[]> {
  const steps = new Set([step, Math.max(step - 1, 0), undoes ?? step]);
  return gateway.store.findSteps(session.record.sid, [...steps]);
}

interface Standing {
  readonly caller: string;
  readonly record: StepRecord | undefined;
  /** The receipt is among those that were admitted. */
  readonly wasAdmitted: boolean;
  readonly writes: boolean;
}

function claimState(claim: ClaimRecord | undefined, standing: Standing): ReceiptClaim {
  const { caller, record, wasAdmitted, writes } = standing;
  const reported = record?.outcome !== undefined;
  if (claim === undefined) {
    // Its caller ran the call itself and said so; of one that the gateway forwarded without a claim nothing is lost by
    // sending it again.
    if (reported && !record.forwarded) return 'spent';
    // Admitted, and what became of it is kept no longer.
    if (wasAdmitted) return writes ? 'spent' : 'settled';
    return 'none';
  }
  // A replay is given only to the credential that made the call: another with the same issuer's receipt comes too late.
  if (claim.caller !== caller) return 'spent';
  if (claim.runBy === 'host' && reported) return 'spent';
  // A host that checked the call, and has said nothing of it and spent no receipt for it since, may have it sent.
  if (claim.runBy === 'host' && !wasAdmitted) return 'none';
  switch (claim.state) {
    case 'claimed':
    case 'sending':
      return 'in_flight';
    case 'outcome_unknown':
      return 'unknown';
    case 'failed':
      return claim.answer === undefined && !reported ? 'not_sent' : 'settled';
    case 'ran':
      return 'settled';
  }
}
