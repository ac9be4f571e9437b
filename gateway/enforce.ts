import { AuditFault } from './audit/fault.ts';
import { admitReceipt } from './enforce/admit-receipt.ts';
import { decide } from './enforce/decide.ts';
import { forward } from './enforce/forward.ts';
import { storeUnavailable } from './enforce/problems.ts';
import { type ReadCall, readCall } from './enforce/read-call.ts';
import { answerRepeat } from './enforce/repeat.ts';
import { decideAtHand } from './enforce/ride-along.ts';
import { readWithoutStore } from './enforce/without-store.ts';
import type { EnforceAnswer, EnforceRequest, Problem } from './exchange.ts';
import type { Gateway } from './gateway.ts';
import { fault } from './http/problems.ts';
import { StoreFault } from './store/port.ts';
import type { CallSpan } from './tracing/span.ts';

/**
 * The one way through the gateway, the same for every kind of route: read the call, see whether it is a repeat, check
 * it and record the answer, forward it once, record the outcome. Never throws: what goes wrong refuses, and is logged.
 */
export function enforce(gateway: Gateway, request: EnforceRequest): Promise<EnforceAnswer> {
  const answering = answerOf(gateway, request);
  return request.span === undefined ? answering : noteAnswer(gateway, request, request.span, answering);
}

async function answerOf(gateway: Gateway, request: EnforceRequest): Promise<EnforceAnswer> {
  let read: ReadCall | undefined;
  try {
    read = readCall(gateway.loaded, request);
    const repeating = answerRepeat(gateway, read);
    const repeated = repeating === undefined ? undefined : await repeating;
    if (repeated !== undefined) return repeated;
    if (read.request.byReceipt) return await proveByReceipt(gateway, read);
    const decided = decideAtHand(gateway, read) ?? (await decide(gateway, read));
    if (decided.kind === 'repeated') return decided.answer;
    if (decided.kind === 'problem') return decided;
    if (decided.kind === 'held') return { kind: 'decided', check: decided.check };
    if (request.purpose === 'decide') {
      if (decided.line !== undefined) await gateway.audit.write(decided.line);
      return { kind: 'decided', check: decided.check };
    }
    return await forward(gateway, decided);
  } catch (error) {
    const away = error instanceof StoreFault && read !== undefined ? await tryWithoutStore(gateway, read) : undefined;
    return away ?? { kind: 'problem', problem: problemOf(gateway, request, error) };
  }
}

/** What the operator lets through while the store is away; whatever goes wrong on that way refuses as ever. */
async function tryWithoutStore(gateway: Gateway, read: ReadCall): Promise<EnforceAnswer | undefined> {
  try {
    return await readWithoutStore(gateway, read);
  } catch (error) {
    gateway.log.error({ err: error, tool: read.call.tool }, 'a read could not be made without the store');
    return undefined;
  }
}

/** A receipt in place of the check: the history that it is the last entry of has decided the call. */
async function proveByReceipt(gateway: Gateway, read: ReadCall): Promise<EnforceAnswer> {
  const forwards = read.request.purpose === 'forward';
  const admitted = await admitReceipt(gateway, read, forwards || read.request.spend === true);
  if (admitted.kind !== 'allowed') return admitted;
  if (forwards) return forward(gateway, admitted);
  if (admitted.line !== undefined) await gateway.audit.write(admitted.line);
  if (admitted.receipt === undefined) throw new Error('an admitted receipt has no answer');
  return { kind: 'receipt', receipt: admitted.receipt };
}

/** What the span of a call is told of its answer. A name that the catalogue lacks is a caller's own words, and stays out. */
async function noteAnswer(
  gateway: Gateway,
  request: EnforceRequest,
  span: CallSpan,
  answering: Promise<EnforceAnswer>,
): Promise<EnforceAnswer> {
  const answer = await answering;
  const decided = 'check' in answer ? answer.check : undefined;
  const proved = 'receipt' in answer ? answer.receipt : undefined;
  const tool = decided?.tool ?? proved?.tool ?? request.tool;
  span.answered(gateway.loaded.catalogue.tools.has(tool) ? tool : undefined, answer);
  return answer;
}

function problemOf(gateway: Gateway, request: EnforceRequest, error: unknown): Problem {
  const { span, caller, members } = request;
  const names = { tool: request.tool, caller: caller.name, session: members.session, trace_id: span?.traceId };
  if (error instanceof StoreFault || error instanceof AuditFault) {
    gateway.log.error({ err: error, ...names }, 'a call was refused because it could not be recorded');
    const what = error instanceof StoreFault ? 'the store cannot be written' : 'the audit log cannot be written';
    return storeUnavailable(what);
  }
  gateway.log.error({ err: error, ...names }, 'a call was refused because of an error of the gateway');
  return fault('internal_error', 'the gateway failed on this call, so it was refused; its log says why');
}
