import { decodeBase64url } from '../../receipts/base64url.ts';
import { canonicalize } from '../../receipts/canonical.ts';
import { portableCrypto } from '../../receipts/crypto-portable.ts';
import { resultDigest } from '../../receipts/digest.ts';
import { type Entry, HISTORY_FORMAT, type Outcome, type Report, type WholeHistory } from '../../receipts/history.ts';
import type { ChainPoint } from '../../receipts/history-append.ts';
import { parseEntry, parseHistory } from '../../receipts/history-parse.ts';
import { mayFollow } from '../../receipts/history-reports.ts';
import type { JsonObject, JsonValue } from '../../receipts/json-value.ts';
import type { AnswerVerifier, SentCall } from './answer-verifier.ts';
import type { Check } from './check.ts';
import { BadAnswer } from './errors.ts';

/** The history of a session that carries its own: what is sent with each call, and grows by each answer. */
export class CarriedHistory {
  readonly #verifier: AnswerVerifier | undefined;
  #history: WholeHistory | undefined;
  /** Where the history ends; kept only where answers are verified. */
  #point: ChainPoint | undefined;

  constructor(history: WholeHistory | undefined, verifier: AnswerVerifier | undefined) {
    this.#history = history;
    this.#verifier = verifier;
    this.#point = history === undefined ? undefined : verifier?.pointOf(history);
  }

  get history(): WholeHistory | undefined {
    return this.#history;
  }

  /** What goes with the next call of a session. */
  toSend(session: string): JsonObject {
    return this.#history ?? { format: HISTORY_FORMAT, session, entries: [] };
  }

  /** Takes an answer: its entry is the next of the history, or the first of a new one. Throws `BadAnswer`, `UntrustedAnswer`. */
  take(answer: JsonObject, check: Check, sent: SentCall): void {
    const { entry, history: header } = answer;
    // A confirm that still waits, and a history of somebody else's, append nothing.
    if (entry === undefined) return;
    let history = this.#history;
    let point = this.#point;
    if (header !== undefined) {
      history = begun(header);
      point = this.#verifier?.pointOf(history);
    }
    if (history === undefined) throw new BadAnswer('the first answer of a carried history does not begin one', answer);
    const parsed = parseEntry(entry, history.entries.length, history.entries.length);
    if (this.#verifier !== undefined && point !== undefined) {
      this.#point = this.#verifier.answer(history, point, parsed, check, sent);
    }
    this.#history = { ...history, entries: [...history.entries, parsed] };
  }

  /** Notes what became of a step's call, where the history still may: what is known later stands in a later entry. */
  report(step: number, outcome: Outcome, result: JsonValue | undefined): void {
    const history = this.#history;
    const last = history?.entries.at(-1);
    if (history === undefined || last?.step !== step || !mayFollow(last.outcome, outcome)) return;
    const { outcome: _before, result: _of, ...rest } = last;
    const entry: Entry = { ...rest, ...reportOf(history, outcome, result) };
    this.#history = { ...history, entries: [...history.entries.slice(0, -1), entry] };
    if (this.#point !== undefined) this.#point = this.#verifier?.reported(this.#point, entry);
  }
}

function begun(header: JsonValue): WholeHistory {
  const parsed = parseHistory({ ...(header as JsonObject), entries: [] });
  if (parsed.kind !== 'whole') throw new BadAnswer('the answer begins no history', header);
  return parsed.history;
}

function reportOf(history: WholeHistory, outcome: Outcome, result: JsonValue | undefined): Report {
  const nonce = decodeBase64url(history.nonce, 16);
  if (result === undefined || nonce === undefined) return { outcome };
  return { outcome, result: resultDigest(portableCrypto, nonce, canonicalize(result)) };
}
