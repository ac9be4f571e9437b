import type { Tool } from '../../policy/tool.ts';
import { canonicalize } from '../../receipts/canonical.ts';
import { parseJson } from '../../receipts/json.ts';
import { isObject, type JsonObject, type JsonValue } from '../../receipts/json-value.ts';
import type { EnforceRequest } from '../exchange.ts';
import type { Gateway } from '../gateway.ts';
import type { ClaimRecord, SessionRecord } from '../store/port.ts';
import type { Allowed, Place } from './allowed.ts';
import { type ReadCall, readCall } from './read-call.ts';

/** What of a repeat's own request goes with a call that is sent again. */
export type Resent = Pick<EnforceRequest, 'passedHeaders' | 'traceparent' | 'span' | 'gone' | 'via' | 'route'>;

const NOTHING_RESENT: Resent = { passedHeaders: [], via: 'engine' };

/** A call as its claim keeps it: for what is settled or sent again after whoever made it has gone. */
export function claimedCall(
  gateway: Gateway,
  claim: ClaimRecord,
  tool: Tool,
  session: SessionRecord,
  resent: Resent = NOTHING_RESENT,
): Allowed {
  return {
    kind: 'allowed',
    read: readAgain(gateway, claim, session.session, resent),
    tool,
    place: placeOfClaim(gateway, claim, session),
    claim,
    again: true,
  };
}

export function placeOfClaim(gateway: Gateway, claim: ClaimRecord, session: SessionRecord): Place {
  const { run, undoes, link, step, agent, sid } = claim;
  return {
    key: { issuer: session.issuer, caller: session.caller, session: session.session },
    sid,
    step,
    link,
    agent,
    own: session.issuer === gateway.loaded.issuer,
    ...(run === undefined ? {} : { run }),
    ...(undoes === undefined ? {} : { undoes }),
  };
}

/** The call of a claim, read again from what the claim kept of it. */
function readAgain(gateway: Gateway, claim: ClaimRecord, session: string, resent: Resent): ReadCall {
  const args = parseJson(claim.request ?? '{}');
  const request: EnforceRequest = {
    caller: { name: claim.caller, host: true, agents: new Set([claim.agent]) },
    tool: claim.tool,
    arguments: asObject(args),
    members: { session, agent: claim.agent, origins: {}, turns: [], labels: {}, context: {} },
    byReceipt: true,
    purpose: 'forward',
    wantEntry: false,
    ...resent,
  };
  return { ...readCall(gateway.loaded, request), canonical: canonicalize(args) };
}

function asObject(value: JsonValue): JsonObject {
  if (isObject(value)) return value;
  throw new Error('a claim keeps arguments that are no object');
}
