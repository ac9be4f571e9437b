import { encodeBase64url } from './base64url.ts';
import type { Crypto } from './crypto.ts';
import { type Entry, entryReport, type History, type HistoryHeader, historyHeader, type Report } from './history.ts';
import { genesisLink, historyLinks } from './history-links.ts';

/**
 * A history in, the same cut to the entry of one step (its last where `step` is absent) out: what fits in a header. The
 * links before are recomputed, which costs hashing up to that step. A cut history can be cut to its own step alone.
 * Throws `RangeError` for a step that it does not have.
 */
export function cutHistory(crypto: Crypto, history: History, step?: number): History {
  const index = step === undefined ? history.entries.length - 1 : history.entries.findIndex((e) => e.step === step);
  const entry = history.entries[index];
  if (entry === undefined) throw new RangeError('the history has no entry of that step');
  if (history.prev !== undefined) return history;
  const before = history.entries[index - 1];
  if (before === undefined) return makeCut(history, entry);
  const genesis = genesisLink(crypto, history);
  const upTo = { ...historyHeader(history), entries: history.entries.slice(0, index) };
  const link = historyLinks(crypto, upTo, genesis, genesis).at(-1) ?? genesis;
  return makeCut(history, entry, { link, report: before });
}

/**
 * The cut history of one entry whose link before is already at hand, as a gateway keeps it: nothing is hashed. `prev`
 * is absent for step 0, which has none.
 */
export function makeCut(
  header: HistoryHeader,
  entry: Entry,
  prev?: { readonly link: Uint8Array; readonly report: Report },
): History {
  const five = historyHeader(header);
  if (prev === undefined) return { ...five, entries: [entry] };
  return { ...five, prev: { link: encodeBase64url(prev.link), ...entryReport(prev.report) }, entries: [entry] };
}
