import type { IncomingMessage } from 'node:http';
import type { Problem } from '../exchange.ts';
import { checkRawHeaders, headerOf } from './headers.ts';
import type { OriginCheck } from './origin.ts';
import { fault } from './problems.ts';
import { parseTarget, type Target } from './target.ts';

/** What every request is held to. */
export interface RequestRules {
  /** Header fields at most. */
  readonly headers: number;
  /** Characters of the request target at most. */
  readonly targetLength: number;
  readonly checkOrigin?: OriginCheck;
  /** Whether a path may hold `;`. */
  readonly takesMatrix?: (path: string) => boolean;
}

/** Methods that carry no body here (RFC 9110 sections 9.3.1 and 9.3.2: content has no defined meaning). */
const BODILESS: ReadonlySet<string> = new Set(['GET', 'HEAD']);

/**
 * The checks that hold for every request, beside those of the strict parser: what it lets through that another reader could
 * take differently. Answers the target, or the first fault.
 * @param how `awaitsContinue`: it expects `100-continue`. `upgrades`: its Upgrade header is meant and was let through.
 */
export function checkRequest(
  request: IncomingMessage,
  rules: RequestRules,
  how: { readonly awaitsContinue: boolean; readonly upgrades: boolean },
): Target | { readonly problem: Problem } {
  const version = request.httpVersion;
  if (version !== '1.1' && version !== '1.0') {
    return { problem: fault('version_not_supported', 'send the request as HTTP/1.1') };
  }
  const why = checkRawHeaders(request.rawHeaders, rules.headers);
  if (why !== undefined) return { problem: why };
  const headers = request.headers;
  if (headers.host === undefined || headers.host === '') {
    return { problem: fault('bad_request', 'the request has no Host header; send one') };
  }
  const foreign = rules.checkOrigin?.(headers.host, headerOf(request, 'origin'));
  if (foreign !== undefined) return { problem: foreign };
  const coding = headers['transfer-encoding'];
  if (coding !== undefined && (version === '1.0' || coding.toLowerCase() !== 'chunked')) {
    // RFC 9112 section 6.1: a 1.0 request with Transfer-Encoding has faulty framing. Other codings stay undecoded.
    return { problem: fault('bad_request', 'the body may come chunked over HTTP/1.1 alone, with no other coding') };
  }
  if (headers.expect !== undefined && !how.awaitsContinue) {
    return { problem: fault('expectation_failed', 'only `100-continue` can be expected; leave the header out') };
  }
  if (headers.upgrade !== undefined && !how.upgrades) {
    return { problem: fault('upgrade_refused', 'the path takes no upgrade; leave the Upgrade header out') };
  }
  const method = request.method ?? '';
  if (method === 'TRACE') return { problem: fault('method_not_allowed', 'TRACE is not served here') };
  const length = headers['content-length'];
  if (BODILESS.has(method) && (coding !== undefined || (length !== undefined && length !== '0'))) {
    return { problem: fault('body_not_expected', `a ${method} request takes no body; leave it out`) };
  }
  return parseTarget(request.url ?? '', rules.targetLength, rules.takesMatrix);
}
