import { parseJson } from '../../receipts/json.ts';
import type { JsonObject } from '../../receipts/json-value.ts';
import { toConfirmation } from '../enforce/confirmations.ts';
import { decideConfirmation } from '../enforce/decide-confirmation.ts';
import { fault } from '../http/problems.ts';
import type { ConfirmationRecord, ConfirmationState } from '../store/port.ts';
import {
  type ApiBindings,
  ApiProblem,
  badMember,
  jsonAnswer,
  refuseUnknown,
  requireApprover,
  requireObject,
} from './api-context.ts';

const MOST_LISTED = 500;
const STATES: ReadonlySet<string> = new Set<ConfirmationState>(['pending', 'approved', 'denied', 'spent']);

/** `GET /v1/confirmations?state=pending`: what waits for a person, newest last, or what was decided, newest first. For approvers. */
export async function getConfirmations(env: ApiBindings): Promise<Response> {
  requireApprover(env);
  const state = new URLSearchParams(env.exchange.query).get('state') ?? 'pending';
  if (!isState(state)) throw badMember('state', 'must be pending, approved, denied or spent');
  const records = await env.gateway.store.listConfirmations(state, env.gateway.now(), MOST_LISTED);
  return jsonAnswer({ confirmations: records.map(renderRecord) });
}

/** `GET /v1/confirmations/{id}`: one confirmation, with what a person must see. For approvers. */
export async function getConfirmation(env: ApiBindings, id: string): Promise<Response> {
  requireApprover(env);
  const record = await env.gateway.store.findConfirmation(id);
  if (record?.mode !== 'held') throw new ApiProblem(fault('not_found', 'there is no confirmation of that id'));
  return jsonAnswer(renderRecord(record));
}

/** `POST /v1/confirmations/{id}/approve` and `/deny`, with an optional `note`. For approvers, who are never the agent. */
export async function postDecision(env: ApiBindings, id: string, to: 'approved' | 'denied'): Promise<Response> {
  const approver = requireApprover(env);
  const note = await readNote(env);
  const { gateway } = env;
  const record = await gateway.store.findConfirmation(id);
  if (record?.mode !== 'held') {
    throw new ApiProblem(fault('not_found', 'there is no confirmation of that id to decide'));
  }
  const now = gateway.now();
  if (record.expiresMs <= now)
    throw new ApiProblem(fault('conflict', 'the confirmation has expired; the call must be made again'));
  const decision = { to, approver, atMs: now, ...(note === undefined ? {} : { note }) };
  if (!(await decideConfirmation(gateway, record, decision)))
    throw new ApiProblem(fault('conflict', 'the confirmation was decided before'));
  return jsonAnswer({ id, state: to, approver });
}

async function readNote(env: ApiBindings): Promise<string | undefined> {
  if (!env.exchange.hasBody) return undefined;
  const body = await requireObject(env);
  refuseUnknown(body, ['note']);
  const note = Object.hasOwn(body, 'note') ? body['note'] : undefined;
  if (note !== undefined && (typeof note !== 'string' || note.length > 2000)) {
    throw badMember('note', 'must be a text of at most 2,000 characters');
  }
  return note;
}

function renderRecord(record: ConfirmationRecord): JsonObject {
  const { run, undoes } = toConfirmation(record).asked;
  return {
    id: record.id,
    state: record.state,
    tool: record.tool,
    agent: record.agent,
    caller: record.caller,
    session: record.session,
    step: record.step,
    expires: record.expiresMs,
    created: record.createdAtMs,
    ...(run === undefined ? {} : { run }),
    ...(undoes === undefined ? {} : { undoes }),
    ...(record.decidedAtMs === undefined ? {} : { decided: record.decidedAtMs }),
    ...(record.approver === undefined ? {} : { approver: record.approver }),
    ...(record.note === undefined ? {} : { note: record.note }),
    shown: parseJson(record.display),
  };
}

function isState(text: string): text is ConfirmationState {
  return STATES.has(text);
}
