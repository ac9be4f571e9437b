import { encodeBase64url } from './base64url.ts';
import type { VerifiedHistory } from './history-verify.ts';

/** Where a session stands, as a store keeps it: the newest step and its link in base64url. */
export interface Head {
  readonly step: number;
  readonly link: string;
}

/** A verified history in, its own head out; `undefined` while it has no entry. */
export function historyHead(verified: VerifiedHistory): Head | undefined {
  const link = verified.links.at(-1);
  const entry = verified.history.entries.at(-1);
  return link === undefined || entry === undefined ? undefined : { step: entry.step, link: encodeBase64url(link) };
}

/**
 * How a verified whole history stands to the head that the store keeps for its session (`undefined`: none yet):
 * `same`; `ahead`: it goes on from that head; `dropped`: an earlier point of the same line, as far as `knownLink` (the
 * stored link of a step, where it was kept) can say; `forked`: another line.
 */
export function compareHead(
  verified: VerifiedHistory,
  stored: Head | undefined,
  knownLink: (step: number) => string | undefined,
): 'same' | 'ahead' | 'dropped' | 'forked' {
  const own = historyHead(verified);
  if (stored === undefined) return own === undefined ? 'same' : 'ahead';
  if (own === undefined) return 'dropped';
  if (own.step >= stored.step) {
    const link = verified.links[stored.step - (verified.history.entries[0]?.step ?? 0)];
    if (link === undefined || encodeBase64url(link) !== stored.link) return 'forked';
    return own.step === stored.step ? 'same' : 'ahead';
  }
  const kept = knownLink(own.step);
  return kept === undefined || kept === own.link ? 'dropped' : 'forked';
}
