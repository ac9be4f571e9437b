import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type NewCredential, newCredential } from '../../gateway/config/credential.ts';
import { decodeBase64url, encodeBase64url } from '../../receipts/base64url.ts';
import { canonicalize } from '../../receipts/canonical.ts';
import type { SigningKey } from '../../receipts/crypto.ts';
import { nodeCrypto } from '../../receipts/crypto-node.ts';
import { argumentsDigest, originsDigest } from '../../receipts/digest.ts';
import type { Entry, EntryBody, HistoryHeader, Report, WholeHistory } from '../../receipts/history.ts';
import { entryLink, genesisLink, signLink } from '../../receipts/history-links.ts';
import type { JsonObject, JsonValue } from '../../receipts/json-value.ts';
import { startTestGateway, type TestGateway } from '../harness/gateway.ts';
import { SOME_DIGEST, sampleKey } from '../receipts/sample.ts';

/** A backend that counts what reaches it, and holds answers back while it is told to. */
export interface CountingBackend {
  readonly url: string;
  /** Requests so far, as `METHOD /path`. */
  readonly seen: readonly string[];
  /** Idempotency keys so far, in order. */
  readonly keys: readonly string[];
  /** Statuses to answer next, in place of 200; `0` breaks the connection off. */
  readonly next: number[];
  /** Milliseconds that every answer takes. */
  delayMs: number;
  close(): Promise<void>;
}

