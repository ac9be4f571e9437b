import { decodeBase64url } from '../../receipts/base64url.ts';
import { canonicalize } from '../../receipts/canonical.ts';
import { portableCrypto } from '../../receipts/crypto-portable.ts';
import { argumentsDigest, originsDigest } from '../../receipts/digest.ts';
import { type Entry, entryReport, HistoryFault, type WholeHistory } from '../../receipts/history.ts';
import { appendEntry, type ChainPoint, chainEnd, chainStart } from '../../receipts/history-append.ts';
import { verifyLink } from '../../receipts/history-links.ts';
import { type IssuerKey, type VerifiedHistory, verifyHistory } from '../../receipts/history-verify.ts';
import type { JsonObject } from '../../receipts/json-value.ts';
import type { Check } from './check.ts';
import { UntrustedAnswer } from './errors.ts';
import { readKeys } from './public-keys.ts';

/** The call that an answer is to, as it was sent. */
export interface SentCall {
  readonly arguments: JsonObject;
  readonly origins: JsonObject;
  /** Arguments may have been filled in from the config's `defaults`: then they are not what was sent. */
  readonly mayFill: boolean;
}

/**
 * Verifies what a gateway answers with nothing but its public key: that an entry is the next one of the history, signed,
 * and says what the answer says of the call that was sent. Throws `UntrustedAnswer` for what does not hold.
 */
export class AnswerVerifier {
  readonly #keys: readonly IssuerKey[];

  /** @param publicKey as base64url of 32 bytes or PEM text; several over a rotation. Throws `KeyFault`. */
  constructor(publicKey: string | readonly string[]) {
    this.#keys = readKeys(publicKey);
  }

  /** A whole history in, verified from its first entry on. */
  history(history: WholeHistory): VerifiedHistory {
    try {
      return verifyHistory(history, {
        crypto: portableCrypto,
        now: Date.now(),
        audience: history.audience,
        issuers: new Map([[history.issuer, { keys: this.#keys, limits: 'none' }]]),
      });
    } catch (error) {
      if (!(error instanceof HistoryFault)) throw error;
      throw new UntrustedAnswer(`the history does not verify: ${error.message}`, error);
    }
  }

  /** Where a history that verified ends; the point before its first entry where it has none. */
  pointOf(history: WholeHistory): ChainPoint {
    return history.entries.length === 0 ? chainStart(portableCrypto, history) : chainEnd(this.history(history));
  }

  /**
   * The answer to one call in, the point behind its entry out.
   * @param history the history that was sent with the call
   * @param point where that ends, its last entry's report included
   */
  answer(history: WholeHistory, point: ChainPoint, entry: Entry, check: Check, sent: SentCall): ChainPoint {
    if (entry.step !== point.step + 1) throw untrusted(entry, 'it is not the next of the history');
    const next = appendEntry(portableCrypto, point, entry);
    const token = decodeBase64url(entry.token, 64);
    const signed = token !== undefined && this.#keys.some(({ key }) => verifyLink(key, next.link, token));
    if (!signed) throw untrusted(entry, 'no key of the gateway has signed it');
    const nonce = decodeBase64url(history.nonce, 16);
    if (nonce === undefined) throw untrusted(entry, 'its history has no nonce');
    const same =
      entry.tool === check.tool &&
      entry.agent === check.agent &&
      entry.step === check.step &&
      history.session === check.session &&
      entry.decision === check.decision &&
      entry.reasons.length === check.reasons.length &&
      entry.reasons.every((reason, i) => reason === check.reasons[i]);
    if (!same) throw untrusted(entry, 'the answer says otherwise than what was signed');
    const args = argumentsDigest(portableCrypto, nonce, canonicalize(sent.arguments));
    if (!sent.mayFill && entry.arguments !== args) throw untrusted(entry, 'it is of other arguments');
    if (entry.origins !== originsDigest(portableCrypto, nonce, canonicalize(sent.origins))) {
      throw untrusted(entry, 'it is of other origins');
    }
    return next;
  }

  /** The point with what became of its entry's call, as the next link will freeze it. */
  reported(point: ChainPoint, entry: Entry): ChainPoint {
    return { ...point, report: entryReport(entry) };
  }
}

function untrusted(entry: Entry, why: string): UntrustedAnswer {
  return new UntrustedAnswer(`the answer’s entry of step ${entry.step} is not to be believed: ${why}`);
}
