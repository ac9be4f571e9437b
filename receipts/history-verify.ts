import { decodeBase64url, encodeBase64url } from './base64url.ts';
import type { Crypto, PublicKey } from './crypto.ts';
import { hashParts } from './digest.ts';
import { type Entry, type History, HistoryFault, type Report } from './history.ts';
import { genesisLink, historyLinks, verifyLink } from './history-links.ts';
import { newestReports } from './history-reports.ts';

/** One key of an issuer and when it was good. Times in milliseconds; both ends of the span are inside it. */
export interface IssuerKey {
  readonly key: PublicKey;
  readonly notBefore?: number;
  readonly notAfter?: number;
  /** From this moment on nothing that says it was signed then is believed. */
  readonly revokedAt?: number;
}

/** Who may sign histories. Several keys, so that one may take over from another. */
export interface Issuer {
  readonly keys: readonly IssuerKey[];
  /** `'none'` for the gateway itself; else the only agents and tools that this issuer's receipts admit. */
  readonly limits: 'none' | { readonly agents: ReadonlySet<string>; readonly tools: ReadonlySet<string> };
}

/**
 * What was verified before: under a name made of the last entry's link, a digest of all tokens up to it. A `Map` or an
 * lru-cache fits. Clear it when an issuer's keys change: what is found here is not verified again.
 */
export interface VerifiedCache {
  get(name: string): string | undefined;
  set(name: string, tokens: string): unknown;
}

/** What a history is verified against. */
export interface VerifyOptions {
  readonly crypto: Crypto;
  /** Milliseconds since 1970. */
  readonly now: number;
  readonly audience: string;
  /** The session that it must be of, where the call names one. */
  readonly session?: string;
  /** By the id in `issuer`: for a check the gateway alone, for a receipt the further issuers too. */
  readonly issuers: ReadonlyMap<string, Issuer>;
  readonly cache?: VerifiedCache;
  /** For a receipt: how old its last entry may be, in milliseconds; the allowed skew comes on top. */
  readonly maxAgeMs?: number;
  /** How far clocks may differ, in milliseconds; 60,000 where absent. */
  readonly skewMs?: number;
}

/** A history whose every token, link and report was verified. */
export interface VerifiedHistory {
  readonly history: History;
  readonly genesis: Uint8Array;
  /** The nonce's 16 bytes, for the digests that are compared with it. */
  readonly nonce: Uint8Array;
  /** link(n) of each entry, in the entries' order: for a cut history one. */
  readonly links: readonly Uint8Array[];
  /** The newest report of each step that has one. */
  readonly reports: ReadonlyMap<number, Report>;
}

/**
 * Verifies a whole or cut history: audience, session, issuer and its key at each entry's time, each token over the
 * recomputed links, reports, times. What the cache knows costs hashing alone. Throws {@link HistoryFault} for the first
 * entry at fault. What only a store can know (forked, dropped, `prev` otherwise, outcomes seen otherwise) is the caller's
 * to compare, with the links and reports that come out.
 */
export function verifyHistory(history: History, options: VerifyOptions): VerifiedHistory {
  const { crypto, session } = options;
  if (session !== undefined && history.session !== session) {
    throw new HistoryFault('session', 0, 'the history is of another session');
  }
  if (history.audience !== options.audience) {
    throw new HistoryFault('audience', 0, 'the history was made for another audience');
  }
  const issuer = options.issuers.get(history.issuer);
  if (issuer === undefined) throw new HistoryFault('key', 0, 'no key of the history’s issuer is known here');
  const nonce = decoded(history.nonce, 16);
  const genesis = genesisLink(crypto, history);
  const prev = history.prev === undefined ? genesis : decoded(history.prev.link, 32);
  const links = historyLinks(crypto, history, genesis, prev);
  const known = knownPrefix(history, links, options);
  for (let i = known; i < links.length; i++) {
    checkToken(history.entries[i] as Entry, i, links[i] as Uint8Array, issuer);
  }
  const reports = newestReports(history.entries, reportBefore(history));
  checkTimes(history.entries, options);
  checkLimits(history.entries, issuer);
  if (known < links.length) remember(history, links, options);
  return { history, genesis, nonce, links, reports };
}

