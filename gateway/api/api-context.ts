import type { Caller } from '../../policy/call.ts';
import { isObject, type JsonObject, type JsonValue } from '../../receipts/json-value.ts';
import type { Problem } from '../exchange.ts';
import type { Gateway } from '../gateway.ts';
import { type Authenticator, approverOf, callerOf } from '../http/authenticate.ts';
import { readJsonBody } from '../http/body.ts';
import type { EdgeExchange } from '../http/edge-exchange.ts';
import { fault, type RenderedAnswer, renderJson, renderProblem } from '../http/problems.ts';

/** What a handler of the control API has at hand. */
export interface ApiBindings {
  readonly exchange: EdgeExchange;
  readonly gateway: Gateway;
  readonly authenticate: Authenticator;
  /** The approvers' page is served. */
  readonly console: boolean;
}

/** Ends a handler with a problem. */
export class ApiProblem extends Error {
  readonly problem: Problem;

  constructor(problem: Problem) {
    super(problem.detail);
    this.name = 'ApiProblem';
    this.problem = problem;
  }
}

/** The largest body that the control API reads, in bytes: a carried history of some thousand entries fits. */
const MAX_API_BODY_BYTES: number = 8 << 20;

/** The caller that the credential names. Throws `ApiProblem` 401 or 403. */
export function requireCaller(env: ApiBindings): Caller {
  const caller = callerOf(identify(env));
  if ('problem' in caller) throw new ApiProblem(caller.problem);
  return caller;
}

/** The name of the approver that the credential names. Throws `ApiProblem` 401 or 403. */
export function requireApprover(env: ApiBindings): string {
  const name = approverOf(identify(env));
  if (typeof name !== 'string') throw new ApiProblem(name.problem);
  return name;
}

/** Whoever may look at the process itself: an approver, or a host. An agent is not told what others do. Throws `ApiProblem` 401 or 403. */
export function requireOperator(env: ApiBindings): void {
  const identity = identify(env);
  if (identity.kind === 'approver' || identity.caller.host) return;
  throw new ApiProblem(fault('wrong_role', "only an approver's or a host's credential can do this"));
}

/** Whoever the credential names, a caller or an approver. Throws `ApiProblem` 401. */
export function identify(env: ApiBindings): Exclude<ReturnType<Authenticator>, { readonly problem: Problem }> {
  const identity = env.authenticate(env.exchange.header('authorization'));
  if ('problem' in identity) throw new ApiProblem(identity.problem);
  return identity;
}

/** The request's body, a JSON object under the strict profile. Throws `ApiProblem` 400, 413 or 415. */
export async function requireObject(env: ApiBindings): Promise<JsonObject> {
  const body = await readJsonBody(env.exchange, MAX_API_BODY_BYTES);
  if ('problem' in body) throw new ApiProblem(body.problem);
  const { value } = body;
  if (!isObject(value)) throw new ApiProblem(fault('bad_request', 'the body must be a JSON object'));
  return value;
}

/** A member that must be a text of at least one character. Throws `ApiProblem` 400 with its pointer. */
export function requireText(body: JsonObject, name: string): string {
  const value = Object.hasOwn(body, name) ? body[name] : undefined;
  if (typeof value === 'string' && value !== '') return value;
  throw badMember(name, 'must be a text that is not empty');
}

/** A member that must be a whole number from 0. Throws `ApiProblem` 400 with its pointer. */
export function requireStep(body: JsonObject, name: string): number {
  const value = Object.hasOwn(body, name) ? body[name] : undefined;
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0) return value;
  throw badMember(name, 'must be a whole number from 0');
}

/** Refuses members that are not known. Throws `ApiProblem` 400 with the pointer of the first. */
export function refuseUnknown(body: JsonObject, known: readonly string[]): void {
  for (const name of Object.keys(body)) {
    if (known.includes(name)) continue;
    const pointer = `/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`;
    throw new ApiProblem(
      fault('unknown_member', `the member \`${name.slice(0, 100)}\` is not known here; leave it out`, { pointer }),
    );
  }
}

export function badMember(name: string, what: string): ApiProblem {
  return new ApiProblem(fault('bad_member', `\`${name}\` ${what}`, { pointer: `/${name}` }));
}

/** Hono's answer out of JSON, every digit of large integers kept. */
export function jsonAnswer(value: JsonValue | object, status = 200): Response {
  return new Response(renderJson(value), { status, headers: { 'content-type': 'application/json' } });
}

/** Hono's answer out of a problem. */
export function problemAnswer(problem: Problem): Response {
  return toResponse(renderProblem(problem));
}

function toResponse(rendered: RenderedAnswer): Response {
  const headers = new Headers();
  for (let i = 0; i + 1 < rendered.headers.length; i += 2) {
    headers.append(rendered.headers[i] ?? '', rendered.headers[i + 1] ?? '');
  }
  return new Response(typeof rendered.body === 'string' ? rendered.body : Buffer.from(rendered.body), {
    status: rendered.status,
    headers,
  });
}
