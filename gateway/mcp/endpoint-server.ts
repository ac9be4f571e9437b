import { Server, type ServerContext } from '@modelcontextprotocol/server';
import type { JsonObject } from '../../receipts/json-value.ts';
import type { AskedOfClient } from '../exchange.ts';
import type { TraceCarrier } from '../tracing/span.ts';
import { ANY_RESULT } from './any-result.ts';
import { AskFault } from './call-fault.ts';
import type { ClientRequest, EndpointContext } from './client-call.ts';
import { answersMethod, capabilitiesOf, instructionsOf } from './dispatch.ts';
import { OWN_NAME } from './own-name.ts';
import { objectFromWire, objectToWire } from './wire-digits.ts';

/** Answers a request with its result. Throws JSON-RPC errors. */
export type Answerer = (context: EndpointContext, request: ClientRequest, raw: JsonObject) => Promise<JsonObject>;

/** How long a client may take to answer what it was asked: a person may be behind it. */
const ASK_MS: number = 10 * 60_000;

/** Methods that the SDK's server would answer by itself, as if it were the last in line. */
const NOT_OURS = ['logging/setLevel', 'ping'] as const;

/**
 * Makes the SDK's server for one client of an endpoint: it speaks the protocol, and what is asked is answered by `answer`.
 * @param method The one method that it is made for (the newer era): one that nobody answers is then refused as the
 * protocol has it, before anything runs.
 */
export async function makeServer(context: () => EndpointContext, answer: Answerer, method?: string): Promise<Server> {
  const [capabilities, instructions] = await Promise.all([capabilitiesOf(context()), instructionsOf(context())]);
  const server = new Server(OWN_NAME, { capabilities, ...(instructions === undefined ? {} : { instructions }) });
  for (const method of NOT_OURS) server.removeRequestHandler(method);
  if (method !== undefined && !answersMethod(context(), method)) return server;
  server.fallbackRequestHandler = async (request, ctx) => {
    const now = context();
    const params = objectFromWire(request.params ?? {});
    const result = await answer(now, clientRequest(now, request.method, params, ctx), { ...params, ...liftedOf(ctx) });
    return objectToWire(result);
  };
  return server;
}

/** What the SDK takes out of the parameters of a request that goes on from a question. */
function liftedOf({ mcpReq }: ServerContext): JsonObject {
  const state = mcpReq.requestState();
  const { inputResponses } = mcpReq;
  return {
    ...(typeof state === 'string' ? { requestState: state } : {}),
    ...(inputResponses === undefined ? {} : { inputResponses: objectFromWire(inputResponses) }),
  };
}

function clientRequest(
  context: EndpointContext,
  method: string,
  params: JsonObject,
  ctx: ServerContext,
): ClientRequest {
  const { mcpReq } = ctx;
  return {
    method,
    params,
    cancelled: mcpReq.signal,
    ...(context.gateway.tracing === undefined ? {} : { trace: traceOf(ctx) }),
    notify: (name, told) => {
      mcpReq.notify({ method: name, params: objectToWire(told) }).catch((error: unknown) => {
        context.gateway.log.debug({ err: error, method: name }, 'a notification did not reach an MCP client');
      });
    },
    ask: async (questions) => {
      const answers: Record<string, JsonObject> = {};
      for (const [name, question] of Object.entries(questions)) answers[name] = await ask(context, question, ctx);
      return answers;
    },
  };
}

function traceOf({ http }: ServerContext): TraceCarrier {
  const read = (name: string): string | undefined => http?.req?.headers.get(name) ?? undefined;
  return { traceparent: read('traceparent'), tracestate: read('tracestate') };
}

/** Capabilities that a client must have to be asked. */
const NEEDED: Readonly<Record<string, string>> = {
  'elicitation/create': 'elicitation',
  'sampling/createMessage': 'sampling',
  'roots/list': 'roots',
};

/** Whether a client that says this of itself can be asked that. */
export function canBeAsked(capabilities: JsonObject, { method }: AskedOfClient): boolean {
  const needed = Object.hasOwn(NEEDED, method) ? NEEDED[method] : undefined;
  return needed !== undefined && typeof capabilities[needed] === 'object';
}

async function ask(context: EndpointContext, question: AskedOfClient, { mcpReq }: ServerContext): Promise<JsonObject> {
  if (!canBeAsked(context.capabilities, question)) {
    throw new AskFault('cannot_ask', `the client cannot be asked \`${question.method}\``);
  }
  const params = question.params === undefined ? {} : { params: objectToWire(question.params) };
  const answer = await mcpReq.send({ method: question.method, ...params }, ANY_RESULT, {
    timeout: ASK_MS,
    signal: mcpReq.signal,
  });
  return objectFromWire(answer);
}
