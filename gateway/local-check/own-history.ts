import { encodeBase64url } from '../../receipts/base64url.ts';
import type { SigningKey } from '../../receipts/crypto.ts';
import { nodeCrypto } from '../../receipts/crypto-node.ts';
import {
  type Entry,
  type EntryBody,
  HISTORY_FORMAT,
  type HistoryHeader,
  type LateReport,
  type Report,
  type WholeHistory,
} from '../../receipts/history.ts';
import { appendEntry, type ChainPoint, chainStart, reportNewest } from '../../receipts/history-append.ts';
import { signLink } from '../../receipts/history-links.ts';
import { newestLate } from '../late-reports.ts';

/** A history that this process signs itself, entry by entry. */
export class OwnHistory {
  readonly header: HistoryHeader;
  readonly nonce: Uint8Array;
  readonly #signing: SigningKey;
  readonly #entries: Entry[] = [];
  #point: ChainPoint;
  #late: readonly LateReport[] = [];

  constructor(signing: SigningKey, nonce: Uint8Array, names: Omit<HistoryHeader, 'format' | 'nonce'>) {
    const { session, issuer, audience } = names;
    this.nonce = nonce;
    this.header = { format: HISTORY_FORMAT, session, issuer, audience, nonce: encodeBase64url(nonce) };
    this.#signing = signing;
    this.#point = chainStart(nodeCrypto, this.header);
  }

  get nextStep(): number {
    return this.#point.step + 1;
  }

  /** Step and link of the newest entry; absent before the first. */
  get head(): { readonly step: number; readonly link: string } | undefined {
    const { step, link } = this.#point;
    return step < 0 ? undefined : { step, link: encodeBase64url(link) };
  }

  /** Signs and appends the next entry, with what became known of earlier ones since the last. */
  append(body: EntryBody): Entry {
    const whole: EntryBody = this.#late.length === 0 ? body : { ...body, reports: this.#late };
    this.#point = appendEntry(nodeCrypto, this.#point, whole);
    this.#late = [];
    const entry: Entry = { ...whole, token: signLink(this.#signing, this.#point.link) };
    this.#entries.push(entry);
    return entry;
  }

  /** What became of a step's call: of the newest beside its entry, of an older one in the next entry. */
  report(step: number, report: Required<Pick<Report, 'outcome'>> & Report): void {
    const last = this.#entries.at(-1);
    if (last?.step !== step) {
      this.#late = newestLate([...this.#late, { step, ...report }]);
      return;
    }
    this.#point = reportNewest(this.#point, report);
    const { outcome: _outcome, result: _result, ...rest } = last;
    this.#entries[this.#entries.length - 1] = { ...rest, ...report };
  }

  toJSON(): WholeHistory {
    return { ...this.header, entries: [...this.#entries] };
  }
}
