import type { Tool } from '../../policy/tool.ts';
import { canonicalize } from '../../receipts/canonical.ts';
import { callFingerprint } from '../../receipts/digest.ts';
import type { EnforceAnswer } from '../exchange.ts';
import type { Gateway } from '../gateway.ts';
import type { ClaimRecord } from '../store/port.ts';
import type { Place } from './allowed.ts';
import { ANSWER_NOT_KEPT, KEY_IN_FLIGHT, OUTCOME_PENDING } from './problems.ts';
import type { ReadCall } from './read-call.ts';

/** What a repeated call gets without being decided again. */
export type Repeat = Extract<EnforceAnswer, { kind: 'problem' | 'replayed' }>;

/** Whether sending the call twice does no more than sending it once. */
export function isResendSafe(tool: Tool): boolean {
  return !tool.writes || tool.idempotent || tool.idempotency !== undefined;
}

/** The key sent upstream: nobody can guess another caller's (docs/security-model.md, "Idempotency at the backend"). */
function upstreamKeyOf(gateway: Gateway, read: ReadCall, tool: Tool, { agent, link }: Place): string {
  const { tenant } = read.loaded;
  const own = read.request.members.idempotencyKey ?? link;
  return gateway.keyed(canonicalize([tenant, read.request.caller.name, agent, tool.id, own]));
}

/** The key of an undo, the same at every try: from the step that it undoes, and which undo of it this is. */
function undoKeyOf(gateway: Gateway, read: ReadCall, tool: Tool, agent: string, undoneLink: string): string {
  const { tenant } = read.loaded;
  const round = read.request.undoRound ?? 1;
  const named = [tenant, read.request.caller.name, agent, tool.id, undoneLink, round === 1 ? 'undo' : `undo/${round}`];
  return gateway.keyed(canonicalize(named));
}

/** What a client's own key is unique in: tenant, caller and agent. */
export function scopeKeyOf(gateway: Gateway, read: ReadCall): string | undefined {
  const key = read.request.members.idempotencyKey;
  if (key === undefined) return undefined;
  return gateway.keyed(canonicalize(['scope', read.loaded.tenant, read.request.caller.name, read.agent, key]));
}

/**
 * The one claim of an allowed entry. What its caller runs itself is claimed too, by nobody's process: so that it is run
 * once whichever way it comes, and is listed where its caller never says what became of it.
 */
export function makeClaim(
  gateway: Gateway,
  read: ReadCall,
  tool: Tool,
  place: Place,
  undoneLink?: string,
): ClaimRecord {
  const made = makeOwnClaim(gateway, read, tool, place, undoneLink);
  if (read.request.purpose === 'forward') return made;
  const { scopeKey: _scopeKey, request: _request, ...rest } = made;
  const leaseUntilMs = made.createdAtMs + read.loaded.runs.idleMs;
  return { ...rest, runBy: 'host', state: 'sending', owner: HOST_OWNER, leaseUntilMs };
}

/** Owner of the claims of calls that their callers run. No replica has this name. */
const HOST_OWNER = 'caller';

function makeOwnClaim(
  gateway: Gateway,
  read: ReadCall,
  tool: Tool,
  place: Place,
  undoneLink: string | undefined,
): ClaimRecord {
  const { run, undoes } = place;
  const now = gateway.now();
  const scopeKey = scopeKeyOf(gateway, read);
  return {
    link: place.link,
    fingerprint: callFingerprint(gateway.crypto, tool.id, read.canonical),
    sid: place.sid,
    step: place.step,
    tool: tool.id,
    caller: read.request.caller.name,
    agent: place.agent,
    writes: tool.writes,
    runBy: read.request.purpose === 'forward' ? 'gateway' : 'host',
    // What may safely be sent twice needs no second commit between the claim and the sending.
    state: isResendSafe(tool) ? 'sending' : 'claimed',
    upstreamKey:
      undoneLink === undefined
        ? upstreamKeyOf(gateway, read, tool, place)
        : undoKeyOf(gateway, read, tool, place.agent, undoneLink),
    request: read.canonical,
    owner: gateway.replica,
    fence: 1,
    leaseUntilMs: now + gateway.leaseMs,
    createdAtMs: now,
    ...(scopeKey === undefined ? {} : { scopeKey }),
    ...(run === undefined ? {} : { run }),
    ...(undoes === undefined ? {} : { undoes }),
  };
}

/** What the claim of an earlier send gives a repeat of it. */
export async function replayClaim(gateway: Gateway, read: ReadCall, claim: ClaimRecord): Promise<Repeat> {
  if (claim.state === 'claimed' || claim.state === 'sending') return { kind: 'problem', problem: KEY_IN_FLIGHT };
  if (claim.state === 'outcome_unknown') return { kind: 'problem', problem: OUTCOME_PENDING };
  if (claim.answer === undefined || claim.answer.kind === 'tombstone') {
    return { kind: 'problem', problem: ANSWER_NOT_KEPT };
  }
  const session = (await gateway.store.findSessionById(claim.sid))?.session ?? '';
  await gateway.audit.append({
    event: 'decision',
    via: read.request.via,
    decision: 'allow',
    reasons: ['allow'],
    replayed: true,
    policy: read.loaded.policy,
    latency: {},
    tool: claim.tool,
    agent: claim.agent,
    caller: claim.caller,
    session,
    step: claim.step,
  });
  return {
    kind: 'replayed',
    answer: claim.answer,
    outcome: claim.state,
    session,
    step: claim.step,
    ...(claim.upstreamKey === undefined ? {} : { upstreamKey: claim.upstreamKey }),
  };
}
