import { Readable } from 'node:stream';
import { setTimeout as pause } from 'node:timers/promises';
import type { Upstream, UpstreamAnswer, UpstreamCall } from '../exchange.ts';
import { faultPoint } from '../fault-points.ts';
import type { Gateway } from '../gateway.ts';
import type { Allowed } from './allowed.ts';
import { isResendSafe } from './claims.ts';
import { outcomeOfAnswer } from './outcome-of.ts';
import { sendOnce } from './send-once.ts';

const FIRST_PAUSE_MS = 100;

/**
 * Sends a call, and where its end is unclear sends it again, as often as the tool's `retry` says: a read, an idempotent
 * tool, or a write whose backend honours the key, which stays the same. Anything else is sent once. Never rejects.
 */
export async function sendCall(
  gateway: Gateway,
  allowed: Allowed,
  upstream: Upstream,
  call: UpstreamCall,
): Promise<UpstreamAnswer> {
  const { tool, read, claim } = allowed;
  const attempts = isResendSafe(tool) ? read.loaded.retryAttempts(tool) : 0;
  if (claim !== undefined && claim.state !== 'claimed') faultPoint('after-sending');
  for (let attempt = 0; ; attempt++) {
    const answer = await sendOnce(gateway, read.request.span, upstream, call, attempt);
    if (attempt >= attempts || !isUnclear(allowed, answer)) return answer;
    if (call.abort?.aborted === true || gateway.stopping.aborted) return answer;
    if (answer.kind === 'answer' && answer.body instanceof Readable) answer.body.destroy();
    gateway.log.warn(
      { tool: tool.id, attempt, why: whyOf(answer), trace_id: read.request.span?.traceId },
      'the end of a call is unclear; it is sent again',
    );
    // Exponential, with jitter: what failed together does not come back together.
    await pause(FIRST_PAUSE_MS * 2 ** attempt * (0.5 + Math.random()), undefined, { ref: false });
  }
}

/** Nobody knows what became of it. What certainly was not sent is released instead: its caller may send it anew. */
function isUnclear(allowed: Allowed, answer: UpstreamAnswer): boolean {
  return answer.kind !== 'not_sent' && outcomeOfAnswer(allowed, answer) === 'outcome_unknown';
}

function whyOf(answer: UpstreamAnswer): string {
  return answer.kind === 'answer' ? `status_${answer.status}` : answer.code;
}
