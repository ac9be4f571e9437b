/** The format's name, in every history's `format`. */
export const HISTORY_FORMAT = 'qls-history/1';

/** What the check answered. */
export type Decision = 'allow' | 'confirm' | 'refuse';

/** What became of an allowed call. */
export type Outcome = 'ran' | 'failed' | 'outcome_unknown' | 'compensated';

/** What is known of an entry's call, as the next link signs it. Both members are absent until something is known. */
export type Report = {
  readonly outcome?: Outcome;
  /** The digest of the answer; absent where there was none to digest. */
  readonly result?: string;
};

/** What became known of an earlier step after its report was frozen. */
export type LateReport = {
  readonly step: number;
  readonly outcome: Outcome;
  readonly result?: string;
};

/** What one check decided, as its token signs it: names and digests, never values. */
export type EntryBody = {
  /** The entry's index in its history, from 0. */
  readonly step: number;
  readonly tool: string;
  /** `''` where the call named none and its credential implied none. */
  readonly agent: string;
  /** The digest of the arguments. */
  readonly arguments: string;
  /** The digest of the origins. */
  readonly origins: string;
  /** Sorted by UTF-16 code units, each once. */
  readonly labels: readonly string[];
  readonly decision: Decision;
  readonly reasons: readonly string[];
  /** Milliseconds since 1970 in UTC. */
  readonly at: number;
  /** The digest of the policy that decided; opaque to every issuer but its own. */
  readonly policy: string;
  readonly run?: string;
  readonly undoes?: number;
  /** Sorted by step, each step once; absent when there are none. */
  readonly reports?: readonly LateReport[];
};

/** An entry as it travels: the body, its token, and what whoever ran the call has added since. */
export type Entry = EntryBody & Report & { readonly token: string };

/** Whose history it is: the five members under every link. */
export type HistoryHeader = {
  readonly format: typeof HISTORY_FORMAT;
  readonly session: string;
  readonly issuer: string;
  readonly audience: string;
  /** 16 random bytes in base64url, under every digest, so that a digest of a low-entropy value cannot be guessed. */
  readonly nonce: string;
};

/** A history with every entry from step 0 on. */
export type WholeHistory = HistoryHeader & { readonly entries: readonly Entry[]; readonly prev?: never };

/** The link before a cut history's only entry, and that entry's report. */
export type Previous = Report & { readonly link: string };

/** A history cut to one entry, small enough for a header. Only receipts may be cut. `prev` is absent at step 0 alone. */
export type CutHistory = HistoryHeader & { readonly entries: readonly [Entry]; readonly prev: Previous };

/** Either, as a caller carries it. A history cut to step 0 is a whole one. */
export type History = WholeHistory | CutHistory;

/** What is wrong with a history, by name. `forked`, `dropped` and `policy` are found against what the gateway keeps. */
export type HistoryFaultCode =
  | 'format'
  | 'order'
  | 'session'
  | 'audience'
  | 'key'
  | 'signature'
  | 'link'
  | 'outcome'
  | 'expired'
  | 'future'
  | 'forked'
  | 'dropped'
  | 'policy';

/** A history that is refused: `fault` says why, `entry` is the index of the first entry at fault (0 for its header). */
export class HistoryFault extends Error {
  readonly code = 'history_invalid';
  readonly fault: HistoryFaultCode;
  readonly entry: number;

  constructor(fault: HistoryFaultCode, entry: number, message: string) {
    super(message);
    this.name = 'HistoryFault';
    this.fault = fault;
    this.entry = entry;
  }
}

/** A full history in, its five header members out. */
export function historyHeader(history: HistoryHeader): HistoryHeader {
  const { format, session, issuer, audience, nonce } = history;
  return { format, session, issuer, audience, nonce };
}

/** An entry in, its report out: the two members that its own token does not cover. */
export function entryReport(entry: Report): Report {
  const { outcome, result } = entry;
  if (outcome === undefined) return {};
  return result === undefined ? { outcome } : { outcome, result };
}
