import { ProtocolError, SdkError, SdkErrorCode, SdkHttpError } from '@modelcontextprotocol/client';
import type { JsonObject } from '../../receipts/json-value.ts';
import type { UpstreamAnswer } from '../exchange.ts';
import { notSent, unclear } from '../http/forward-faults.ts';
import { renderJson } from '../http/problems.ts';
import { fromWire } from './wire-digits.ts';

/** The connection to a server could not be made: nothing of a call was sent. */
export class LinkFault extends Error {
  readonly code = 'link_failed';

  constructor(server: string, cause: unknown) {
    super(`the MCP server \`${server}\` cannot be reached: ${messageOf(cause)}`, { cause });
    this.name = 'LinkFault';
  }
}

/** A server asked its client for something, and got no answer. */
export class AskFault extends Error {
  readonly code: 'not_trusted' | 'cannot_ask' | 'no_answer';

  constructor(code: AskFault['code'], message: string) {
    super(message);
    this.name = 'AskFault';
    this.code = code;
  }
}

/** Errors by which a server says that it did nothing: it could not read the request, or knows no such thing (JSON-RPC 2.0 section 5.1). */
const NOTHING_DONE: ReadonlySet<number> = new Set([-32700, -32600, -32601, -32602, -32020, -32021, -32022, -32002]);

/** Faults of a connection that never came about. */
const NO_CONNECTION: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
]);

/** What a call's error says of the call. A JSON-RPC error of the server is its answer: status 400 where nothing was done, else 500. */
export function answerOfError(error: unknown, cancelled: boolean): UpstreamAnswer {
  if (error instanceof LinkFault) return { kind: 'not_sent', code: error.code, why: error.message };
  if (error instanceof ProtocolError) return rpcError(error);
  if (cancelled) return { kind: 'unclear', code: 'cancelled', why: 'the client took the call back while it ran' };
  if (error instanceof AskFault) return { kind: 'unclear', code: error.code, why: error.message };
  if (error instanceof SdkHttpError) return httpError(error);
  if (error instanceof SdkError) {
    if (error.code === SdkErrorCode.RequestTimeout) {
      return { kind: 'unclear', code: 'timeout', why: 'the server did not answer in time' };
    }
    return { kind: 'unclear', code: 'connection_lost', why: `the server gave no answer (${error.message})` };
  }
  if (error instanceof Error && error.message === 'Not connected') {
    return { kind: 'not_sent', code: 'link_failed', why: 'the connection to the server has ended' };
  }
  const cause = error instanceof Error && error.cause !== undefined ? error.cause : error;
  return NO_CONNECTION.has(codeOf(cause)) ? notSent(cause) : unclear(cause);
}

/** Whether a server answered that it knows the session no more (404 to a request that names one). */
export function isSessionLost(error: unknown): boolean {
  return error instanceof SdkHttpError && error.data.status === 404;
}

function rpcError({ code, message, data }: ProtocolError): UpstreamAnswer {
  const error: JsonObject = { code, message, ...(data === undefined ? {} : { data: fromWire(data) }) };
  return {
    kind: 'answer',
    status: NOTHING_DONE.has(code) ? 400 : 500,
    headers: ['content-type', 'application/json'],
    body: Buffer.from(renderJson(error)),
    ...(NOTHING_DONE.has(code) ? { saysFailed: true } : {}),
  };
}

/** An HTTP status below 500 says that the request was not taken on; from 500 on nobody knows. */
function httpError(error: SdkHttpError): UpstreamAnswer {
  const { status } = error.data;
  const why = `the server answered with HTTP ${status}`;
  return status >= 300 && status < 500 && status !== 408 && status !== 409 && status !== 429
    ? { kind: 'not_sent', code: 'refused_by_server', why }
    : { kind: 'unclear', code: 'server_failed', why };
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : '';
}

function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const code = codeOf(error.cause);
  return code === '' ? error.message : `${error.message} (${code})`;
}
