import { ProtocolError, ProtocolErrorCode } from '@modelcontextprotocol/server';
import { isObject, type JsonObject, type JsonValue } from '../../receipts/json-value.ts';
import { ANSWER_NOT_KEPT } from '../enforce/problems.ts';
import { enforce } from '../enforce.ts';
import type { CallMembers, EnforceAnswer, EnforceRequest, ToolCheck } from '../exchange.ts';
import { CALL_MEMBER_NAMES, parseCallMembers } from '../http/call-members.ts';
import { parseTraceparent } from '../http/trace-context.ts';
import type { CallSpan, TraceCarrier } from '../tracing/span.ts';
import { type ClientRequest, type EndpointContext, metaOf, relayOf } from './client-call.ts';
import {
  errorOfProblem,
  receiptMeta,
  renderForwarded,
  renderHeld,
  renderReceipt,
  renderReplay,
} from './render-result.ts';
import { pairOf } from './tool-names.ts';

/** What became of a call: a result, or a question that a person must answer first. */
export type CallEnd =
  | { readonly kind: 'result'; readonly result: JsonObject }
  | { readonly kind: 'confirm'; readonly check: ToolCheck; readonly result: JsonObject };

const OWN_META: ReadonlySet<string> = new Set(['toolgate/call', 'toolgate/receipt']);
const KNOWN: ReadonlySet<string> = new Set(CALL_MEMBER_NAMES);

/** `tools/call`: the call goes the one way that every call goes. Throws JSON-RPC errors for what is no call. */
export function callTool(context: EndpointContext, request: ClientRequest, confirmation?: string): Promise<CallEnd> {
  const { name, arguments: args = {} } = request.params;
  if (typeof name !== 'string' || name === '') throw invalid('`name` must name a tool');
  if (!isObject(args)) throw invalid('`arguments` must be an object');
  const tool = pairOf(context.gateway.loaded.catalogue, context.server, name);
  return enforceCall(context, request, tool, args, confirmation);
}

/** A request that brings content without being a tool call: recorded and checked as the read that it is. */
export async function readThrough(context: EndpointContext, request: ClientRequest, name: string): Promise<JsonObject> {
  const { _meta: _own, inputResponses: _responses, requestState: _state, ...args } = request.params;
  const end = await enforceCall(context, request, `${context.server ?? ''}/${name}`, args);
  const { result } = end;
  const meta = isObject(result['_meta']) ? result['_meta'] : {};
  const check = meta['toolgate/check'];
  const failed =
    end.kind === 'confirm' || (result['isError'] === true && (check !== undefined || 'toolgate/outcome' in meta));
  if (!failed) return result;
  // Only a tool's result can say that it failed; anything else fails as a request.
  const [first] = Array.isArray(result['content']) ? (result['content'] as readonly JsonValue[]) : [];
  const text = isObject(first) && typeof first['text'] === 'string' ? first['text'] : 'the request was not let through';
  throw new ProtocolError(ProtocolErrorCode.InvalidParams, text, meta);
}

/** The call under a span, where spans are made: that of its `_meta`, else of its HTTP request, is the one that it goes on from. */
function enforceCall(
  context: EndpointContext,
  request: ClientRequest,
  tool: string,
  args: JsonObject,
  confirmation?: string,
): Promise<CallEnd> {
  const { tracing, loaded } = context.gateway;
  if (tracing === undefined) return enforceUnder(undefined, context, request, tool, args, confirmation);
  const meta = metaOf(request.params);
  const carriers = [textsOf(meta), ...(request.trace === undefined ? [] : [request.trace])];
  const known = loaded.catalogue.tools.has(tool) ? tool : undefined;
  return tracing.serveMcp(request.method, known, carriers, (span) =>
    enforceUnder(span, context, request, tool, args, confirmation),
  );
}

function textsOf({ traceparent, tracestate }: JsonObject): TraceCarrier {
  return {
    traceparent: typeof traceparent === 'string' ? traceparent : undefined,
    tracestate: typeof tracestate === 'string' ? tracestate : undefined,
  };
}

async function enforceUnder(
  span: CallSpan | undefined,
  context: EndpointContext,
  request: ClientRequest,
  tool: string,
  args: JsonObject,
  confirmation?: string,
): Promise<CallEnd> {
  const { gateway, caller } = context;
  const meta = metaOf(request.params);
  const given = readMembers(meta);
  const server = tool.includes('/') ? tool.slice(0, tool.indexOf('/')) : '';
  const proof = proofOf(context, server, given.receipt, given.members.history);
  const named = withOwn(context, given.members, proof.byReceipt, confirmation);
  const sent: EnforceRequest = {
    caller,
    tool,
    arguments: args,
    members: named,
    ...proof,
    purpose: 'forward',
    via: 'mcp',
    ...(gateway.loaded.mcp.routes.has(server) ? { route: server } : {}),
    wantEntry: named.history !== undefined,
    gone: () => request.cancelled,
    passedHeaders: [],
    ...parseTraceparent(meta['traceparent']),
    ...(span === undefined ? {} : { span }),
    relay: relayOf(context, request),
  };
  const isMcp = gateway.loaded.mcp.routes.get(server)?.source.kind === 'mcp';
  return finish(await enforce(gateway, sent), isMcp, given.wantsCheck || named.history !== undefined);
}

