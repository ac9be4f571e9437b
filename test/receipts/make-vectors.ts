import { writeFileSync } from 'node:fs';
import { encodeBase64url } from '../../receipts/base64url.ts';
import { canonicalize } from '../../receipts/canonical.ts';
import { type Confirmation, signConfirmation } from '../../receipts/confirmation.ts';
import { nodeCrypto } from '../../receipts/crypto-node.ts';
import {
  argumentsDigest,
  callFingerprint,
  originsDigest,
  policyDigest,
  resultBytesDigest,
  resultDigest,
  shownDigest,
} from '../../receipts/digest.ts';
import {
  type Entry,
  type EntryBody,
  entryReport,
  type HistoryHeader,
  type Report,
  type WholeHistory,
} from '../../receipts/history.ts';
import { cutHistory } from '../../receipts/history-cut.ts';
import { entryLink, genesisLink, signLink } from '../../receipts/history-links.ts';
import type { JsonValue } from '../../receipts/json-value.ts';
import { renderPublicKeyPem, renderSigningKeyPem } from '../../receipts/keys.ts';

const SEED = Uint8Array.from({ length: 32 }, (_, i) => i);
const KEY = nodeCrypto.signingKey(SEED);
const NONCE = Uint8Array.from({ length: 16 }, (_, i) => 0xf0 + i);
const HEADER: HistoryHeader = {
  format: 'qls-history/1',
  session: 'chat-17',
  issuer: 'gw-2026-11',
  audience: 'shop-gateway',
  nonce: encodeBase64url(NONCE),
};

const GET: JsonValue = { order_id: 'A-1000' };
const CHARGE: JsonValue = { amount: 40.5, card: 'tok_é', order_id: 'A-1000', reference: 9007199254740993n };
const REFUND: JsonValue = { charge_id: 'ch_1' };
const ORDER: JsonValue = { status: 'open', total: 40.5 };
const POLICY = policyDigest(nodeCrypto, canonicalize({ rulebook: 'none' }));

function body(step: number, tool: string, args: JsonValue, origins: JsonValue, more: Partial<EntryBody>): EntryBody {
  return {
    step,
    tool,
    agent: 'desk',
    arguments: argumentsDigest(nodeCrypto, NONCE, canonicalize(args)),
    origins: originsDigest(nodeCrypto, NONCE, canonicalize(origins)),
    labels: [],
    decision: 'allow',
    reasons: ['allow'],
    at: 1_795_979_000_123 + step * 1_000,
    policy: POLICY,
    ...more,
  };
}

const CHARGE_ORIGINS: JsonValue = { amount: 'result:0.total', card: 'context', order_id: 'typed', reference: 'model' };
const LABELS = ['agent:desk', 'untrusted:shop/read_inbox'];
const REASONS = ['argument_origin: reference', 'irreversible_pivot'];

const STEPS: readonly { readonly body: EntryBody; readonly report: Report }[] = [
  {
    body: body(0, 'shop/get_order', GET, { order_id: 'typed' }, {}),
    report: { outcome: 'ran', result: resultDigest(nodeCrypto, NONCE, canonicalize(ORDER)) },
  },
  {
    body: body(1, 'shop/charge_card', CHARGE, CHARGE_ORIGINS, {
      decision: 'confirm',
      reasons: REASONS,
      labels: LABELS,
      run: 'r-9',
    }),
    report: {},
  },
  {
    body: body(2, 'shop/charge_card', CHARGE, CHARGE_ORIGINS, { reasons: ['confirmed'], labels: LABELS, run: 'r-9' }),
    report: { outcome: 'outcome_unknown' },
  },
  {
    body: body(
      3,
      'shop/refund_card',
      REFUND,
      {},
      {
        reasons: ['compensation'],
        run: 'r-9',
        undoes: 2,
        reports: [
          {
            step: 2,
            outcome: 'ran',
            result: resultBytesDigest(nodeCrypto, NONCE, new TextEncoder().encode('charged')),
          },
        ],
      },
    ),
    report: { outcome: 'ran' },
  },
];

interface MadeHistory {
  readonly history: WholeHistory;
  readonly genesis: string;
  readonly steps: readonly {
    readonly report_before: string;
    readonly body: string;
    readonly link: string;
    readonly token: string;
  }[];
}

