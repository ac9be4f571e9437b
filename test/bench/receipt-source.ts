import { randomBytes } from 'node:crypto';
import { encodeBase64url } from '../../receipts/base64url.ts';
import { canonicalize } from '../../receipts/canonical.ts';
import type { SigningKey } from '../../receipts/crypto.ts';
import { nodeCrypto } from '../../receipts/crypto-node.ts';
import { argumentsDigest, originsDigest } from '../../receipts/digest.ts';
import type { CutHistory, EntryBody, HistoryHeader, WholeHistory } from '../../receipts/history.ts';
import { appendEntry, type ChainPoint, chainStart } from '../../receipts/history-append.ts';
import { makeCut } from '../../receipts/history-cut.ts';
import { signLink } from '../../receipts/history-links.ts';
import type { JsonObject } from '../../receipts/json-value.ts';

/** The issuer of the benchmark: a runtime that checks its own calls. Its key is one byte repeated. */
export const BENCH_ISSUER = 'bench-runtime';
const SIGNING: SigningKey = nodeCrypto.signingKey(new Uint8Array(32).fill(42));
export const BENCH_PUBLIC_KEY: string = encodeBase64url(SIGNING.publicBytes);

/** A session of that issuer: each receipt is the next entry of its history, cut to it. */
export class ReceiptSource {
  readonly #header: HistoryHeader;
  readonly #arguments: string;
  readonly #origins: string;
  #point: ChainPoint;

  /** @param args of every call */
  constructor(session: string, args: JsonObject) {
    const nonce = randomBytes(16);
    const names = { issuer: BENCH_ISSUER, audience: 'bench', nonce: encodeBase64url(nonce) };
    this.#header = { format: 'qls-history/1', session, ...names };
    this.#arguments = argumentsDigest(nodeCrypto, nonce, canonicalize(args));
    this.#origins = originsDigest(nodeCrypto, nonce, canonicalize({}));
    this.#point = chainStart(nodeCrypto, this.#header);
  }

  /** Appends entries that nobody sees, so that the history is `steps` longer. */
  skip(steps: number): void {
    for (let i = 0; i < steps; i++) this.#point = appendEntry(nodeCrypto, this.#point, this.#body());
  }

  /** The next receipt: at step 0 a whole history of one entry, else one cut to its head. */
  next(): WholeHistory | CutHistory {
    const before = this.#point;
    const body = this.#body();
    this.#point = appendEntry(nodeCrypto, before, body);
    const entry = { ...body, token: signLink(SIGNING, this.#point.link) };
    const prev = before.step < 0 ? undefined : { link: before.link, report: before.report };
    return makeCut(this.#header, entry, prev);
  }

  #body(): EntryBody {
    return {
      step: this.#point.step + 1,
      tool: 'shop/put_order',
      agent: 'desk',
      arguments: this.#arguments,
      origins: this.#origins,
      labels: [],
      decision: 'allow',
      reasons: ['allow'],
      at: Date.now(),
      policy: this.#origins,
    };
  }
}
