import { encodeBase64url } from '../../receipts/base64url.ts';
import { canonicalize } from '../../receipts/canonical.ts';
import { portableCrypto } from '../../receipts/crypto-portable.ts';
import { type Entry, HistoryFault, type History as SignedHistory } from '../../receipts/history.ts';
import { cutHistory } from '../../receipts/history-cut.ts';
import { parseHistory } from '../../receipts/history-parse.ts';
import { verifyHistory } from '../../receipts/history-verify.ts';
import { parseJson } from '../../receipts/json.ts';
import type { JsonValue } from '../../receipts/json-value.ts';
import { NoSuchStep } from './errors.ts';
import { readKeys } from './public-keys.ts';

/** What a history is verified against. */
export interface VerifyHistoryOptions {
  /** The issuer's public key, as base64url of its 32 bytes or as PEM text; several over a rotation. */
  readonly publicKey: string | readonly string[];
  /** The gateway that it must be made for; any where absent. */
  readonly audience?: string;
  /** For a receipt: how old its last entry may be, in milliseconds. A minute between clocks comes on top. */
  readonly maxAgeMs?: number;
  /** Milliseconds since 1970; the clock's where absent. */
  readonly now?: number;
}

/** A qls-history/1, whole or cut to one entry (docs/formats.md). Immutable: what goes on is another one. */
export class History {
  readonly #signed: SignedHistory;

  constructor(signed: SignedHistory) {
    this.#signed = signed;
  }

  /**
   * Reads a history: JSON text, or what `JSON.parse` made of it. Only its shape is looked at; see {@link verify}. Throws
   * `HistoryFault` (`history_invalid`, with `fault` and `entry`), or `JsonFault` for a text that is no strict JSON.
   */
  static from(json: string | object): History {
    const value = typeof json === 'string' ? parseJson(json) : (json as JsonValue);
    const parsed = parseHistory(value);
    if (parsed.kind === 'opening')
      throw new HistoryFault('format', 0, 'the history has not begun: it has no issuer yet');
    return new History(parsed.history);
  }

  get session(): string {
    return this.#signed.session;
  }

  get issuer(): string {
    return this.#signed.issuer;
  }

  get audience(): string {
    return this.#signed.audience;
  }

  get entries(): readonly Entry[] {
    return this.#signed.entries;
  }

  /** The newest entry: what a receipt is. */
  get last(): Entry | undefined {
    return this.#signed.entries.at(-1);
  }

  /** Whether it is cut to one entry, and so is a receipt and nothing else. */
  get isCut(): boolean {
    return this.#signed.prev !== undefined;
  }

  /**
   * The history cut to the entry of one step, the last where none is given: a receipt that fits in a header, however long
   * the history is. Throws `NoSuchStep` where there is no such entry.
   */
  cut(step?: number): History {
    try {
      return new History(cutHistory(portableCrypto, this.#signed, step));
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      throw new NoSuchStep('no_receipt', `the history has no entry of step ${step ?? 0}`);
    }
  }

  /** The value of a `Toolgate-Receipt` header: base64url of the JSON. */
  toHeader(): string {
    return encodeBase64url(new TextEncoder().encode(canonicalize(this.#signed)));
  }

  /** Verifies every token over the recomputed links. Throws `HistoryFault` for the first entry at fault, `KeyFault` for a bad key. */
  verify(options: VerifyHistoryOptions): void {
    const { publicKey, audience, maxAgeMs, now } = options;
    verifyHistory(this.#signed, {
      crypto: portableCrypto,
      now: now ?? Date.now(),
      audience: audience ?? this.#signed.audience,
      issuers: new Map([[this.#signed.issuer, { keys: readKeys(publicKey), limits: 'none' }]]),
      ...(maxAgeMs === undefined ? {} : { maxAgeMs }),
    });
  }

  /** The history as JSON carries it. */
  toJSON(): SignedHistory {
    return this.#signed;
  }
}
