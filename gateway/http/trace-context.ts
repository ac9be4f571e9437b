import type { CallSpan } from '../tracing/span.ts';
import type { EdgeExchange } from './edge-exchange.ts';

const TRACEPARENT = /^(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/;

/** The trace that a call belongs to: the `traceparent` of its request, and its span where spans are made. */
export function traceOf(exchange: EdgeExchange): { readonly traceparent?: string; readonly span?: CallSpan } {
  const { span } = exchange;
  const given = parseTraceparent(exchange.header('traceparent'));
  return span === undefined ? given : { ...given, span };
}

/**
 * A `traceparent` as it goes on with its call, or nothing where it is none: what W3C Trace Context section 3.2 does not let
 * through is not for a backend to puzzle over.
 */
export function parseTraceparent(value: unknown): { readonly traceparent?: string } {
  return typeof value === 'string' && TRACEPARENT.test(value) ? { traceparent: value } : {};
}
