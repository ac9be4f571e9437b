import {
  type Context,
  createTraceState,
  ROOT_CONTEXT,
  type Span,
  type SpanContext,
  TraceFlags,
  trace,
} from '@opentelemetry/api';
import { parseTraceparent } from '../http/trace-context.ts';
import type { TraceCarrier } from './span.ts';

/**
 * The context that a span goes on from: that of the first carrier whose `traceparent` is valid, with its `tracestate`;
 * the root of a new trace where none is (W3C Trace Context sections 3.2 and 3.3).
 */
export function contextOf(carriers: readonly TraceCarrier[]): Context {
  for (const { traceparent, tracestate } of carriers) {
    const known = parseTraceparent(traceparent).traceparent;
    if (known === undefined) continue;
    const remote: SpanContext = {
      traceId: known.slice(3, 35),
      spanId: known.slice(36, 52),
      traceFlags: Number.parseInt(known.slice(53), 16) & TraceFlags.SAMPLED,
      isRemote: true,
      // The library takes what section 3.3.1 does, and no more than 512 characters of it.
      ...(tracestate === undefined ? {} : { traceState: createTraceState(tracestate) }),
    };
    return trace.setSpanContext(ROOT_CONTEXT, remote);
  }
  return ROOT_CONTEXT;
}

/** `traceparent` of a span, version 00. */
export function traceparentOf(span: Span): string {
  const { traceId, spanId, traceFlags } = span.spanContext();
  return `00-${traceId}-${spanId}-${(traceFlags & TraceFlags.SAMPLED) === 0 ? '00' : '01'}`;
}
