import { Readable } from 'node:stream';
import { reasonCode, reasonOf, statusOf } from '../../policy/reasons.ts';
import { encodeBase64url } from '../../receipts/base64url.ts';
import type { JsonObject } from '../../receipts/json-value.ts';
import type { CallOutcome, EnforceAnswer, ToolCheck, ToolReceipt, UpstreamAnswer } from '../exchange.ts';
import { streamAnswer } from './answer-stream.ts';
import type { EdgeExchange } from './edge-exchange.ts';
import { fault, renderJson, renderProblem } from './problems.ts';

type Forwarded = Extract<EnforceAnswer, { readonly kind: 'forwarded' }>;
type WholeAnswer = Extract<UpstreamAnswer, { readonly kind: 'answer' }>;
type Replayed = Extract<EnforceAnswer, { readonly kind: 'replayed' }>;

/**
 * Writes what `enforce` answered as the answer of a proxied route (docs/api.md, "Proxied routes"). Resolves when the answer
 * is written, or the client has gone and nothing of the call waits for it any more. A forwarded answer ends only after its
 * outcome is stored; where that fails it does not end whole, and the promise rejects with the reason.
 * @param stallMs A client that takes nothing of a streamed answer for so long is given up.
 */
export async function writeRouteAnswer(exchange: EdgeExchange, answer: EnforceAnswer, stallMs: number): Promise<void> {
  switch (answer.kind) {
    case 'problem':
      exchange.problem(answer.problem);
      return;
    case 'decided':
      writeDecision(exchange, answer.check);
      return;
    case 'receipt':
      writeReceipt(exchange, answer.receipt);
      return;
    case 'replayed':
      writeReplay(exchange, answer);
      return;
    case 'forwarded':
      await writeForwarded(exchange, answer, stallMs);
  }
}

/** A refusal, or a question to a person: 403 or 428 with the whole check. */
function writeDecision(exchange: EdgeExchange, check: ToolCheck): void {
  const status = statusOf(check.decision, check.reason);
  if (check.decision === 'allow') {
    // On a route an allowed call is forwarded; one that was not must not look like an upstream's answer.
    exchange.problem(
      fault('internal_error', 'the call was allowed and not forwarded; the log of the gateway says why'),
    );
    return;
  }
  const problem = {
    status,
    code: reasonCode(check.reason),
    detail: check.sentence === '' ? reasonOf(check.reason).sentence : check.sentence,
    ...(check.pointer === undefined ? {} : { pointer: check.pointer }),
    ...(status === 503 ? { retryAfterSeconds: 1 } : {}),
  };
  const headers = callHeaders(check.decision, check.session, check.step);
  exchange.answer(renderProblem(problem, { members: { check }, headers }));
}

function writeReceipt(exchange: EdgeExchange, receipt: ToolReceipt): void {
  if (receipt.decision === 'allow') {
    exchange.problem(fault('internal_error', 'the receipt was admitted and its call not forwarded; the log says why'));
    return;
  }
  const { status, sentence } = reasonOf(receipt.reason);
  const problem = { status, code: reasonCode(receipt.reason), detail: sentence };
  const headers = callHeaders('refuse', receipt.session, receipt.step);
  exchange.answer(renderProblem(problem, { members: { receipt }, headers }));
}

/** The stored answer of a call that was made before with the same key: its status, media type and body, nothing else. */
function writeReplay(exchange: EdgeExchange, replay: Replayed): void {
  const headers = callHeaders('allow', replay.session, replay.step, replay.upstreamKey);
  headers.push('idempotency-replayed', 'true');
  if (replay.answer.kind === 'tombstone') {
    const problem = fault(
      'answer_not_kept',
      'the call was made with this key and its answer was not kept; it is not made again',
    );
    exchange.answer(renderProblem(problem, { headers }));
    return;
  }
  const { status, contentType, body } = replay.answer;
  if (contentType !== undefined) headers.push('content-type', contentType);
  if (mayHaveBody(status)) headers.push('content-length', String(body.byteLength));
  exchange.answer({ status, headers, body: mayHaveBody(status) ? body : '' });
}