function makeHistory(): MadeHistory {
  const genesis = genesisLink(nodeCrypto, HEADER);
  let prev = genesis;
  let before: Report = {};
  const entries: Entry[] = [];
  const steps = STEPS.map(({ body: signed, report }) => {
    const reportBefore = canonicalize(before);
    prev = entryLink(nodeCrypto, genesis, prev, before, signed);
    before = report;
    const token = signLink(KEY, prev);
    entries.push({ ...signed, token, ...entryReport(report) });
    return { report_before: reportBefore, body: canonicalize(signed), link: encodeBase64url(prev), token };
  });
  return { history: { ...HEADER, entries }, genesis: encodeBase64url(genesis), steps };
}

function digestVectors(): JsonValue {
  const shown = {
    tool: 'shop/charge_card',
    agent: 'desk',
    arguments: CHARGE,
    origins: CHARGE_ORIGINS,
    reasons: REASONS,
  };
  return {
    nonce: HEADER.nonce,
    rows: [
      {
        domain: 'qls-arguments/1',
        json: canonicalize(CHARGE),
        digest: argumentsDigest(nodeCrypto, NONCE, canonicalize(CHARGE)),
      },
      { domain: 'qls-origins/1', json: '{}', digest: originsDigest(nodeCrypto, NONCE, canonicalize({})) },
      {
        domain: 'qls-result/1',
        json: canonicalize(ORDER),
        digest: resultDigest(nodeCrypto, NONCE, canonicalize(ORDER)),
      },
      {
        domain: 'qls-result-bytes/1',
        bytes: 'Y2hhcmdlZA',
        digest: resultBytesDigest(nodeCrypto, NONCE, new TextEncoder().encode('charged')),
      },
      { domain: 'qls-shown/1', json: canonicalize(shown), digest: shownDigest(nodeCrypto, NONCE, shown) },
      { domain: 'qls-policy/1', without_nonce: true, json: '{"rulebook":"none"}', digest: POLICY },
      {
        domain: 'qls-call/1',
        without_nonce: true,
        json: canonicalize(['shop/charge_card', CHARGE]),
        digest: callFingerprint(nodeCrypto, 'shop/charge_card', canonicalize(CHARGE)),
      },
    ],
  };
}

function confirmationVector(made: MadeHistory): JsonValue {
  const entry = made.history.entries[1];
  const link = made.steps[1]?.link;
  if (entry === undefined || link === undefined) throw new Error('the history has a confirm at step 1');
  const shown = { tool: entry.tool, agent: entry.agent, arguments: CHARGE, origins: CHARGE_ORIGINS, reasons: REASONS };
  const confirmation: Confirmation = {
    id: 'AAECAwQFBgcICQoLDA0ODw',
    session: HEADER.session,
    step: 1,
    link,
    tool: entry.tool,
    agent: entry.agent,
    arguments: entry.arguments,
    shown: shownDigest(nodeCrypto, NONCE, shown),
    expires: 1_796_065_400_123,
    approver: 'ana',
  };
  return { payload: canonicalize(confirmation), token: signConfirmation(KEY, confirmation) };
}

/** Every frozen file's name and text. The same at every run: nothing in it is drawn at random. */
export function makeVectors(): ReadonlyMap<string, string> {
  const made = makeHistory();
  const key = {
    seed: encodeBase64url(SEED),
    public_key: encodeBase64url(KEY.publicBytes),
    signing_pem: renderSigningKeyPem(SEED),
    public_pem: renderPublicKeyPem(KEY.publicBytes),
  };
  const cut = [0, 3].map((step) => cutHistory(nodeCrypto, made.history, step));
  const files: Record<string, JsonValue> = {
    'key.json': key,
    'history.json': { genesis: made.genesis, steps: made.steps, history: made.history },
    'cut.json': cut,
    'digests.json': digestVectors(),
    'confirmation.json': confirmationVector(made),
  };
  return new Map(Object.entries(files).map(([name, value]) => [name, `${canonicalize(value)}\n`]));
}

// Run once to freeze a version of the formats: `node test/receipts/make-vectors.ts`. What is frozen is never overwritten:
// a file that comes out otherwise is a format that broke, not a vector that is old.
if (import.meta.main) {
  for (const [name, text] of makeVectors()) {
    writeFileSync(new URL(`../vectors/receipts/v1/${name}`, import.meta.url), text, { flag: 'wx' });
  }
}
