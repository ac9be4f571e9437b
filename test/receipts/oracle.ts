import { createHash, createPrivateKey, createPublicKey, type KeyObject, sign, verify } from 'node:crypto';

/*
 * A second implementation of docs/formats.md, written from that page alone: slow, plain, with node:crypto and nothing of
 * the room that it is held against. Where the two disagree, one of them or the page is wrong.
 */

type Obj = Record<string, unknown>;

/** Section 1: an integer beyond ±(2^53-1) digit for digit, everything else as RFC 8785 has it. */
export function jcs(value: unknown): string {
  if (typeof value === 'bigint') return value.toString();
  if (Array.isArray(value)) return `[${value.map(jcs).join(',')}]`;
  if (!isObj(value)) return JSON.stringify(value);
  const names = Object.keys(value).sort((a, b) => compareUnits(a, b));
  return `{${names.map((name) => `${JSON.stringify(name)}:${jcs(value[name])}`).join(',')}}`;
}

function compareUnits(a: string, b: string): number {
  for (let i = 0; i < Math.min(a.length, b.length); i++) {
    const difference = a.charCodeAt(i) - b.charCodeAt(i);
    if (difference !== 0) return difference;
  }
  return a.length - b.length;
}

function isObj(value: unknown): value is Obj {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** H of section 1. */
export function h(domain: string, ...parts: (string | Buffer)[]): Buffer {
  const all = [Buffer.from(domain, 'ascii'), Buffer.of(0), ...parts.map((part) => Buffer.from(part as string))];
  return createHash('sha256').update(Buffer.concat(all)).digest();
}

function signedMessage(domain: string, message: Buffer): Buffer {
  return Buffer.concat([Buffer.from(domain, 'ascii'), Buffer.of(0), message]);
}

/** A signing key from its 32-byte seed. */
export function oracleKey(seed: Uint8Array): KeyObject {
  const der = Buffer.concat([Buffer.from('302e020100300506032b657004220420', 'hex'), seed]);
  return createPrivateKey({ key: der, format: 'der', type: 'pkcs8' });
}

function oraclePublic(raw: Uint8Array): KeyObject {
  return createPublicKey({
    key: { kty: 'OKP', crv: 'Ed25519', x: Buffer.from(raw).toString('base64url') },
    format: 'jwk',
  });
}

const HEADER = ['format', 'session', 'issuer', 'audience', 'nonce'];

function pick(object: Obj, names: readonly string[]): Obj {
  return Object.fromEntries(names.filter((name) => object[name] !== undefined).map((name) => [name, object[name]]));
}

function bodyOf(entry: Obj): Obj {
  return pick(
    entry,
    Object.keys(entry).filter((name) => !['token', 'outcome', 'result'].includes(name)),
  );
}

function reportOf(entry: Obj | undefined): Obj {
  return entry === undefined ? {} : pick(entry, ['outcome', 'result']);
}

/** Section 4: link(-1). */
function oracleGenesis(header: Obj): Buffer {
  return h('qls-history/1 genesis', jcs(pick(header, HEADER)));
}

/** Section 4: every link from step 0 on, the one before the first and its report given. */
function oracleLinks(genesis: Buffer, before: Buffer, reportBefore: Obj, entries: readonly Obj[]): Buffer[] {
  const links: Buffer[] = [];
  entries.forEach((entry, i) => {
    const report = i === 0 ? reportBefore : reportOf(entries[i - 1]);
    links.push(h('qls-history/1 link', genesis, links[i - 1] ?? before, jcs(report), jcs(bodyOf(entry))));
  });
  return links;
}

/** Section 4: the entries (without tokens) signed. */
export function oracleHistory(header: Obj, entries: readonly Obj[], key: KeyObject): Obj {
  const genesis = oracleGenesis(header);
  const links = oracleLinks(genesis, genesis, {}, entries);
  const signed = entries.map((entry, i) => {
    const token = sign(null, signedMessage('qls-history/1 token', links[i] ?? genesis), key);
    return { ...entry, token: token.toString('base64url') };
  });
  return { ...header, entries: signed };
}

/** Section 6. */
export function oracleCut(history: Obj, n: number): Obj {
  const entries = (history['entries'] as Obj[]).slice(0, n + 1);
  const genesis = oracleGenesis(history);
  const links = oracleLinks(genesis, genesis, {}, entries);
  const cut = { ...pick(history, HEADER), entries: entries.slice(-1) };
  return n === 0 ? cut : { ...cut, prev: { link: links[n - 1]?.toString('base64url'), ...reportOf(entries[n - 1]) } };
}

/** Section 8: whether a token's text is a confirmation under this key. */
export function oracleConfirmation(token: string, publicKey: Uint8Array, now: number): 'invalid' | 'expired' | 'open' {
  const [payloadText, signatureText, ...more] = token.split('.');
  if (payloadText === undefined || signatureText === undefined || more.length > 0) return 'invalid';
  if (!spelt(signatureText, 64) || Buffer.from(payloadText, 'base64url').toString('base64url') !== payloadText)
    return 'invalid';
  const payload = Buffer.from(payloadText, 'base64url');
  const message = signedMessage('qls-confirmation/1', payload);
  if (!verify(null, message, oraclePublic(publicKey), Buffer.from(signatureText, 'base64url'))) return 'invalid';
  let said: unknown;
  try {
    said = JSON.parse(payload.toString('utf8'));
  } catch {
    return 'invalid';
  }
  if (!isObj(said) || !Buffer.from(jcs(said)).equals(payload)) return 'invalid';
  const shapes: Record<string, (v: unknown) => boolean> = {
    id: (v) => spelt(v, 16),
    session: isText,
    step: isCount,
    link: isDigest,
    tool: isText,
    agent: isText,
    arguments: isDigest,
    shown: isDigest,
    expires: isCount,
    approver: (v) => v === undefined || isText(v),
  };
  const wrong =
    Object.entries(shapes).some(([name, is]) => !is(said[name])) || Object.keys(said).some((name) => !shapes[name]);
  if (wrong) return 'invalid';
  return now >= Number(said['expires']) ? 'expired' : 'open';
}

/** What section 5 is given. */
export interface OracleOptions {
  readonly now: number;
  readonly audience: string;
  readonly session?: string;
  readonly maxAgeMs?: number;
  readonly issuers: Readonly<
    Record<
      string,
      {
        keys: { raw: Uint8Array; notBefore?: number; notAfter?: number; revokedAt?: number }[];
        agents?: string[];
        tools?: string[];
      }
    >
  >;
}

/** Sections 4 to 6: `ok`, or the fault and the entry at fault as `fault entry`. */
export function oracleVerdict(value: unknown, options: OracleOptions): string {
  const shape = shapeFault(value);
  if (shape !== undefined) return shape;
  const history = value as Obj;
  const entries = history['entries'] as Obj[];
  if (options.session !== undefined && history['session'] !== options.session) return 'session 0';
  if (history['audience'] !== options.audience) return 'audience 0';
  const issuer = Object.hasOwn(options.issuers, String(history['issuer']))
    ? options.issuers[String(history['issuer'])]
    : undefined;
  if (issuer === undefined) return 'key 0';
  const genesis = oracleGenesis(history);
  const prev = history['prev'] as Obj | undefined;
  const before = prev === undefined ? genesis : Buffer.from(String(prev['link']), 'base64url');
  const links = oracleLinks(genesis, before, reportOf(prev), entries);
  for (const [i, entry] of entries.entries()) {
    const at = Number(entry['at']);
    const message = signedMessage('qls-history/1 token', links[i] ?? genesis);
    const verdicts = issuer.keys.map((key) => ({
      valid: at >= (key.notBefore ?? -Infinity) && at <= (key.notAfter ?? Infinity) && at < (key.revokedAt ?? Infinity),
      verifies: verify(null, message, oraclePublic(key.raw), Buffer.from(String(entry['token']), 'base64url')),
    }));
    if (verdicts.some((v) => v.valid && v.verifies)) continue;
    return `${verdicts.every((v) => !v.valid) || verdicts.some((v) => v.verifies) ? 'key' : 'signature'} ${i}`;
  }
  const reported = reportFault(entries, prev);
  if (reported !== undefined) return `outcome ${reported}`;
  const future = entries.findIndex((entry) => Number(entry['at']) - options.now > 60_000);
  if (future !== -1) return `future ${future}`;
  const last = entries.at(-1);
  if (last === undefined) return 'ok';
  if (options.maxAgeMs !== undefined && options.now - Number(last['at']) > options.maxAgeMs + 60_000)
    return `expired ${entries.length - 1}`;
  const { agents, tools } = issuer;
  if (agents === undefined || tools === undefined) return 'ok';
  return agents.includes(String(last['agent'])) && tools.includes(String(last['tool']))
    ? 'ok'
    : `key ${entries.length - 1}`;
}

const AFTER: Readonly<Record<string, readonly string[]>> = {
  none: ['ran', 'failed', 'outcome_unknown', 'compensated'],
  outcome_unknown: ['ran', 'failed', 'compensated'],
  ran: ['compensated'],
  failed: [],
  compensated: [],
};

function reportFault(entries: readonly Obj[], prev: Obj | undefined): number | undefined {
  const held = new Map<unknown, unknown>();
  const denied = new Set<unknown>();
  if (prev?.['outcome'] !== undefined) held.set(Number(entries[0]?.['step']) - 1, prev['outcome']);
  for (const [i, entry] of entries.entries()) {
    if (entry['decision'] !== 'allow') denied.add(entry['step']);
    if (entry['outcome'] !== undefined && denied.has(entry['step'])) return i;
    for (const report of (entry['reports'] ?? []) as Obj[]) {
      const may = AFTER[String(held.get(report['step']) ?? 'none')] ?? [];
      if (denied.has(report['step']) || !may.includes(String(report['outcome']))) return i;
      held.set(report['step'], report['outcome']);
    }
    if (entry['outcome'] !== undefined) held.set(entry['step'], entry['outcome']);
  }
  return undefined;
}

function isText(v: unknown): boolean {
  return typeof v === 'string';
}

function isCount(v: unknown): boolean {
  return typeof v === 'number' && Number.isSafeInteger(v) && v >= 0;
}

function spelt(v: unknown, bytes: number): boolean {
  return (
    typeof v === 'string' &&
    Buffer.from(v, 'base64url').length === bytes &&
    Buffer.from(v, 'base64url').toString('base64url') === v
  );
}

function isDigest(v: unknown): boolean {
  return spelt(v, 32);
}

function isTexts(v: unknown): v is string[] {
  return Array.isArray(v) && v.every(isText);
}

function isAscending<T>(items: readonly T[], compare: (a: T, b: T) => number): boolean {
  return items.every((item, i) => i === 0 || compare(items[i - 1] as T, item) < 0);
}

function isReport(o: Obj): boolean {
  if (o['outcome'] === undefined) return o['result'] === undefined;
  return (
    AFTER['none']?.includes(String(o['outcome'])) === true &&
    isText(o['outcome']) &&
    (o['result'] === undefined || isDigest(o['result']))
  );
}

function isLateReports(v: unknown, step: number): boolean {
  if (!Array.isArray(v) || v.length === 0 || !v.every(isObj)) return false;
  const good = v.every(
    (r) =>
      only(r, ['step', 'outcome', 'result']) &&
      isCount(r['step']) &&
      Number(r['step']) < step &&
      isReport(r) &&
      r['outcome'] !== undefined,
  );
  return good && isAscending(v, (a, b) => Number(a['step']) - Number(b['step']));
}

function only(o: Obj, names: readonly string[]): boolean {
  return Object.keys(o).every((name) => names.includes(name));
}

const ENTRY: Readonly<Record<string, (v: unknown, entry: Obj) => boolean>> = {
  step: isCount,
  tool: (v) => typeof v === 'string' && [...v].length <= 200,
  agent: isText,
  arguments: isDigest,
  origins: isDigest,
  labels: (v) => isTexts(v) && isAscending(v, compareUnits),
  decision: (v) => v === 'allow' || v === 'confirm' || v === 'refuse',
  reasons: isTexts,
  at: isCount,
  policy: isText,
  run: (v, entry) => !('run' in entry) || isText(v),
  undoes: (v, entry) => !('undoes' in entry) || isCount(v),
  reports: (v, entry) => !('reports' in entry) || isLateReports(v, Number(entry['step'])),
  token: (v) => spelt(v, 64),
  outcome: (_v, entry) => isReport(entry),
  result: () => true,
};

function shapeFault(value: unknown): string | undefined {
  if (!isObj(value)) return 'format 0';
  const { entries, prev } = value;
  const named = ['session', 'issuer', 'audience'].every((name) => isText(value[name]) && value[name] !== '');
  if (value['format'] !== 'qls-history/1' || !named || !spelt(value['nonce'], 16) || !Array.isArray(entries))
    return 'format 0';
  if (!only(value, [...HEADER, 'entries', 'prev'])) return 'format 0';
  if (prev !== undefined && entries.length !== 1) return 'format 0';
  for (const [i, entry] of entries.entries()) {
    if (!isObj(entry) || !isCount(entry['step'])) return `format ${i}`;
    if (prev === undefined && entry['step'] !== i) return `order ${i}`;
    if (!only(entry, Object.keys(ENTRY)) || Object.entries(ENTRY).some(([name, is]) => !is(entry[name], entry)))
      return `format ${i}`;
  }
  if (prev === undefined) return undefined;
  const good = isObj(prev) && only(prev, ['link', 'outcome', 'result']) && isDigest(prev['link']) && isReport(prev);
  return good && entries[0].step > 0 ? undefined : 'format 0';
}
