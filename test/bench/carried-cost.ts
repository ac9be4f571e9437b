import { randomBytes } from 'node:crypto';
import { performance } from 'node:perf_hooks';
import { encodeBase64url } from '../../receipts/base64url.ts';
import type { Crypto, PublicKey } from '../../receipts/crypto.ts';
import { nodeCrypto } from '../../receipts/crypto-node.ts';
import type { Entry, EntryBody, WholeHistory } from '../../receipts/history.ts';
import { entryLink, genesisLink, signLink } from '../../receipts/history-links.ts';
import { verifyHistory } from '../../receipts/history-verify.ts';

export interface CarriedCost {
  readonly entries: number;
  /** Signature verifications of a history whose prefix, all but its last entry, is known. */
  readonly verifications: number;
  readonly knownMs: number;
  readonly unknownMs: number;
}

/** What verifying a carried history costs, the first time and when all but its newest entry were seen before. */
export function measureCarried(entries: number): CarriedCost {
  const signing = nodeCrypto.signingKey(randomBytes(32));
  let verifications = 0;
  const counting: PublicKey = {
    bytes: signing.publicBytes,
    verify: (message, signature) => {
      verifications++;
      return nodeCrypto.publicKey(signing.publicBytes).verify(message, signature);
    },
  };
  const history = makeHistory(entries, signing);
  const cache = new Map<string, string>();
  const options = {
    crypto: nodeCrypto as Crypto,
    now: Date.now(),
    audience: 'bench',
    issuers: new Map([['bench', { keys: [{ key: counting }], limits: 'none' as const }]]),
    cache,
  };
  const unknownMs = timed(() => verifyHistory({ ...history, entries: history.entries.slice(0, -1) }, options));
  verifications = 0;
  const knownMs = timed(() => verifyHistory(history, options));
  return { entries, verifications, knownMs, unknownMs };
}

function timed(work: () => unknown): number {
  const before = performance.now();
  work();
  return performance.now() - before;
}

function makeHistory(length: number, signing: ReturnType<Crypto['signingKey']>): WholeHistory {
  const nonce = encodeBase64url(randomBytes(16));
  const header = { format: 'qls-history/1', session: 's', issuer: 'bench', audience: 'bench', nonce } as const;
  const genesis = genesisLink(nodeCrypto, header);
  const digest = encodeBase64url(randomBytes(32));
  const entries: Entry[] = [];
  let link = genesis;
  for (let step = 0; step < length; step++) {
    const body: EntryBody = {
      step,
      tool: 'shop/get_order',
      agent: 'desk',
      arguments: digest,
      origins: digest,
      labels: [],
      decision: 'allow',
      reasons: ['allow'],
      at: Date.now(),
      policy: digest,
    };
    link = entryLink(nodeCrypto, genesis, link, {}, body);
    entries.push({ ...body, token: signLink(signing, link) });
  }
  return { ...header, entries };
}
