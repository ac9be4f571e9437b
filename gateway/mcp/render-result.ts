import { ProtocolError, ProtocolErrorCode } from '@modelcontextprotocol/server';
import { parseJson } from '../../receipts/json.ts';
import { JsonFault } from '../../receipts/json-fault.ts';
import { isObject, type JsonObject, type JsonValue } from '../../receipts/json-value.ts';
import { headerOf } from '../enforce/outcome-of.ts';
import type { EnforceAnswer, Problem, ToolCheck, ToolReceipt, UpstreamAnswer } from '../exchange.ts';
import { collectBody, MAX_WHOLE_BYTES } from '../http/collect-body.ts';
import { renderJson } from '../http/problems.ts';

type Forwarded = Extract<EnforceAnswer, { readonly kind: 'forwarded' }>;
type Whole = Extract<UpstreamAnswer, { readonly kind: 'answer' }>;

/** A call that was not made, as a result that a model reads: why, and the whole answer beside it. */
export function renderHeld(check: ToolCheck): JsonObject {
  const { confirmation } = check;
  const where =
    confirmation?.approve_at === undefined
      ? ''
      : ` A person decides at ${confirmation.approve_at}; once it is approved, make the same call again and it passes.`;
  return textResult(`${check.sentence}${where}`, true, { 'toolgate/check': plain(check) });
}

/** A receipt that did not admit its call. */
export function renderReceipt(receipt: ToolReceipt): JsonObject {
  return textResult(`the receipt does not admit this call: ${receipt.reason}`, true, receiptMeta({ receipt }));
}

/** What is said of the receipt that a call came with, where it came with one. */
export function receiptMeta({ receipt }: { readonly receipt?: ToolReceipt }): JsonObject {
  return receipt === undefined ? {} : { 'toolgate/receipt': plain(receipt) };
}

/** A fault that is no decision about the call, as a JSON-RPC error. */
export function errorOfProblem(problem: Problem): ProtocolError {
  const code = problem.status >= 500 ? ProtocolErrorCode.InternalError : ProtocolErrorCode.InvalidParams;
  const { pointer, retryAfterSeconds } = problem;
  return new ProtocolError(code, problem.detail, {
    type: `urn:toolgate:${problem.code}`,
    status: problem.status,
    ...(pointer === undefined ? {} : { pointer }),
    ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }),
  });
}

/**
 * The result of a call that was forwarded. Resolves when its outcome is stored. Throws the server's own JSON-RPC error
 * where that is its answer.
 * @param isMcp The tool's server speaks MCP, so that its answer is a result already.
 * @param meta What is said of the call beside the result.
 */
export async function renderForwarded(forwarded: Forwarded, isMcp: boolean, meta: JsonObject): Promise<JsonObject> {
  const { answer } = forwarded;
  if (answer.kind !== 'answer') return renderNoAnswer(answer, await forwarded.outcome, meta);
  const bytes = await collectBody(answer.body, MAX_WHOLE_BYTES);
  const outcome = await forwarded.outcome;
  if (bytes === undefined) {
    return renderNoAnswer(
      { kind: 'unclear', code: 'answer_broken', why: 'the answer broke off or is too large' },
      outcome,
      meta,
    );
  }
  return isMcp ? ofServer(answer, bytes, meta) : ofHttp(answer, bytes, meta);
}

/**
 * The kept answer of an earlier call with the same key.
 * @param receipt What `receiptMeta` says.
 */
export function renderReplay(
  body: Uint8Array,
  contentType: string | undefined,
  status: number,
  isMcp: boolean,
  receipt: JsonObject,
): JsonObject {
  const answer: Whole = {
    kind: 'answer',
    status,
    headers: contentType === undefined ? [] : ['content-type', contentType],
    body,
  };
  const meta = { ...receipt, 'toolgate/replayed': true };
  return isMcp ? ofServer(answer, body, meta) : ofHttp(answer, body, meta);
}

function renderNoAnswer(answer: Exclude<UpstreamAnswer, Whole>, outcome: string, meta: JsonObject): JsonObject {
  const text =
    answer.kind === 'not_sent'
      ? `the call was not made: ${answer.why}; it may be made again`
      : outcome === 'ran'
        ? `the call was made, and its answer was lost: ${answer.why}`
        : `it is not known whether the call was done: ${answer.why}; do not make it again as a new call`;
  return textResult(text, true, { ...meta, 'toolgate/outcome': outcome });
}

function ofServer({ status }: Whole, bytes: Uint8Array, meta: JsonObject): JsonObject {
  const value = readAnswer(bytes);
  if (status >= 400) {
    const { code, message, data } = isObject(value) ? value : {};
    throw new ProtocolError(
      typeof code === 'number' ? code : ProtocolErrorCode.InternalError,
      typeof message === 'string' ? message : 'the server failed',
      data,
    );
  }
  return isObject(value) ? withMeta(value, meta) : textResult('the server gave no result', true, meta);
}

/** An HTTP backend's answer: JSON as structured content and as text, anything else as what it is. */
function ofHttp({ status, headers }: Whole, bytes: Uint8Array, meta: JsonObject): JsonObject {
  const isError = status >= 400;
  const type = headerOf(headers, 'content-type');
  const value = isJson(type) ? tryRead(bytes) : undefined;
  if (value !== undefined) {
    const structured: JsonObject = isObject(value) ? value : { result: value };
    const result = textResult(renderJson(value), isError, meta);
    return isError ? result : { ...result, structuredContent: structured };
  }
  const text = asText(bytes);
  if (text !== undefined) return textResult(text === '' ? `HTTP ${status}` : text, isError, meta);
  const mimeType = type?.split(';', 1)[0]?.trim() ?? 'application/octet-stream';
  const blob = Buffer.from(bytes).toString('base64');
  const content = [{ type: 'resource', resource: { uri: 'toolgate:answer', mimeType, blob } }];
  return withMeta({ content, isError }, meta);
}

function textResult(text: string, isError: boolean, meta: JsonObject): JsonObject {
  return withMeta({ content: [{ type: 'text', text }], ...(isError ? { isError } : {}) }, meta);
}

function withMeta(result: JsonObject, meta: JsonObject): JsonObject {
  if (Object.keys(meta).length === 0) return result;
  const own = result['_meta'];
  return { ...result, _meta: { ...(isObject(own) ? own : {}), ...meta } };
}

/** What a server said, as it said it: also where it keeps less strictly to JSON than the gateway does. */
function readAnswer(bytes: Uint8Array): JsonValue | undefined {
  return tryRead(bytes) ?? (JSON.parse(Buffer.from(bytes).toString()) as JsonValue);
}

function tryRead(bytes: Uint8Array): JsonValue | undefined {
  try {
    return parseJson(bytes);
  } catch (error) {
    if (error instanceof JsonFault) return undefined;
    throw error;
  }
}

function asText(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

function isJson(type: string | undefined): boolean {
  return type !== undefined && /^application\/(?:[\w.-]+\+)?json\b/i.test(type);
}

/** An answer of the gateway's own as JSON: made of nothing else, whatever its type says. */
function plain(value: object): JsonValue {
  return parseJson(renderJson(value));
}