function checkToken(entry: Entry, index: number, link: Uint8Array, issuer: Issuer): void {
  const token = decoded(entry.token, 64);
  let anyValid = false;
  for (const key of issuer.keys) {
    if (!wasValid(key, entry.at)) continue;
    if (verifyLink(key.key, link, token)) return;
    anyValid = true;
  }
  // A true signature of a key that was no longer, or not yet, good is told apart from a false one.
  const retired = !anyValid || issuer.keys.some((key) => !wasValid(key, entry.at) && verifyLink(key.key, link, token));
  if (retired) throw new HistoryFault('key', index, `the key that signed step ${entry.step} was not valid at its time`);
  throw new HistoryFault(
    'signature',
    index,
    `the token of step ${entry.step} does not verify: something before it was changed`,
  );
}

/** Whether the key could sign at this moment (milliseconds). */
export function wasValid(key: IssuerKey, at: number): boolean {
  return at >= (key.notBefore ?? 0) && at <= (key.notAfter ?? Infinity) && at < (key.revokedAt ?? Infinity);
}

/** How many entries from the first on the cache vouches for, tokens included: an edited token is a fault all the same. */
function knownPrefix(history: History, links: readonly Uint8Array[], options: VerifyOptions): number {
  const { cache, crypto } = options;
  if (cache === undefined) return 0;
  for (let i = links.length - 1; i >= 0; i--) {
    const tokens = cache.get(cacheKey(history, links[i] as Uint8Array));
    if (tokens !== undefined) return tokens === tokensDigest(crypto, history.entries, i + 1) ? i + 1 : 0;
  }
  return 0;
}

function remember(history: History, links: readonly Uint8Array[], options: VerifyOptions): void {
  const head = links.at(-1);
  if (head === undefined) return;
  options.cache?.set(cacheKey(history, head), tokensDigest(options.crypto, history.entries, history.entries.length));
}

/** A cut history and the whole one end in one link but have not the same tokens: they must not drive each other out. */
function cacheKey(history: History, link: Uint8Array): string {
  return history.prev === undefined ? encodeBase64url(link) : `cut ${encodeBase64url(link)}`;
}

function tokensDigest(crypto: Crypto, entries: readonly Entry[], length: number): string {
  let tokens = '';
  for (let i = 0; i < length; i++) tokens += (entries[i] as Entry).token;
  return encodeBase64url(hashParts(crypto, 'qls-tokens/1', tokens));
}

function reportBefore(history: History): ReadonlyMap<number, Report> {
  const [entry] = history.entries;
  if (history.prev === undefined || entry === undefined) return new Map();
  const { outcome, result } = history.prev;
  if (outcome === undefined) return new Map();
  return new Map([[entry.step - 1, result === undefined ? { outcome } : { outcome, result }]]);
}

function checkTimes(entries: readonly Entry[], options: VerifyOptions): void {
  const skewMs = options.skewMs ?? 60_000;
  for (let i = 0; i < entries.length; i++) {
    const { at, step } = entries[i] as Entry;
    if (at > options.now + skewMs) throw new HistoryFault('future', i, `step ${step} is dated in the future`);
  }
  const last = entries.at(-1);
  if (options.maxAgeMs !== undefined && last !== undefined && last.at < options.now - options.maxAgeMs - skewMs) {
    throw new HistoryFault(
      'expired',
      entries.length - 1,
      `step ${last.step} is too old to be a receipt: check the call again`,
    );
  }
}

/** The last entry alone is what a receipt admits; an issuer's earlier steps may be of tools that never come here. */
function checkLimits(entries: readonly Entry[], issuer: Issuer): void {
  const last = entries.at(-1);
  if (issuer.limits === 'none' || last === undefined) return;
  const { agents, tools } = issuer.limits;
  if (agents.has(last.agent) && tools.has(last.tool)) return;
  throw new HistoryFault('key', entries.length - 1, 'the history’s issuer may not admit this agent and tool');
}

function decoded(text: string, length: number): Uint8Array {
  const bytes = decodeBase64url(text, length);
  if (bytes === undefined)
    throw new HistoryFault('format', 0, `a member is not ${length} bytes in canonical base64url`);
  return bytes;
}
