import type { EnforceAnswer, Upstream, UpstreamAnswer, UpstreamCall } from '../exchange.ts';

/**
 * What the rest of the gateway knows of traces. Nothing here or in whoever imports it loads an SDK: a gateway without an
 * exporter has no `Tracing`, and asks for it by one look at a member.
 */

/** W3C trace context as it came with a request: texts, not yet read. */
export interface TraceCarrier {
  readonly traceparent?: string | undefined;
  readonly tracestate?: string | undefined;
}

/** A request at the edge, as far as its span tells of it. */
export interface TracedExchange {
  readonly method: string;
  header(name: string): string | undefined;
  readonly response: { readonly statusCode: number; readonly headersSent: boolean };
  span: CallSpan | undefined;
}

/** Sends a call to its upstream under a span of its own, whose `traceparent` goes along. Never rejects where `send` does not. */
type SendTraced = (upstream: Upstream, call: UpstreamCall, attempt: number) => Promise<UpstreamAnswer>;

/**
 * The span of one call. It takes names of the configuration, codes and numbers: no argument, result, credential, session
 * or text of a caller is ever given to it. After its end everything said to it is passed over.
 */
export interface CallSpan {
  /** Joins the operational log to the trace: 32 hexadecimal digits. */
  readonly traceId: string;
  /** `traceparent` of this span, for what goes on without being a call; absent where backends are told of none. */
  readonly traceparent: string | undefined;
  /** The request matched a path template of the configuration, as callers write it. */
  routed(template: string): void;
  /** The call was checked; the check began at `startedAtMs` of `performance.now()`. */
  checked(startedAtMs: number): void;
  /** A commit of the store that the call waited for; it began at `startedAtMs` of `performance.now()`. */
  stored(startedAtMs: number): void;
  readonly send: SendTraced;
  /**
   * Notes what a call was answered and, once that is known, what became of it. Resolves with the answer as it is.
   * @param tool The tool of the catalogue that was called; absent where there is none of that name.
   */
  answered(tool: string | undefined, answer: EnforceAnswer): void;
  /** The call ended with an error of the gateway, or of the protocol by its code. */
  failed(type: string): void;
  end(): void;
}

/** The spans of a process. */
export interface Tracing {
  /**
   * Handles a request under a span that goes on from its `traceparent` where it has a valid one; `exchange.span` is that
   * span meanwhile. Rejects where `handle` does.
   * @param path Path of the route, or of the API's call: the span's name until the request is matched to more.
   */
  serve(exchange: TracedExchange, path: string, handle: () => Promise<void>): Promise<void>;
  /**
   * Runs a request of an MCP client under a span.
   * @param tool The tool of the catalogue that it is for; absent where there is none of that name.
   */
  serveMcp<T>(
    method: string,
    tool: string | undefined,
    carriers: readonly TraceCarrier[],
    run: (span: CallSpan) => Promise<T>,
  ): Promise<T>;
  /** Runs what the gateway does of its own accord under the root span of a new trace. */
  own<T>(name: string, run: (span: CallSpan) => Promise<T>): Promise<T>;
  /** Sends what belongs to no request that is under way: its span begins a trace. */
  readonly send: SendTraced;
  /** Exports what is left, for a bounded time, and ends. Never rejects. */
  close(): Promise<void>;
}
