import type { EdgeExchange } from './edge-exchange.ts';

const TRACEPARENT = /^(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/;

/**
 * The `traceparent` of a request as it goes on with its call, or nothing where it is none: what W3C Trace Context
 * section 3.2 does not let through is not for a backend to puzzle over.
 */
export function readTraceparent(exchange: EdgeExchange): { readonly traceparent?: string } {
  return parseTraceparent(exchange.header('traceparent'));
}

/** As `readTraceparent`, of a value from elsewhere. */
export function parseTraceparent(value: unknown): { readonly traceparent?: string } {
  return typeof value === 'string' && TRACEPARENT.test(value) ? { traceparent: value } : {};
}
