import { type Context, ROOT_CONTEXT, SpanKind } from '@opentelemetry/api';
import type { Upstream, UpstreamAnswer, UpstreamCall } from '../exchange.ts';
import { mcpAttributes, mcpName, NAMES } from './attributes.ts';
import { SdkCallSpan, type SpanMaker, sendUnder } from './sdk-span.ts';
import type { CallSpan, TraceCarrier, TracedExchange, Tracing } from './span.ts';
import { contextOf } from './trace-texts.ts';

/** The spans of a process, made with the SDK. No context is kept aside: a span is handed on with its call. */
export class SdkTracing implements Tracing {
  readonly #maker: SpanMaker;
  readonly #close: () => Promise<void>;

  /** @param close Exports what is left and ends, within a bounded time. */
  constructor(maker: SpanMaker, close: () => Promise<void>) {
    this.#maker = maker;
    this.#close = close;
  }

  async serve(exchange: TracedExchange, path: string, handle: () => Promise<void>): Promise<void> {
    const { method } = exchange;
    const parent = this.#parentOf([
      { traceparent: exchange.header('traceparent'), tracestate: exchange.header('tracestate') },
    ]);
    const attributes = { [NAMES.httpMethod]: method, [NAMES.httpRoute]: path };
    const started = this.#maker.tracer.startSpan(`${method} ${path}`, { kind: SpanKind.SERVER, attributes }, parent);
    const span = new SdkCallSpan(this.#maker, started, parent, false);
    span.onPath(method, path);
    exchange.span = span;
    try {
      await handle();
    } catch (error) {
      // The edge answers 500 for it, once it hears of it.
      span.failed('internal_error');
      throw error;
    } finally {
      exchange.span = undefined;
      const { response } = exchange;
      if (response.headersSent) span.respond(response.statusCode);
      span.end();
    }
  }

  async serveMcp<T>(
    method: string,
    tool: string | undefined,
    carriers: readonly TraceCarrier[],
    run: (span: CallSpan) => Promise<T>,
  ): Promise<T> {
    const options = { kind: SpanKind.SERVER, attributes: mcpAttributes(method, tool) };
    return this.#run(mcpName(method, tool), options, this.#parentOf(carriers), run);
  }

  own<T>(name: string, run: (span: CallSpan) => Promise<T>): Promise<T> {
    return this.#run(name, { kind: SpanKind.INTERNAL }, ROOT_CONTEXT, run);
  }

  send(upstream: Upstream, call: UpstreamCall, attempt: number): Promise<UpstreamAnswer> {
    return sendUnder(this.#maker, ROOT_CONTEXT, upstream, call, attempt);
  }

  close(): Promise<void> {
    return this.#close();
  }

  async #run<T>(
    name: string,
    options: NonNullable<Parameters<SpanMaker['tracer']['startSpan']>[1]>,
    parent: Context,
    run: (span: CallSpan) => Promise<T>,
  ): Promise<T> {
    const span = new SdkCallSpan(this.#maker, this.#maker.tracer.startSpan(name, options, parent), parent, true);
    try {
      return await run(span);
    } catch (error) {
      span.failed(typeOf(error));
      throw error;
    } finally {
      span.end();
    }
  }

  #parentOf(carriers: readonly TraceCarrier[]): Context {
    return this.#maker.propagates ? contextOf(carriers) : ROOT_CONTEXT;
  }
}

/** The code of a JSON-RPC error, which is what its client is answered; of any other no more than that there was one. */
function typeOf(error: unknown): string {
  return error instanceof Error && 'code' in error && typeof error.code === 'number'
    ? String(error.code)
    : 'internal_error';
}
