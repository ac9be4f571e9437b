import { isObject, type JsonObject, type JsonValue } from '../../receipts/json-value.ts';
import { headerOf } from '../enforce/outcome-of.ts';
import { ANSWER_NOT_KEPT } from '../enforce/problems.ts';
import { serverOf } from '../enforce/read-call.ts';
import { parseResult } from '../enforce/read-result.ts';
import { enforce } from '../enforce.ts';
import type { CallMembers, EnforceAnswer, EnforceRequest, UpstreamAnswer } from '../exchange.ts';
import { parseIdempotencyKey, readCallHeaders } from '../http/call-headers.ts';
import { CALL_MEMBER_NAMES, parseCallMembers } from '../http/call-members.ts';
import { collectBody, MAX_WHOLE_BYTES } from '../http/collect-body.ts';
import { traceOf } from '../http/trace-context.ts';
import {
  type ApiBindings,
  ApiProblem,
  badMember,
  jsonAnswer,
  requireCaller,
  requireObject,
  requireText,
} from './api-context.ts';

const OWN_MEMBERS = ['tool', 'arguments'];
const KNOWN: ReadonlySet<string> = new Set([...CALL_MEMBER_NAMES, ...OWN_MEMBERS]);

/** `POST /v1/check`: decides, and leaves the running to the caller. */
export async function postCheck(env: ApiBindings): Promise<Response> {
  const answer = await enforce(env.gateway, await readRequest(env, 'decide', []));
  if (answer.kind === 'decided') return jsonAnswer(answer.check);
  return answerOther(answer);
}

/** `POST /v1/call`: decides, forwards once, and answers what became of it. */
export async function postCall(env: ApiBindings): Promise<Response> {
  const answer = await enforce(env.gateway, withProof(env, await readRequest(env, 'forward', [])));
  switch (answer.kind) {
    case 'decided':
      return jsonAnswer({ check: answer.check });
    case 'forwarded': {
      const result = await readAnswer(answer.answer);
      const outcome = await answer.outcome;
      const heldBack = answer.heldBack === undefined ? {} : { held_back: answer.heldBack };
      return jsonAnswer({ ...proofOf(answer), outcome, ...result, ...heldBack });
    }
    case 'replayed': {
      if (answer.answer.kind === 'tombstone') return answerOther(answer);
      const { status, body, contentType } = answer.answer;
      const result = resultOf(body, contentType);
      return jsonAnswer({ ...proofOf(answer), replayed: true, outcome: answer.outcome, status, result });
    }
    default:
      return answerOther(answer);
  }
}

/** `POST /v1/receipts`: whether the history's last entry is a receipt for exactly this call; `spend: true` uses it up. */
export async function postReceipt(env: ApiBindings): Promise<Response> {
  const { spend, ...request } = await readRequest(env, 'decide', ['spend']);
  const answer = await enforce(env.gateway, { ...request, byReceipt: true, ...(spend === undefined ? {} : { spend }) });
  if (answer.kind === 'receipt') return jsonAnswer(answer.receipt);
  return answerOther(answer);
}

/**
 * What proves a forwarded call: on a route that takes receipts, the one that the header or the history brings. A carried
 * history is a receipt where the route takes nothing else; where it takes either, only the header makes it one.
 */
function withProof(env: ApiBindings, request: EnforceRequest): EnforceRequest {
  const headers = readCallHeaders(env.exchange);
  if ('problem' in headers) throw new ApiProblem(headers.problem);
  const { receipt } = headers;
  const server = serverOf(env.gateway.loaded, request);
  const verify = server === undefined ? 'check' : env.gateway.loaded.verifyOf(server);
  if (receipt !== undefined && verify === 'check')
    throw badMember('history', 'is no proof here: this route checks each call itself');
  const byReceipt = verify === 'receipt' || (verify === 'either' && receipt !== undefined);
  return { ...request, byReceipt, ...(receipt === undefined ? {} : { receipt }) };
}

async function readRequest(
  env: ApiBindings,
  purpose: 'decide' | 'forward',
  more: readonly string[],
): Promise<EnforceRequest> {
  const caller = requireCaller(env);
  const body = await requireObject(env);
  const parsed = parseCallMembers(body, more.length === 0 ? KNOWN : new Set([...KNOWN, ...more]));
  if ('problem' in parsed) throw new ApiProblem(parsed.problem);
  const tool = requireText(body, 'tool');
  const args = Object.hasOwn(body, 'arguments') ? body['arguments'] : {};
  if (!isObject(args)) throw badMember('arguments', 'must be an object');
  return {
    caller,
    tool,
    arguments: args,
    members: withKey(env, parsed.members),
    byReceipt: false,
    ...spendOf(body, more),
    purpose,
    via: 'api',
    wantEntry: true,
    gone: () => env.exchange.departure,
    passedHeaders: [],
    ...traceOf(env.exchange),
  };
}

function spendOf(body: JsonObject, more: readonly string[]): { readonly spend?: boolean } {
  const spend = more.includes('spend') && Object.hasOwn(body, 'spend') ? body['spend'] : undefined;
  if (spend === undefined) return {};
  if (typeof spend !== 'boolean') throw badMember('spend', 'must be true or false');
  return { spend };
}

/** `Idempotency-Key` as a header is the member `idempotency_key`; given both ways, it is given twice. */
function withKey(env: ApiBindings, members: CallMembers): CallMembers {
  const header = env.exchange.header('idempotency-key');
  if (header === undefined) return members;
  if (members.idempotencyKey !== undefined) {
    throw badMember('idempotency_key', 'is given twice, in the header Idempotency-Key and in the body');
  }
  const key = parseIdempotencyKey(header);
  if (key === undefined) throw badMember('idempotency_key', 'must have 1 to 255 printable ASCII characters');
  return { ...members, idempotencyKey: key };
}

function proofOf(answer: Pick<Extract<EnforceAnswer, { kind: 'forwarded' }>, 'check' | 'receipt'>): object {
  return { ...(answer.check ? { check: answer.check } : {}), ...(answer.receipt ? { receipt: answer.receipt } : {}) };
}

type CallResult = { readonly status?: number; readonly result?: JsonValue; readonly why?: string };

async function readAnswer(answer: UpstreamAnswer): Promise<CallResult> {
  if (answer.kind !== 'answer') return { why: answer.why };
  const { status, headers } = answer;
  const contentType = headerOf(headers, 'content-type');
  const body = await collectBody(answer.body, MAX_WHOLE_BYTES);
  if (body === undefined) return { status, why: 'the answer broke off or is too large' };
  return { status, result: resultOf(body, contentType) };
}

/** JSON as it is; anything else as text, or in base64 where it is not UTF-8. */
function resultOf(body: Uint8Array, contentType: string | undefined): JsonValue {
  if (body.length === 0) return null;
  const value = parseResult(body, contentType);
  if (value !== undefined) return value;
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(body);
  } catch {
    const encoded: JsonObject = { base64: Buffer.from(body).toString('base64') };
    return encoded;
  }
}

function answerOther(answer: EnforceAnswer): Response {
  if (answer.kind === 'problem') throw new ApiProblem(answer.problem);
  if (answer.kind === 'receipt') return jsonAnswer({ receipt: answer.receipt });
  throw new ApiProblem(ANSWER_NOT_KEPT);
}