function writeForwarded(exchange: EdgeExchange, forwarded: Forwarded, stallMs: number): Promise<void> {
  const { answer, outcome } = forwarded;
  const headers = forwardedHeaders(forwarded);
  const unrecorded = (error: unknown): never => {
    const detail = 'the call was made and its outcome could not be recorded; do not send it again as a new call';
    exchange.answer(renderProblem(fault('outcome_unknown', detail), { headers }));
    throw error;
  };
  if (answer.kind !== 'answer') {
    return outcome.then((known) => exchange.answer(renderProblem(noAnswer(answer, known), { headers })), unrecorded);
  }
  const { body } = answer;
  if (!(body instanceof Readable)) {
    return outcome.then(() => writeWhole(exchange, answer, headers, body), unrecorded);
  }
  for (const part of answer.headers) headers.push(part);
  // The key is a write's: a write is read to its end whoever listens, so that what it said can be stored.
  const keepsReading = forwarded.upstreamKey !== undefined;
  return streamAnswer(exchange, answer.status, headers, body, { outcome, keepsReading, stallMs });
}

/** An upstream's answer that was read whole: its length is that of what was read, whatever it announced. */
function writeWhole(exchange: EdgeExchange, answer: WholeAnswer, headers: string[], body: Uint8Array): void {
  const { status } = answer;
  const isHead = exchange.method === 'HEAD';
  for (let at = 0; at + 1 < answer.headers.length; at += 2) {
    const name = answer.headers[at] ?? '';
    if (name === 'content-length' && !isHead) continue;
    headers.push(name, answer.headers[at + 1] ?? '');
  }
  if (!isHead && mayHaveBody(status)) headers.push('content-length', String(body.byteLength));
  exchange.answer({ status, headers, body });
}

function forwardedHeaders({ check, receipt, upstreamKey, heldBack }: Forwarded): string[] {
  const step = check ?? receipt;
  const headers = callHeaders('allow', step?.session, step?.step, upstreamKey);
  if (heldBack !== undefined) headers.push('toolgate-held-back', String(heldBack));
  if (check?.entry !== undefined) headers.push('toolgate-entry', inHeader(check.entry));
  if (check?.history !== undefined) headers.push('toolgate-history', inHeader(check.history));
  return headers;
}

function callHeaders(decision: string, session: string | undefined, step: number | undefined, key?: string): string[] {
  const headers = ['toolgate-decision', decision];
  if (session !== undefined && isHeaderText(session)) headers.push('toolgate-session', session);
  if (step !== undefined) headers.push('toolgate-step', String(step));
  if (key !== undefined) headers.push('toolgate-idempotency-key', key);
  return headers;
}

function noAnswer(
  answer: Exclude<UpstreamAnswer, { readonly kind: 'answer' }>,
  outcome: CallOutcome,
): ReturnType<typeof fault> {
  if (answer.kind === 'not_sent') {
    return fault('upstream_unreachable', `the call was not made: ${answer.why}; it may be sent again`);
  }
  return outcome === 'ran'
    ? fault('answer_not_kept', `the call was made, and its answer was lost: ${answer.why}`)
    : fault(
        'outcome_unknown',
        `it is not known whether the call was done: ${answer.why}; do not send it again as a new call`,
      );
}

function inHeader(value: JsonObject): string {
  return encodeBase64url(Buffer.from(renderJson(value)));
}

/** RFC 9110 sections 15.3.5 and 15.4.5, RFC 9112 section 6.1. */
function mayHaveBody(status: number): boolean {
  return status !== 204 && status !== 304;
}

/** Whether a text can stand in a header as it is; a session of an issuer's may have any characters. */
function isHeaderText(text: string): boolean {
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code < 0x20 || code > 0x7e) return false;
  }
  return text !== '' && text.trim() === text;
}