export async function startBackend(): Promise<CountingBackend> {
  const seen: string[] = [];
  const keys: string[] = [];
  const next: number[] = [];
  const state = { delayMs: 0 };
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      seen.push(`${request.method} ${request.url}`);
      const key = request.headers['idempotency-key'];
      if (typeof key === 'string') keys.push(key);
      const status = next.shift() ?? 200;
      const body = Buffer.concat(chunks).toString('utf8');
      setTimeout(() => {
        if (status === 0) return request.socket.destroy();
        response.writeHead(status, { 'content-type': 'application/json' });
        return response.end(JSON.stringify({ call: seen.length, got: body }));
      }, state.delayMs);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    ...{ seen, keys, next },
    get delayMs(): number {
      return state.delayMs;
    },
    set delayMs(ms: number) {
      state.delayMs = ms;
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** The keys of the issuers; each is one byte repeated. */
export const RUNTIME_KEY: SigningKey = sampleKey(11);
export const NEXT_KEY: SigningKey = sampleKey(12);
const LAPSED_KEY: SigningKey = sampleKey(13);
const REVOKED_KEY: SigningKey = sampleKey(14);
const EARLY_KEY: SigningKey = sampleKey(15);

const KEYS: Readonly<Record<string, SigningKey>> = {
  'desk-runtime': RUNTIME_KEY,
  lapsed: LAPSED_KEY,
  revoked: REVOKED_KEY,
  early: EARLY_KEY,
  nobody: sampleKey(16),
};

export const APP: NewCredential = newCredential();
export const OTHER: NewCredential = newCredential();
export const AGENT: NewCredential = newCredential();
export const ANA: NewCredential = newCredential();

const order = { order_id: { type: 'string' }, amount: { type: 'number' } };
const input = { type: 'object', properties: order, required: ['order_id'] };
/** Takes a note of any type, which makes its schema partial: a check of it always asks. */
const noted = { ...input, properties: { ...order, note: {} } };
const TOOLS = ['get_order', 'charge', 'keyed', 'idem', 'send'].map((name) => `shop/${name}`);

/** Changes to the config of the proofs. */
export interface WorldChange {
  readonly receipts?: object;
  readonly issuers?: readonly object[];
  readonly keys?: object;
  readonly store?: string;
  readonly toolWords?: Readonly<Record<string, object>>;
}

function inlineKey(key: SigningKey): string {
  return encodeBase64url(key.publicBytes);
}

/** Entries of `keys.issuers`: one that is good, and three whose keys are not. */
export function issuersOf(): readonly object[] {
  const speaks = { agents: ['desk', 'billing'], tools: TOOLS };
  return [
    { id: 'desk-runtime', public_key: inlineKey(RUNTIME_KEY), ...speaks },
    { id: 'lapsed', public_key: inlineKey(LAPSED_KEY), not_after: '2026-01-01', ...speaks },
    { id: 'revoked', public_key: inlineKey(REVOKED_KEY), revoked_at: '2026-01-01T00:00:00Z', ...speaks },
    { id: 'early', public_key: inlineKey(EARLY_KEY), not_before: '2900-01-01', ...speaks },
  ];
}

export function worldConfig(upstream: string, change: WorldChange = {}): object {
  const app = { key: APP.digest, host: true, name: 'app' };
  const other = { key: OTHER.digest, host: true, name: 'other' };
  const waived = { confirm: 'reasons', undo: 'none' };
  const words: Readonly<Record<string, object>> = {
    charge: waived,
    keyed: { ...waived, idempotency: { header: 'Idempotency-Key' } },
    idem: { ...waived, idempotent: true },
    send: waived,
    ...change.toolWords,
  };
  const route = (name: string, verify: string): object => ({
    name,
    path: `/${name}`,
    upstream,
    verify,
    agents: ['desk', 'billing', 'night'],
    http: [
      { name: 'get_order', method: 'GET', path: '/orders/{order_id}' },
      { name: 'charge', method: 'POST', path: '/charge', writes: true, input: noted },
      { name: 'keyed', method: 'POST', path: '/keyed', writes: true, input },
      { name: 'idem', method: 'POST', path: '/idem', writes: true, input },
      { name: 'send', method: 'POST', path: '/send', writes: true, input },
      { name: 'secret', method: 'POST', path: '/secret', writes: true, input },
    ],
    tools: [
      ...Object.entries(words).map(([tool, of]) => ({ name: tool, ...of })),
      { name: 'secret', undo: 'none', agents: ['night'] },
    ],
  });
  return {
    tenant: 'proofs',
    audience: 'shop-gateway',
    keys: { signing: './gateway.pem', issuers: change.issuers ?? issuersOf(), ...change.keys },
    receipts: { max_age: '5m', ...change.receipts },
    ...(change.store === undefined ? {} : { store: change.store }),
    agents: {
      desk: { credentials: [app, other, AGENT.digest] },
      billing: { privilege: 'high', credentials: [app, other] },
      night: {},
    },
    approvers: [{ name: 'ana', credentials: [ANA.digest] }],
    routes: [route('shop', 'receipt'), route('mixed', 'either'), route('plain', 'check')],
  };
}

export interface World {
  readonly gateway: TestGateway;
  readonly backend: CountingBackend;
  close(): Promise<void>;
}

export async function startWorld(change: WorldChange = {}): Promise<World> {
  const backend = await startBackend();
  const gateway = await startTestGateway(worldConfig(backend.url, change));
  return {
    gateway,
    backend,
    close: async () => {
      await gateway.close();
      await backend.close();
    },
  };
}

/** What an issuer says of a call, where it is not the usual. */
export interface Said {
  readonly tool?: string;
  readonly agent?: string;
  readonly args?: JsonObject;
  readonly header?: Partial<HistoryHeader>;
  readonly body?: Partial<EntryBody>;
  readonly report?: Report;
  readonly key?: SigningKey;
  /** Entries before the receipt; one where absent. */
  readonly before?: number;
}

let made = 0;

/** A fresh history of an issuer whose last entry allows one call. */
export function issuerHistory(said: Said = {}): WholeHistory {
  const header: HistoryHeader = {
    format: 'qls-history/1',
    session: `s-${process.pid}-${made++}`,
    issuer: 'desk-runtime',
    audience: 'shop-gateway',
    nonce: 'AAECAwQFBgcICQoLDA0ODw',
    ...said.header,
  };
  const nonce = decodeBase64url(header.nonce, 16) ?? new Uint8Array(16);
  const key = said.key ?? KEYS[header.issuer] ?? RUNTIME_KEY;
  const before = said.before ?? 1;
  const genesis = genesisLink(nodeCrypto, header);
  const at = Date.now() - 1_000;
  const entries: Entry[] = [];
  let link = genesis;
  let report: Report = {};
  for (let step = 0; step <= before; step++) {
    const isLast = step === before;
    const args: JsonValue = isLast ? (said.args ?? { amount: 40, order_id: 'A1' }) : { order_id: 'A1' };
    const body: EntryBody = {
      step,
      tool: isLast ? (said.tool ?? 'shop/charge') : 'shop/get_order',
      agent: said.agent ?? 'desk',
      arguments: argumentsDigest(nodeCrypto, nonce, canonicalize(args)),
      origins: originsDigest(nodeCrypto, nonce, canonicalize({})),
      labels: [],
      decision: 'allow',
      reasons: ['allow'],
      at,
      policy: SOME_DIGEST,
      ...(isLast ? said.body : {}),
    };
    link = entryLink(nodeCrypto, genesis, link, report, body);
    report = isLast ? (said.report ?? {}) : { outcome: 'ran' };
    entries.push({ ...body, token: signLink(key, link), ...report });
  }
  return { ...header, entries };
}

/** The value of a `Toolgate-Receipt` header. */
export function inHeader(value: unknown): string {
  return encodeBase64url(new TextEncoder().encode(JSON.stringify(value)));
}

/** A qls-tool-receipt/1, as far as tests look at it. */
export interface ReceiptAnswer {
  readonly decision: string;
  readonly reason: string;
  readonly resend: boolean;
  readonly detail: Record<string, unknown>;
  readonly session?: string;
  readonly step?: number;
}
