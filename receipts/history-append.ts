import type { Crypto } from './crypto.ts';
import { type EntryBody, entryReport, type HistoryHeader, type Report } from './history.ts';
import { entryLink, genesisLink } from './history-links.ts';
import { mayFollow } from './history-reports.ts';
import type { VerifiedHistory } from './history-verify.ts';

/** Where a history stands: all that appending to it takes, however long it is. A store keeps one for each held session. */
export interface ChainPoint {
  readonly genesis: Uint8Array;
  /** The newest entry's step; -1 before the first. */
  readonly step: number;
  /** The newest entry's link; the genesis before the first. */
  readonly link: Uint8Array;
  /** The newest entry's report so far, which the next entry freezes. */
  readonly report: Report;
}

/** A header in, the point before step 0 out. */
export function chainStart(crypto: Crypto, header: HistoryHeader): ChainPoint {
  const genesis = genesisLink(crypto, header);
  return { genesis, step: -1, link: genesis, report: {} };
}

/** A verified history in, the point after its last entry out. */
export function chainEnd(verified: VerifiedHistory): ChainPoint {
  const { genesis, history, links } = verified;
  const last = history.entries.at(-1);
  if (last === undefined) return { genesis, step: -1, link: genesis, report: {} };
  return { genesis, step: last.step, link: links.at(-1) ?? genesis, report: entryReport(last) };
}

/**
 * A point and the next entry's body in, the point after it out; its `link` is what the entry's token signs, now or
 * whenever the entry is handed out. Throws `RangeError` for a body of another step, which is a bug of the caller.
 */
export function appendEntry(crypto: Crypto, point: ChainPoint, body: EntryBody): ChainPoint {
  const step = point.step + 1;
  if (body.step !== step) throw new RangeError(`the next entry is step ${step}, not ${body.step}`);
  const link = entryLink(crypto, point.genesis, point.link, point.report, body);
  return { genesis: point.genesis, step, link, report: {} };
}

/**
 * What became of the newest entry's call in, the point with that report out. While no further entry was appended its
 * report may still change, as the table of reports allows. Throws `RangeError` where it does not.
 */
export function reportNewest(point: ChainPoint, report: Report): ChainPoint {
  const { outcome } = report;
  if (point.step < 0 || outcome === undefined || !mayFollow(point.report.outcome, outcome)) {
    throw new RangeError(`step ${point.step} cannot be \`${outcome}\` after \`${point.report.outcome}\``);
  }
  return { ...point, report: entryReport(report) };
}
