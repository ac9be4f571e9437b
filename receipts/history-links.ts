import { encodeBase64url } from './base64url.ts';
import { canonicalize, quoteJson } from './canonical.ts';
import type { Crypto, PublicKey, SigningKey } from './crypto.ts';
import { hashParts, signedBytes } from './digest.ts';
import {
  type EntryBody,
  entryReport,
  type History,
  type HistoryHeader,
  historyHeader,
  type Report,
} from './history.ts';

/** A history's header in, link(-1) out: 32 bytes under which no other session, issuer or audience has a link. */
export function genesisLink(crypto: Crypto, header: HistoryHeader): Uint8Array {
  return hashParts(crypto, 'qls-history/1 genesis', canonicalize(historyHeader(header)));
}

/**
 * link(n): the genesis, link(n-1) (the genesis itself for n = 0), the report of entry n-1 (`{}` for n = 0) and the body
 * in, 32 bytes out. This is all that appending to a held history takes, however long it is. Members of a full entry
 * that are not its body's are left out here, so an entry may be passed as it is.
 */
export function entryLink(
  crypto: Crypto,
  genesis: Uint8Array,
  prev: Uint8Array,
  prevReport: Report,
  body: EntryBody,
): Uint8Array {
  return linkOf(crypto, genesis, prev, prevReport, writeBody(body));
}

/** As `entryLink`, of a body that `writeBody` has written. */
export function linkOf(
  crypto: Crypto,
  genesis: Uint8Array,
  prev: Uint8Array,
  prevReport: Report,
  body: string,
): Uint8Array {
  return hashParts(crypto, 'qls-history/1 link', genesis, prev, writeReport(prevReport), body);
}

/** An entry's link in, its token out: the signature over `qls-history/1 token`, a zero byte and the link, in base64url. */
export function signLink(key: SigningKey, link: Uint8Array): string {
  return encodeBase64url(key.sign(signedBytes('qls-history/1 token', link)));
}

/** Whether the 64 bytes are this key's token for this link. */
export function verifyLink(key: PublicKey, link: Uint8Array, token: Uint8Array): boolean {
  return key.verify(signedBytes('qls-history/1 token', link), token);
}

/** Every link of a whole history from step 0 on, or the one link of a cut one. Hashes only; verifies nothing. */
export function historyLinks(crypto: Crypto, history: History, genesis: Uint8Array, prev: Uint8Array): Uint8Array[] {
  let before = prev;
  let report: Report = history.prev ?? {};
  return history.entries.map((entry) => {
    before = entryLink(crypto, genesis, before, report, entry);
    report = entry;
    return before;
  });
}

/** A report in, its canonical text out; `{}` where nothing was reported. */
function writeReport(report: Report): string {
  return report.outcome === undefined ? '{}' : canonicalize(entryReport(report));
}

/**
 * The canonical text of an entry's body, its members written in their sorted order at once: four times as fast as
 * sorting them for each of ten thousand entries. A test holds it to what `canonicalize` gives.
 */
export function writeBody(body: EntryBody): string {
  const { reports, run, undoes } = body;
  return `{"agent":${quoteJson(body.agent)},"arguments":"${body.arguments}","at":${body.at},"decision":"${body.decision}","labels":${writeTexts(body.labels)},"origins":"${body.origins}","policy":${quoteJson(body.policy)},"reasons":${writeTexts(body.reasons)}${reports === undefined ? '' : `,"reports":${canonicalize(reports)}`}${run === undefined ? '' : `,"run":${quoteJson(run)}`},"step":${body.step},"tool":${quoteJson(body.tool)}${undoes === undefined ? '' : `,"undoes":${undoes}`}}`;
}

function writeTexts(texts: readonly string[]): string {
  if (texts.length === 0) return '[]';
  let text = `[${quoteJson(texts[0] ?? '')}`;
  for (let i = 1; i < texts.length; i++) text += `,${quoteJson(texts[i] ?? '')}`;
  return `${text}]`;
}