async function finish(answer: EnforceAnswer, isMcp: boolean, wantsCheck: boolean): Promise<CallEnd> {
  switch (answer.kind) {
    case 'problem':
      throw errorOfProblem(answer.problem);
    case 'receipt':
      return { kind: 'result', result: renderReceipt(answer.receipt) };
    case 'decided': {
      const { check } = answer;
      const result = renderHeld(check);
      return check.decision === 'confirm' ? { kind: 'confirm', check, result } : { kind: 'result', result };
    }
    case 'replayed': {
      if (answer.answer.kind === 'tombstone') throw errorOfProblem(ANSWER_NOT_KEPT);
      const { body, contentType, status } = answer.answer;
      return { kind: 'result', result: renderReplay(body, contentType, status, isMcp, receiptMeta(answer)) };
    }
    case 'forwarded': {
      const meta = { ...receiptMeta(answer), ...(wantsCheck ? checkMeta(answer) : {}) };
      return { kind: 'result', result: await renderForwarded(answer, isMcp, meta) };
    }
  }
}

/** What a caller that speaks Toolgate is told of an allowed call, as the headers of a route tell it. */
function checkMeta({
  check,
  upstreamKey,
  heldBack,
}: Extract<EnforceAnswer, { readonly kind: 'forwarded' }>): JsonObject {
  const more = heldBack === undefined ? {} : { 'toolgate/held-back': heldBack };
  if (check === undefined) return more;
  const { decision, reason, session, step, entry, history } = check;
  return {
    ...more,
    'toolgate/check': {
      decision,
      reason,
      session,
      step,
      ...(upstreamKey === undefined ? {} : { idempotency_key: upstreamKey }),
      ...(entry === undefined ? {} : { entry }),
      ...(history === undefined ? {} : { history }),
    },
  };
}

interface Given {
  readonly members: CallMembers;
  readonly receipt: JsonValue | undefined;
  readonly wantsCheck: boolean;
}

/** `_meta["toolgate/call"]` and `_meta["toolgate/receipt"]`. */
function readMembers(meta: JsonObject): Given {
  // One that is misspelled would be passed over, and the call then be proved in another way than its caller meant.
  const unknown = Object.keys(meta).find((name) => name.toLowerCase().startsWith('toolgate/') && !OWN_META.has(name));
  if (unknown !== undefined) throw invalid(`\`_meta["${unknown.slice(0, 64)}"]\` is none that the gateway knows`);
  const call = meta['toolgate/call'];
  const receipt = meta['toolgate/receipt'];
  if (call !== undefined && !isObject(call)) throw invalid('`_meta["toolgate/call"]` must be an object');
  const parsed = parseCallMembers(call ?? {}, KNOWN);
  if ('problem' in parsed) throw errorOfProblem(parsed.problem);
  return { members: parsed.members, receipt, wantsCheck: call !== undefined };
}

/**
 * A client that knows nothing of histories has one under its session; one that names or carries its own has that, and a
 * receipt says itself which it is of.
 */
function withOwn(
  context: EndpointContext,
  members: CallMembers,
  byReceipt: boolean,
  confirmation: string | undefined,
): CallMembers {
  const namesNone = members.session === undefined && members.history === undefined && !byReceipt;
  const own = namesNone ? { session: context.session } : {};
  return { ...members, ...own, ...(confirmation === undefined ? {} : { confirmation }) };
}

/** What proves the call, as on the route itself: a receipt where the route takes nothing else, or where one is given. */
function proofOf(
  { gateway }: EndpointContext,
  server: string,
  receipt: JsonValue | undefined,
  history: JsonValue | undefined,
): Pick<EnforceRequest, 'byReceipt' | 'receipt'> {
  const verify = gateway.loaded.verifyOf(server);
  if (verify === 'check') {
    if (receipt !== undefined) throw invalid('this route checks each call itself and takes no receipt');
    return { byReceipt: false };
  }
  const byReceipt = verify === 'receipt' || receipt !== undefined;
  const given = receipt ?? (verify === 'receipt' ? history : undefined);
  return { byReceipt, ...(byReceipt && given !== undefined ? { receipt: given } : {}) };
}

function invalid(message: string): ProtocolError {
  return new ProtocolError(ProtocolErrorCode.InvalidParams, message);
}
