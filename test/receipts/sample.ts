import { decodeBase64url } from '../../receipts/base64url.ts';
import { canonicalize } from '../../receipts/canonical.ts';
import type { Crypto, SigningKey } from '../../receipts/crypto.ts';
import { nodeCrypto } from '../../receipts/crypto-node.ts';
import { argumentsDigest, originsDigest } from '../../receipts/digest.ts';
import type { Entry, EntryBody, HistoryHeader, Report, WholeHistory } from '../../receipts/history.ts';
import { entryLink, genesisLink, signLink } from '../../receipts/history-links.ts';
import type { Issuer, VerifyOptions } from '../../receipts/history-verify.ts';
import type { JsonValue } from '../../receipts/json-value.ts';

/** The time at which every sample stands, in milliseconds. */
export const NOW = 1_795_979_000_123;

/** A signing key whose 32-byte seed is one byte repeated. */
export function sampleKey(byte: number, crypto: Crypto = nodeCrypto): SigningKey {
  return crypto.signingKey(new Uint8Array(32).fill(byte));
}

export const GATEWAY_KEY: SigningKey = sampleKey(7);

/** 32 bytes in base64url that are nothing's digest but could be. */
export const SOME_DIGEST = 'AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE';

export const HEADER: HistoryHeader = {
  format: 'qls-history/1',
  session: 'chat-17',
  issuer: 'shop-gateway',
  audience: 'shop-gateway',
  nonce: 'AAECAwQFBgcICQoLDA0ODw',
};

/** Bytes of a text that is known to be base64url. */
export function bytesOf(text: string): Uint8Array {
  const bytes = decodeBase64url(text);
  if (bytes === undefined) throw new Error('not base64url');
  return bytes;
}

/** A body with the sample's usual members; `changes` win. */
export function sampleBody(
  step: number,
  changes: Partial<EntryBody> = {},
  args: JsonValue = { order_id: 'A-1' },
): EntryBody {
  const nonce = bytesOf(HEADER.nonce);
  return {
    step,
    tool: 'shop/get_order',
    agent: 'desk',
    arguments: argumentsDigest(nodeCrypto, nonce, canonicalize(args)),
    origins: originsDigest(nodeCrypto, nonce, canonicalize({ order_id: 'typed' })),
    labels: [],
    decision: 'allow',
    reasons: ['allow'],
    at: NOW - 10_000 + step,
    policy: SOME_DIGEST,
    ...changes,
  };
}

/** Bodies with the report that each came to have in, a signed history out. */
export function signedHistory(
  steps: readonly { readonly body: EntryBody; readonly report?: Report }[],
  key: SigningKey = GATEWAY_KEY,
  header: HistoryHeader = HEADER,
  crypto: Crypto = nodeCrypto,
): WholeHistory {
  const genesis = genesisLink(crypto, header);
  let prev = genesis;
  let before: Report = {};
  const entries = steps.map(({ body, report }): Entry => {
    prev = entryLink(crypto, genesis, prev, before, body);
    before = report ?? {};
    return { ...body, token: signLink(key, prev), ...before };
  });
  return { ...header, entries };
}

/** Four steps with everything that an entry may have: labels, a run, an undo, results, a late report. */
export function richHistory(): WholeHistory {
  return signedHistory([
    { body: sampleBody(0), report: { outcome: 'ran', result: SOME_DIGEST } },
    {
      body: sampleBody(1, {
        tool: 'shop/charge_card',
        decision: 'confirm',
        reasons: ['write'],
        labels: ['agent:desk', 'untrusted:shop/inbox'],
      }),
    },
    {
      body: sampleBody(
        2,
        { tool: 'shop/charge_card', reasons: ['confirmed'], run: 'r-9' },
        { amount: 40, order_id: 'A-1' },
      ),
      report: { outcome: 'outcome_unknown' },
    },
    {
      body: sampleBody(
        3,
        {
          tool: 'shop/refund_card',
          reasons: ['compensation'],
          run: 'r-9',
          undoes: 2,
          reports: [{ step: 2, outcome: 'ran', result: SOME_DIGEST }],
        },
        { charge_id: 'ch_1' },
      ),
    },
  ]);
}

/** One issuer with one key that is always good. */
export function issuerOf(key: SigningKey, crypto: Crypto = nodeCrypto): Issuer {
  return { keys: [{ key: crypto.publicKey(key.publicBytes) }], limits: 'none' };
}

/** Options under which the samples verify; `changes` win. */
export function sampleOptions(changes: Partial<VerifyOptions> = {}): VerifyOptions {
  return {
    crypto: nodeCrypto,
    now: NOW,
    audience: 'shop-gateway',
    issuers: new Map([['shop-gateway', issuerOf(GATEWAY_KEY)]]),
    ...changes,
  };
}
