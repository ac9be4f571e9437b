import {
  type Attributes,
  type Context,
  type Span,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from '@opentelemetry/api';
import { type ReasonText, reasonCode } from '../../policy/reasons.ts';
import type { CallOutcome, EnforceAnswer, Upstream, UpstreamAnswer, UpstreamCall } from '../exchange.ts';
import { describeTarget, NAMES } from './attributes.ts';
import type { CallSpan } from './span.ts';
import { traceparentOf } from './trace-texts.ts';

/** What every span of a process is made with. */
export interface SpanMaker {
  readonly tracer: Tracer;
  /** Backends are told the span that their request is made under. */
  readonly propagates: boolean;
}

/** A call's span of the SDK. */
export class SdkCallSpan implements CallSpan {
  readonly #maker: SpanMaker;
  readonly #span: Span;
  /** That its children stand under. */
  readonly #context: Context;
  /** What a backend refused is an error of this span. Over HTTP the status says it, and a 4xx is none of the server's. */
  readonly #refusalIsError: boolean;
  #path = '';
  #method = '';
  #ended = false;

  constructor(maker: SpanMaker, span: Span, parent: Context, refusalIsError: boolean) {
    this.#maker = maker;
    this.#span = span;
    this.#context = trace.setSpan(parent, span);
    this.#refusalIsError = refusalIsError;
  }

  get traceId(): string {
    return this.#span.spanContext().traceId;
  }

  get traceparent(): string | undefined {
    return this.#maker.propagates ? traceparentOf(this.#span) : undefined;
  }

  /** The span is that of a request on this path. */
  onPath(method: string, path: string): void {
    this.#method = method;
    this.#path = path;
  }

  routed(template: string): void {
    const route = `${this.#path}${template}`;
    this.#set({ [NAMES.httpRoute]: route });
    if (!this.#ended) this.#span.updateName(`${this.#method} ${route}`);
  }

  checked(startedAtMs: number): void {
    this.#part('check', startedAtMs);
  }

  stored(startedAtMs: number): void {
    this.#part('store', startedAtMs);
  }

  send(upstream: Upstream, call: UpstreamCall, attempt: number): Promise<UpstreamAnswer> {
    return sendUnder(this.#maker, this.#context, upstream, call, attempt);
  }

  answered(tool: string | undefined, answer: EnforceAnswer): void {
    if (tool !== undefined) this.#set({ [NAMES.tool]: tool });
    switch (answer.kind) {
      case 'decided':
        this.#decided(answer.check.decision, answer.check.reason);
        return;
      case 'receipt':
        this.#decided(answer.receipt.decision, answer.receipt.reason);
        return;
      case 'replayed':
        this.#set({ [NAMES.replayed]: true });
        this.#outcome(answer.outcome);
        return;
      case 'problem':
        this.#set({ [NAMES.problem]: answer.problem.code });
        if (answer.problem.status >= 500) this.failed(answer.problem.code);
        return;
      case 'forwarded':
        this.#decided('allow', answer.check?.reason ?? answer.receipt?.reason ?? 'allow');
        answer.outcome.then(
          (outcome) => this.#outcome(outcome),
          () => this.failed('outcome_not_recorded'),
        );
    }
  }

  /** The request was answered with this status; a 5xx is an error of the server (semantic conventions, "HTTP server"). */
  respond(status: number): void {
    this.#set({ [NAMES.httpStatus]: status });
    if (status >= 500) this.failed(String(status));
  }

  failed(type: string): void {
    if (this.#ended) return;
    this.#span.setStatus({ code: SpanStatusCode.ERROR });
    this.#span.setAttribute(NAMES.errorType, type);
  }

  end(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#span.end();
  }

  #decided(decision: string, reason: ReasonText): void {
    this.#set({ [NAMES.decision]: decision, [NAMES.reason]: reasonCode(reason) });
  }

  #outcome(outcome: CallOutcome): void {
    this.#set({ [NAMES.outcome]: outcome });
    if (outcome === 'outcome_unknown' || (outcome === 'failed' && this.#refusalIsError)) this.failed(outcome);
  }

  #set(attributes: Attributes): void {
    if (!this.#ended) this.#span.setAttributes(attributes);
  }

  /** A part of the call that is over. Its times are those of one clock, so that it lies within the whole. */
  #part(name: string, startedAtMs: number): void {
    if (this.#ended || !this.#span.isRecording()) return;
    this.#maker.tracer.startSpan(name, { startTime: startedAtMs }, this.#context).end(performance.now());
  }
}

/** Sends one request to an upstream under a client span. */
export async function sendUnder(
  { tracer, propagates }: SpanMaker,
  parent: Context,
  upstream: Upstream,
  call: UpstreamCall,
  attempt: number,
): Promise<UpstreamAnswer> {
  const target = upstream.target(call.tool);
  const { name, attributes } = describeTarget(target, call.tool.id, attempt);
  const span = tracer.startSpan(name, { kind: SpanKind.CLIENT, attributes }, parent);
  try {
    const answer = await upstream.send(propagates ? { ...call, ownTraceparent: traceparentOf(span) } : call);
    noteAnswer(span, answer, target.protocol === 'http');
    return answer;
  } catch (error) {
    span.setStatus({ code: SpanStatusCode.ERROR });
    throw error;
  } finally {
    span.end();
  }
}

/** For a client every status from 400 on is an error (semantic conventions, "HTTP client"). */
function noteAnswer(span: Span, answer: UpstreamAnswer, isHttp: boolean): void {
  if (answer.kind === 'answer') {
    const { status, saysFailed } = answer;
    if (isHttp) span.setAttribute(NAMES.httpStatus, status);
    if (status < 400 && saysFailed !== true) return;
    span.setAttribute(NAMES.errorType, isHttp ? String(status) : 'tool_error');
  } else {
    span.setAttribute(NAMES.errorType, answer.code);
  }
  span.setStatus({ code: SpanStatusCode.ERROR });
}
