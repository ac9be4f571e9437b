import {
  createRequestStateCodec,
  ProtocolError,
  ProtocolErrorCode,
  type RequestStateCodec,
  type ServerContext,
} from '@modelcontextprotocol/server';
import { LRUCache } from 'lru-cache';
import { canonicalize } from '../../receipts/canonical.ts';
import { isObject, type JsonObject, type JsonValue } from '../../receipts/json-value.ts';
import type { AskedOfClient } from '../exchange.ts';
import type { Gateway } from '../gateway.ts';
import { DENIED } from './answer-legacy.ts';
import { canAskPerson, decideByPerson, questionOf, readAnswer } from './approve.ts';
import { AskFault } from './call-fault.ts';
import { type CallEnd, callTool } from './call-tool.ts';
import type { ClientRequest, EndpointContext } from './client-call.ts';
import { dispatch } from './dispatch.ts';
import { canBeAsked } from './endpoint-server.ts';
import { PendingCall } from './pending-call.ts';

/** Whose a `requestState` is, and of which request: it is no state of any other. */
interface Bound {
  readonly caller: string;
  /** Keyed digest of the method and its parameters. */
  readonly of: string;
}

/** What a `requestState` of the gateway says, signed under the store's secret. */
type State = Bound &
  (
    | /** A call of this process that waits for answers. */
    { readonly kind: 'call'; readonly id: string; readonly round: number }
    /** A confirmation that a host's person is asked for; any process goes on with it. */
    | { readonly kind: 'confirm'; readonly id: string }
  );

const STATE_SECONDS = 15 * 60;
const MAX_WAITING = 10_000;

/** Answers requests of the newer era, where a question ends a request and the answer comes with the next. */
export class ModernAnswerer {
  readonly #codec: RequestStateCodec<State>;
  readonly #waiting = new LRUCache<string, PendingCall<CallEnd>>({
    max: MAX_WAITING,
    dispose: (call, _id, reason) => {
      if (reason === 'evict') call.giveUp();
    },
  });

  readonly #newId: () => string;

  /** @param newId Makes an id that nobody has. */
  constructor(gateway: Gateway, newId: () => string) {
    this.#newId = newId;
    this.#codec = createRequestStateCodec({ key: gateway.keyed('mcp request state'), ttlSeconds: STATE_SECONDS });
  }

  async answer(context: EndpointContext, request: ClientRequest, params: JsonObject): Promise<JsonObject> {
    const { requestState } = params;
    if (requestState === undefined) {
      const { inputResponses } = params;
      const begun = inputResponses === undefined ? request : { ...request, answers: readAnswers(inputResponses) };
      return this.#begin(context, begun, (sent) => dispatch(context, sent));
    }
    const state = await this.#read(requestState);
    const answers = readAnswers(params['inputResponses']);
    const bound = boundTo(context, request);
    if (state.caller !== bound.caller || state.of !== bound.of) throw badState();
    if (state.kind === 'confirm') return this.#confirmed(context, request, state.id, answers);
    const call = this.#waiting.get(state.id);
    // The state of a question that was answered before is no answer to the one that waits now.
    if (call?.rounds !== state.round) throw badState();
    this.#waiting.delete(state.id);
    if (!call.answer(request, answers)) throw badState();
    return this.#next(context, call, state.id, bound);
  }

  /** The id of the waiting call that a message answers; nothing where it answers none of a gateway's. */
  async callOf(params: JsonObject): Promise<string | undefined> {
    const { requestState } = params;
    if (requestState === undefined) return undefined;
    const state = await this.#read(requestState).catch(() => undefined);
    return state?.kind === 'call' ? state.id : undefined;
  }

  /** Ends the waiting of every call. */
  close(): void {
    for (const call of this.#waiting.values()) call.giveUp();
    this.#waiting.clear();
  }

  async #confirmed(
    context: EndpointContext,
    request: ClientRequest,
    id: string,
    answers: Answers,
  ): Promise<JsonObject> {
    const said = canAskPerson(context) ? readAnswer(answers['approve']) : 'open';
    if (said !== 'open') await decideByPerson(context, id, said);
    if (said === 'denied') return DENIED;
    return this.#begin(
      context,
      request,
      (sent) => callTool(context, sent, said === 'approved' ? id : undefined),
      said === 'approved',
    );
  }

  #begin(
    context: EndpointContext,
    request: ClientRequest,
    work: (request: ClientRequest) => Promise<CallEnd>,
    mayAskPerson = true,
  ): Promise<JsonObject> {
    const call = new PendingCall<CallEnd>(context.caller.name, request);
    call.run(work);
    return this.#next(context, call, this.#newId(), boundTo(context, request), mayAskPerson);
  }

  async #next(
    context: EndpointContext,
    call: PendingCall<CallEnd>,
    id: string,
    bound: Bound,
    mayAskPerson = true,
  ): Promise<JsonObject> {
    const event = await call.next();
    if (event.kind === 'ask') {
      const cannot = Object.values(event.questions).find((question) => !canBeAsked(context.capabilities, question));
      if (cannot !== undefined) {
        call.giveUp();
        throw new AskFault('cannot_ask', `the client cannot be asked \`${cannot.method}\``);
      }
      this.#waiting.set(id, call);
      return this.#inputRequired(event.questions, { kind: 'call', id, round: call.rounds, ...bound });
    }
    const { end } = event;
    const confirmation =
      end.kind === 'confirm' && mayAskPerson && canAskPerson(context) ? end.check.confirmation : undefined;
    if (end.kind !== 'confirm' || confirmation === undefined) return end.result;
    return this.#inputRequired({ approve: questionOf(end.check) }, { kind: 'confirm', id: confirmation.id, ...bound });
  }

  async #inputRequired(questions: Readonly<Record<string, AskedOfClient>>, state: State): Promise<JsonObject> {
    const asked = Object.entries(questions).map(([name, { method, params }]) => [
      name,
      { method, ...(params === undefined ? {} : { params }) },
    ]);
    return {
      resultType: 'input_required',
      inputRequests: Object.fromEntries(asked),
      requestState: await this.#codec.mint(state),
    };
  }

  async #read(text: JsonValue): Promise<State> {
    if (typeof text !== 'string') throw badState();
    try {
      // The state is bound to its caller by what it says, not by the context, of which the codec then reads nothing.
      return await this.#codec.verify(text, {} as ServerContext);
    } catch {
      throw badState();
    }
  }
}

/** The caller and the request that a state is bound to; what a request says of itself (`_meta`) is none of it. */
function boundTo({ gateway, caller, server }: EndpointContext, { method, params }: ClientRequest): Bound {
  const { _meta: _own, ...sent } = params;
  return { caller: caller.name, of: gateway.keyed(canonicalize(['mcp request', server ?? '', method, sent])) };
}

type Answers = Readonly<Record<string, JsonObject>>;

function readAnswers(value: JsonValue | undefined): Answers {
  if (!isObject(value)) return {};
  const answers: Record<string, JsonObject> = {};
  for (const [name, answer] of Object.entries(value)) if (isObject(answer)) answers[name] = answer;
  return answers;
}

function badState(): ProtocolError {
  return new ProtocolError(
    ProtocolErrorCode.InvalidParams,
    'the `requestState` is none that waits here, or its time is over; make the call again without it',
  );
}
