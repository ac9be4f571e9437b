import type { JsonObject } from '../../receipts/json-value.ts';
import { settleClaim } from '../enforce/settle-claim.ts';
import type { Gateway } from '../gateway.ts';
import { fault } from '../http/problems.ts';
import type { ClaimRecord, ClaimState } from '../store/port.ts';
import {
  type ApiBindings,
  ApiProblem,
  badMember,
  jsonAnswer,
  refuseUnknown,
  requireApprover,
  requireObject,
  requireText,
} from './api-context.ts';

const MOST_LISTED = 500;
const MAX_REASON = 500;
const STATES: readonly ClaimState[] = ['outcome_unknown', 'claimed', 'sending', 'failed', 'ran'];

/** `GET /v1/outcomes?state=outcome_unknown`: calls in a state, oldest first. For approvers. */
export async function getOutcomes(env: ApiBindings): Promise<Response> {
  requireApprover(env);
  const asked = new URLSearchParams(env.exchange.query).get('state') ?? 'outcome_unknown';
  const state = STATES.find((known) => known === asked);
  if (state === undefined) throw badMember('state', `must be one of ${STATES.join(', ')}`);
  const claims = await env.gateway.store.listClaims(state, MOST_LISTED);
  return jsonAnswer({ outcomes: await Promise.all(claims.map((claim) => renderClaim(env.gateway, claim))) });
}

/** `POST /v1/outcomes/{id}/settle` with `{outcome: ran | failed, reason}`: a person found out. For approvers. */
export async function postSettlement(env: ApiBindings, id: string): Promise<Response> {
  const approver = requireApprover(env);
  const body = await requireObject(env);
  refuseUnknown(body, ['outcome', 'reason']);
  const outcome = requireText(body, 'outcome');
  if (outcome !== 'ran' && outcome !== 'failed') throw badMember('outcome', 'must be ran or failed');
  const reason = requireText(body, 'reason');
  if (reason.length > MAX_REASON) throw badMember('reason', `must have at most ${MAX_REASON} characters`);
  const { gateway } = env;
  const claim = await gateway.store.findClaim({ link: id });
  if (claim === undefined) throw new ApiProblem(fault('not_found', 'there is no call of that id'));
  if (claim.state !== 'outcome_unknown') throw new ApiProblem(settledBefore(claim));
  const { tool, agent, caller, step, run } = claim;
  await gateway.audit.append({
    event: 'approval',
    act: 'settle',
    approver,
    outcome,
    tool,
    agent,
    caller,
    step,
    ...(run === undefined ? {} : { run }),
  });
  const settled = await settleClaim(gateway, claim, { outcome, why: reason, by: approver });
  if (!settled) throw new ApiProblem(settledBefore(await gateway.store.findClaim({ link: id })));
  return jsonAnswer({ id, outcome, approver });
}

function settledBefore(claim: ClaimRecord | undefined): ReturnType<typeof fault> {
  const now = claim === undefined ? 'gone' : `\`${claim.state}\``;
  return fault('conflict', `the outcome of the call is not unknown; it is ${now}`);
}

async function renderClaim(gateway: Gateway, claim: ClaimRecord): Promise<JsonObject> {
  const session = await gateway.store.findSessionById(claim.sid);
  const { run, undoes, why, settledAtMs, upstreamKey } = claim;
  return {
    id: claim.link,
    state: claim.state,
    tool: claim.tool,
    agent: claim.agent,
    caller: claim.caller,
    ...(session === undefined ? {} : { session: session.session }),
    step: claim.step,
    run_by: claim.runBy,
    created: claim.createdAtMs,
    ...(run === undefined ? {} : { run }),
    ...(undoes === undefined ? {} : { undoes }),
    ...(why === undefined ? {} : { why }),
    ...(settledAtMs === undefined ? {} : { settled: settledAtMs }),
    ...(upstreamKey === undefined ? {} : { idempotency_key: upstreamKey }),
  };
}
