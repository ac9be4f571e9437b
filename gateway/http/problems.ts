import { REASONS } from '../../policy/reasons.ts';
import type { JsonValue } from '../../receipts/json-value.ts';
import type { Problem } from '../exchange.ts';

/** A row of the table: the status of a fault and its short title. */
interface Fault {
  readonly status: number;
  readonly title: string;
}

/**
 * Faults of a request or of what stands behind the gateway, as opposed to decisions about a call (policy/reasons.ts).
 * A code stands behind `urn:toolgate:` in the `type` of the answer (RFC 9457 section 3.1.1).
 */
export const FAULTS = {
  bad_request: { status: 400, title: 'The request is malformed' },
  bad_target: { status: 400, title: 'The request target is not a plain path' },
  duplicate_header: { status: 400, title: 'A header that may stand once stands twice' },
  method_override: { status: 400, title: 'The method may not be overridden' },
  upgrade_refused: { status: 400, title: 'The connection cannot be upgraded here' },
  ambiguous_path: { status: 400, title: 'The path could be meant for two tools' },
  body_not_expected: { status: 400, title: 'The method takes no body' },
  bad_json: { status: 400, title: 'The JSON of the request cannot be read' },
  bad_member: { status: 400, title: 'A member of the request cannot be read' },
  unknown_member: { status: 400, title: 'The request has a member that is not known' },
  member_twice: { status: 400, title: 'A member of the call is given twice' },
  idempotency_key_missing: { status: 400, title: 'The call needs an idempotency key' },
  no_credential: { status: 401, title: 'No valid credential' },
  foreign_host: { status: 403, title: 'The Host header names another host' },
  foreign_origin: { status: 403, title: 'The request comes from a page of another site' },
  wrong_role: { status: 403, title: 'The credential has another role' },
  no_route: { status: 404, title: 'No such route' },
  not_found: { status: 404, title: 'No such thing' },
  method_not_allowed: { status: 405, title: 'The method is not allowed here' },
  request_timeout: { status: 408, title: 'The request came too slowly' },
  key_in_flight: { status: 409, title: 'A call with this key is on its way' },
  session_busy: { status: 409, title: 'Other calls of the session came first' },
  run_foreign: { status: 409, title: 'The run lives in another session' },
  history_carried: { status: 409, title: 'The history is carried by its caller' },
  answer_not_kept: { status: 409, title: 'The call was made, and its answer was not kept' },
  outcome_pending: { status: 409, title: 'The outcome of the first call is not known' },
  outcome_recorded: { status: 409, title: 'The outcome of the call is not yours to report' },
  conflict: { status: 409, title: 'The request conflicts with what is recorded' },
  too_large: { status: 413, title: 'The body is too large' },
  target_too_long: { status: 414, title: 'The request target is too long' },
  unsupported_media_type: { status: 415, title: 'The body is of a type that is not taken here' },
  expectation_failed: { status: 417, title: 'The expectation cannot be met' },
  key_reused: { status: 422, title: 'The key was used for another call' },
  too_many_sessions: { status: 429, title: 'The credential has too many live sessions' },
  too_many_requests: { status: 429, title: 'Too many requests' },
  headers_too_large: { status: 431, title: 'The header section is too large' },
  internal_error: { status: 500, title: 'The gateway failed' },
  upstream_unreachable: { status: 502, title: 'The upstream was not reached' },
  store_unavailable: { status: 503, title: 'The gateway cannot record calls now' },
  shutting_down: { status: 503, title: 'The gateway is shutting down' },
  outcome_unknown: { status: 504, title: 'It is not known whether the call was done' },
  version_not_supported: { status: 505, title: 'The HTTP version is not supported' },
} as const;

/** A code of the table. */
export type FaultCode = keyof typeof FAULTS;

/**
 * A problem of the table.
 * @param detail What is wrong, where, and what to do; starts in lower case.
 */
export function fault(
  code: FaultCode,
  detail: string,
  more: { readonly pointer?: string; readonly retryAfterSeconds?: number } = {},
): Problem {
  const { status }: Fault = FAULTS[code];
  return { status, code, detail, ...more };
}

/** An answer of the gateway's own, ready to be written. */
export interface RenderedAnswer {
  readonly status: number;
  /** Names and values in turn. */
  readonly headers: string[];
  readonly body: string | Uint8Array;
}

/**
 * Problem details (RFC 9457) of `problem`. Extension members (`check`, `receipt`) come in `members`; `headers` are added
 * behind those that the status asks for.
 */
export function renderProblem(
  problem: Problem,
  more: {
    readonly members?: Readonly<Record<string, unknown>>;
    readonly headers?: readonly string[];
    readonly allow?: readonly string[];
  } = {},
): RenderedAnswer {
  const body = JSON.stringify(
    {
      type: `urn:toolgate:${problem.code}`,
      title: titleOf(problem.code),
      status: problem.status,
      detail: problem.detail,
      ...(problem.pointer === undefined ? {} : { pointer: problem.pointer }),
      ...more.members,
    },
    keepBigints,
  );
  const headers = ['content-type', 'application/problem+json', 'content-length', String(Buffer.byteLength(body))];
  // RFC 9110 section 11.6.1: a 401 says how to authenticate.
  if (problem.status === 401) headers.push('www-authenticate', 'Bearer realm="toolgate"');
  // RFC 9110 section 15.5.6: a 405 lists what is allowed, even where that is nothing.
  if (problem.status === 405) headers.push('allow', (more.allow ?? []).join(', '));
  if (problem.retryAfterSeconds !== undefined) headers.push('retry-after', String(problem.retryAfterSeconds));
  if (more.headers !== undefined) headers.push(...more.headers);
  return { status: problem.status, headers, body };
}

/** JSON text of a value that may hold `bigint` integers, every digit kept. */
export function renderJson(value: JsonValue | object): string {
  return JSON.stringify(value, keepBigints);
}

function titleOf(code: string): string {
  if (Object.hasOwn(FAULTS, code)) return FAULTS[code as FaultCode].title;
  const words = code.replaceAll('_', ' ');
  const decision = Object.hasOwn(REASONS, code) ? REASONS[code as keyof typeof REASONS].decision : 'refuse';
  return decision === 'confirm' ? `A person must approve the call: ${words}` : `The call is refused: ${words}`;
}

/** Raw JSON text (ECMA-262 proposal, in V8 since Node 21) is what keeps every digit; TypeScript's library lacks it. */
const RAW = JSON as typeof JSON & { rawJSON(text: string): unknown };

function keepBigints(_key: string, value: unknown): unknown {
  return typeof value === 'bigint' ? RAW.rawJSON(value.toString()) : value;
}
