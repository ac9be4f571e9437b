import type { Span } from './character-classes.ts';
import { findEmails } from './emails.ts';
import { findHosts } from './hosts.ts';
import { findIpv6 } from './ip-addresses.ts';
import { findPaths } from './paths.ts';
import { findNetworkPaths, findUrls } from './urls.ts';

/**
 * The stretches of one text (one view of a string) that name a destination, in order, none inside another.
 * Linear in the text's length, but for the sorting of what was found.
 */
export function findPieces(text: string): Span[] {
  const spans: Span[] = [];
  const colon = text.includes(':');
  const slash = text.includes('/') || text.includes('\\');
  if (colon) findUrls(text, spans);
  if (slash) findNetworkPaths(text, spans);
  if (text.includes('@')) findEmails(text, spans);
  findHosts(text, spans);
  if (colon) findIpv6(text, spans);
  if (slash || text === '..') findPaths(text, spans);
  return spans.length > 1 ? withoutNested(spans) : spans;
}

function withoutNested(spans: Span[]): Span[] {
  spans.sort((left, right) => left.start - right.start || right.end - left.end);
  const kept: Span[] = [];
  let end = -1;
  for (const span of spans) {
    if (span.end <= end) continue;
    kept.push(span);
    end = span.end;
  }
  return kept;
}
