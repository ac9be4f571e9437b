import type { JsonObject } from '../../receipts/json-value.ts';
import { fault } from '../http/problems.ts';
import { endRun } from '../runs/end-run.ts';
import { failRun } from '../runs/fail-run.ts';
import { renderRun } from '../runs/run-report.ts';
import { settleUndo, UNDO_SETTLEMENTS, type UndoSettlement } from '../runs/settle-undo.ts';
import type { RunRecord, RunState, SessionRecord } from '../store/port.ts';
import {
  type ApiBindings,
  ApiProblem,
  badMember,
  identify,
  jsonAnswer,
  refuseUnknown,
  requireApprover,
  requireObject,
  requireStep,
  requireText,
} from './api-context.ts';

const MOST_LISTED = 500;
const STATES: readonly RunState[] = ['open', 'failed', 'undoing', 'compensated', 'needs_person', 'ended'];

/** `GET /v1/runs?state=needs_person`: an approver's view of every run of a state; a caller sees its own. */
export async function getRuns(env: ApiBindings): Promise<Response> {
  const identity = identify(env);
  const asked = new URLSearchParams(env.exchange.query).get('state') ?? 'needs_person';
  const state = STATES.find((known) => known === asked);
  if (state === undefined) throw badMember('state', `must be one of ${STATES.join(', ')}`);
  const runs = await env.gateway.store.listRuns([state], MOST_LISTED);
  const seen = identity.kind === 'approver' ? runs : runs.filter(({ caller }) => caller === identity.caller.name);
  return jsonAnswer({
    runs: seen.map(({ run, caller, agent, state: now, why, updatedAtMs }) => ({
      run,
      caller,
      agent,
      state: now,
      ...(why === undefined ? {} : { why }),
      updated: updatedAtMs,
    })),
  });
}

/** `GET /v1/runs/{id}`: how a run stands, step by step, and what is undone of it. */
export async function getRun(env: ApiBindings, id: string): Promise<Response> {
  const found = await findRun(env, id, {});
  return jsonAnswer(await renderRun(env.gateway, found.run, found.session));
}

/** `POST /v1/runs/{id}/undo`: the run fails, and what it wrote is undone. One that is being undone, or was, stays as it is. */
export async function postUndo(env: ApiBindings, id: string): Promise<Response> {
  const { run, session } = await findRun(env, id, await readBody(env));
  if (run.state === 'ended') throw new ApiProblem(fault('conflict', 'the run has ended, and an ended run stays done'));
  if (run.state === 'open') await failRun(env.gateway, session, id, 'asked_for');
  return answerNow(env, run, session);
}

/** `POST /v1/runs/{id}/end`: the run is over, and nothing of it is undone any more. */
export async function postEnd(env: ApiBindings, id: string): Promise<Response> {
  const { run, session } = await findRun(env, id, await readBody(env));
  if (run.state === 'open') await endRun(env.gateway, session, id);
  else if (run.state !== 'ended') throw new ApiProblem(fault('conflict', 'the run has failed; it cannot end any more'));
  return answerNow(env, run, session);
}

/** `POST /v1/runs/{id}/settle`: an approver says of an undo that needs a person what is to become of it. */
export async function postSettleUndo(env: ApiBindings, id: string): Promise<Response> {
  const approver = requireApprover(env);
  const body = await requireObject(env);
  refuseUnknown(body, ['caller', 'step', 'as', 'reason']);
  const as = requireText(body, 'as');
  if (!isSettlement(as)) throw badMember('as', `must be one of ${UNDO_SETTLEMENTS.join(', ')}`);
  const { run, session } = await findRun(env, id, { caller: requireText(body, 'caller') });
  const said = {
    step: requireStep(body, 'step'),
    as,
    reason: requireText(body, 'reason').slice(0, MAX_REASON),
    approver,
  };
  const settled = await settleUndo(env.gateway, run, session, said);
  if (!settled) throw new ApiProblem(fault('conflict', 'no undo of that step waits for a person now'));
  return answerNow(env, run, session);
}

const MAX_REASON = 500;

function isSettlement(text: string): text is UndoSettlement {
  return UNDO_SETTLEMENTS.some((known) => known === text);
}

interface Asked {
  readonly session?: string;
  /** Whose run, where an approver asks. */
  readonly caller?: string;
}

async function readBody(env: ApiBindings): Promise<Asked> {
  if (!env.exchange.hasBody) return {};
  const body = await requireObject(env);
  refuseUnknown(body, ['session', 'caller']);
  const text = (name: string): JsonObject => (Object.hasOwn(body, name) ? { [name]: requireText(body, name) } : {});
  return { ...text('session'), ...text('caller') };
}

/** The run of this caller; an approver names the caller. Another caller's is not there, and one lives in one session. */
async function findRun(
  env: ApiBindings,
  id: string,
  asked: Asked,
): Promise<{ readonly run: RunRecord; readonly session: SessionRecord }> {
  const identity = identify(env);
  const query = new URLSearchParams(env.exchange.query);
  const named = asked.caller ?? query.get('caller') ?? undefined;
  const caller = identity.kind === 'caller' ? identity.caller.name : named;
  if (caller === undefined) throw badMember('caller', 'must say whose run it is, where an approver asks');
  const run = await env.gateway.store.findRun(caller, id);
  const session = run === undefined ? undefined : await env.gateway.store.findSessionById(run.sid);
  if (run === undefined || session === undefined || (named !== undefined && named !== caller)) {
    throw new ApiProblem(fault('not_found', 'this caller has no run of that name'));
  }
  const within = asked.session ?? query.get('session') ?? undefined;
  if (within !== undefined && within !== session.session) {
    throw new ApiProblem(fault('run_foreign', 'the run lives in another session of the same credential'));
  }
  return { run, session };
}

async function answerNow(env: ApiBindings, { caller, run }: RunRecord, session: SessionRecord): Promise<Response> {
  const now = await env.gateway.store.findRun(caller, run);
  if (now === undefined) throw new ApiProblem(fault('not_found', 'the run is no longer kept'));
  return jsonAnswer(await renderRun(env.gateway, now, session));
}
