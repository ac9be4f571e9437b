import { performance } from 'node:perf_hooks';
import { decodeBase64url } from '../../receipts/base64url.ts';
import { canonicalize } from '../../receipts/canonical.ts';
import { nodeCrypto } from '../../receipts/crypto-node.ts';
import { parseJson } from '../../receipts/json.ts';
import { type ReceiptCall, readReceipt } from '../../receipts/receipt.ts';
import { BENCH_ISSUER, BENCH_PUBLIC_KEY, ReceiptSource } from './receipt-source.ts';

export interface ReceiptCost {
  /** Entries of the history that the receipt was cut from. */
  readonly entries: number;
  /** Length of the receipt as JSON. */
  readonly bytes: number;
  /** To read, verify and compare it, nothing of it known before: median of microseconds. */
  readonly us: number;
}

const ROUNDS = 300;
const ARGUMENTS = { note: 'a note', order_id: '4411' };

/** What a cut receipt costs, by the length of the history that it is the head of. Rounds of the lengths are interleaved. */
export function measureReceipts(lengths: readonly number[]): readonly ReceiptCost[] {
  const key = nodeCrypto.publicKey(decodeBase64url(BENCH_PUBLIC_KEY, 32) ?? new Uint8Array(32));
  const limits = { agents: new Set(['desk']), tools: new Set(['shop/put_order']) };
  const issuers = new Map([[BENCH_ISSUER, { keys: [{ key }], limits }]]);
  const call: ReceiptCall = {
    tool: 'shop/put_order',
    reachable: true,
    agent: 'desk',
    agents: 'any',
    arguments: canonicalize(ARGUMENTS),
  };
  const cases = lengths.map((entries) => {
    const source = new ReceiptSource(`cut-${entries}`, ARGUMENTS);
    source.skip(entries - 1);
    return { entries, text: canonicalize(source.next()), times: [] as number[] };
  });
  for (let round = 0; round < ROUNDS; round++) {
    for (const { text, times } of cases) {
      const before = performance.now();
      const options = { crypto: nodeCrypto, now: Date.now(), audience: 'bench', issuers, maxAgeMs: 300_000 };
      const read = readReceipt(call, parseJson(text), options);
      times.push((performance.now() - before) * 1000);
      if (!('verified' in read)) throw new Error(`the receipt is refused: ${read.answer.reason}`);
    }
  }
  return cases.map(({ entries, text, times }) => {
    const sorted = times.toSorted((a, b) => a - b);
    return { entries, bytes: text.length, us: sorted[Math.floor(ROUNDS / 2)] ?? Number.NaN };
  });
}
