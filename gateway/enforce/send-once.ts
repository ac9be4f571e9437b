import type { Upstream, UpstreamAnswer, UpstreamCall } from '../exchange.ts';
import type { Gateway } from '../gateway.ts';
import type { CallSpan } from '../tracing/span.ts';

/**
 * Sends one request to an upstream, under a span of its own where spans are made: below that of the call, else of a new trace.
 * @param attempt How often the call was sent before.
 */
export function sendOnce(
  { tracing }: Gateway,
  span: CallSpan | undefined,
  upstream: Upstream,
  call: UpstreamCall,
  attempt = 0,
): Promise<UpstreamAnswer> {
  const traced = span ?? tracing;
  return traced === undefined ? upstream.send(call) : traced.send(upstream, call, attempt);
}
