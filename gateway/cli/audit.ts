import { readFileSync, statSync } from 'node:fs';
import { nodeCrypto } from '../../receipts/crypto-node.ts';
import type { ChainHead } from '../audit/chain-lines.ts';
import { systemCode } from '../audit/fault.ts';
import { type AuditFilter, type FoundLine, queryAudit } from '../audit/query.ts';
import { replicaOf } from '../audit/tail.ts';
import { type AuditReport, verifyAudit } from '../audit/verify.ts';
import { messageOf } from '../message-of.ts';
import { CliFault } from './command.ts';
import { readPublicBytes } from './keys.ts';
import { print, printable, printJson, renderColumns } from './output.ts';

export interface VerifyCliOptions {
  readonly publicKey?: readonly string[];
  readonly anchor?: string;
  readonly json?: boolean;
}

export interface QueryOptions {
  readonly event?: string;
  readonly session?: string;
  readonly tool?: string;
  readonly agent?: string;
  readonly caller?: string;
  readonly run?: string;
  readonly decision?: string;
  readonly reason?: string;
  readonly since?: string;
  readonly until?: string;
  readonly limit?: string;
  readonly json?: boolean;
}

/** A log that was written to so lately is being written, and its next checkpoint is soon to come. */
const LIVE_MS = 5_000;
const SETTLE_MS = 3_000;
const BESIDE = ['.lock', '.state', '.state.new'];
const DECISIONS = ['allow', 'confirm', 'refuse'];

/** Verifies, prints what is found, and resolves with the exit code. Throws `CliFault` for a key or anchor that is none. */
export async function runVerify(given: readonly string[], options: VerifyCliOptions): Promise<0 | 1 | 2> {
  const files = logsOf(given);
  const keys = (options.publicKey ?? []).map((text) => nodeCrypto.publicKey(readPublicBytes(text)));
  const anchor = options.anchor === undefined ? {} : { anchor: parseAnchor(options.anchor) };
  const logs = byLog(files);
  if (logs.length > 1 && options.anchor !== undefined)
    throw new CliFault(2, `an anchor is of one log, and these files are of ${logs.length}: verify each by itself`);
  const reports: AuditReport[] = [];
  const exits: (0 | 1 | 2)[] = [];
  for (const log of logs) {
    const settleMs = keys.length > 0 && log.some(isLive) ? SETTLE_MS : 0;
    const { exit, report } = await verifyAudit(log, { keys, settleMs, ...anchor });
    exits.push(exit);
    reports.push(report);
  }
  if (options.json !== true) await print(reports.map(renderReport).join('\n'));
  else await printJson(reports.length === 1 ? reports[0] : reports);
  return exits.find((exit) => exit === 1) ?? exits.find((exit) => exit === 2) ?? 0;
}

/** Files of several logs (those of workers, or of replicas) apart, in the order in which the logs first come. */
function byLog(files: readonly string[]): readonly (readonly string[])[] {
  const logs = new Map<string, string[]>();
  for (const file of files) {
    const replica = nameOf(file);
    // Whose a file is that names nobody is not to be known: it is looked at with all the others.
    if (replica === undefined) return [files];
    logs.set(replica, [...(logs.get(replica) ?? []), file]);
  }
  return [...logs.values()];
}

function nameOf(file: string): string | undefined {
  try {
    return replicaOf(file);
  } catch {
    // That it cannot be read is told by whoever verifies it.
    return undefined;
  }
}

/** `audit.jsonl*` of a shell takes in the lock and the note that stand beside a log, and they are none. */
function logsOf(files: readonly string[]): readonly string[] {
  if (files.length < 2) return files;
  return files.filter((file) => !BESIDE.some((ending) => file.endsWith(ending)));
}

function renderReport(report: AuditReport): string {
  const { fault, last_seq, last_hash } = report;
  const verdict = { intact: 'intact', tampered: 'TAMPERED WITH', cannot_tell: 'cannot tell' }[report.verdict];
  const rows = [
    ...(fault === undefined ? [] : [['fault', `${fault.file}, line ${fault.line} (seq ${fault.seq}): ${fault.fault}`]]),
    ...(report.replica === undefined ? [] : [['replica', report.replica]]),
    ['lines', `${report.lines}${last_seq === undefined ? '' : ` (seq ${report.first_seq} to ${last_seq})`}`],
    ['checkpoints', String(report.checkpoints)],
    ...(report.signed_to === undefined ? [] : [['vouched for', `up to seq ${report.signed_to}`]]),
    ...(report.verdict === 'intact' ? [['anchor', `${last_seq}:${last_hash}`]] : []),
  ];
  return `${verdict}: ${report.why}\n${renderColumns(rows)}`;
}

function isLive(file: string): boolean {
  const stat = statSync(file, { throwIfNoEntry: false });
  return stat !== undefined && Date.now() - stat.mtimeMs < LIVE_MS;
}

/** `SEQ:HASH`, or the path of a JSON file that has both. Throws `CliFault`. */
function parseAnchor(text: string): ChainHead {
  const colon = text.indexOf(':');
  const inline = toAnchor(Number(text.slice(0, colon)), text.slice(colon + 1));
  if (colon > 0 && inline !== undefined) return inline;
  let value: unknown;
  try {
    value = JSON.parse(readFileSync(text, 'utf8'));
  } catch (error) {
    throw new CliFault(2, `\`${text}\` is neither SEQ:HASH nor a JSON file: ${systemCode(error)}`);
  }
  const { seq, hash, last_seq, last_hash } = (value ?? {}) as Partial<Record<string, unknown>>;
  // What `audit verify --json` printed is an anchor, too.
  const anchor = toAnchor(seq ?? last_seq, hash ?? last_hash);
  if (anchor === undefined) throw new CliFault(2, `\`${text}\` has no \`seq\` and \`hash\` of a line`);
  return anchor;
}

const HASH_LENGTH = 43;

function toAnchor(seq: unknown, hash: unknown): ChainHead | undefined {
  if (typeof seq !== 'number' || !Number.isSafeInteger(seq) || seq < 0) return undefined;
  return typeof hash === 'string' && hash.length === HASH_LENGTH ? { seq, hash } : undefined;
}

/** Prints the lines that fit. Throws `CliFault` for a filter that says nothing, or a file that cannot be read. */
export async function runQuery(given: readonly string[], options: QueryOptions): Promise<void> {
  const files = logsOf(given);
  const { since, until, limit, json, ...equal } = options;
  if (equal.decision !== undefined && !DECISIONS.includes(equal.decision))
    throw new CliFault(2, `\`${equal.decision}\` is no decision; there are ${DECISIONS.join(', ')}`);
  const most = limit === undefined ? Number.POSITIVE_INFINITY : parseCount(limit);
  const filter: AuditFilter = {
    ...equal,
    ...(since === undefined ? {} : { sinceMs: parseTime(since) }),
    ...(until === undefined ? {} : { untilMs: parseTime(until) }),
  };
  let shown = 0;
  let text = '';
  try {
    if (most === 0) return;
    for (const line of queryAudit(files, filter)) {
      text += json === true ? `${line.text}\n` : renderLine(line);
      // A screenful first, so that somebody who looks has something to see; then as much at once as a pipe takes.
      if (++shown <= 50 || text.length >= PRINT_CHARS) {
        await print(text);
        text = '';
      }
      if (shown >= most) break;
    }
    if (text !== '') await print(text);
  } catch (error) {
    throw new CliFault(2, `cannot read the log: ${messageOf(error)}`);
  }
  if (shown === 0 && json !== true) process.stderr.write('no line fits\n');
}

const PRINT_CHARS = 65_536;
const UNIT_MS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** A moment in RFC 3339, or how long ago. */
function parseTime(text: string): number {
  const unitMs = UNIT_MS[text.slice(-1)];
  const count = Number(text.slice(0, -1));
  if (unitMs !== undefined && text.length > 1 && Number.isFinite(count) && count >= 0)
    return Date.now() - count * unitMs;
  const atMs = Date.parse(text);
  if (Number.isNaN(atMs)) throw new CliFault(2, `\`${text}\` is no time; say 2026-11-29T10:00:00Z, or 15m, 2h, 3d`);
  return atMs;
}

function parseCount(text: string): number {
  const count = Number(text);
  if (!Number.isSafeInteger(count) || count < 0) throw new CliFault(2, `\`${text}\` is no count of lines`);
  return count;
}

/** The members that say what a line is about, in this order; the rest is for `--json`. */
const WHAT_MEMBERS = ['decision', 'outcome', 'state', 'act', 'fault', 'problem', 'method'] as const;
const WIDTHS = [24, 10, 16, 28, 14] as const;

function renderLine({ members }: FoundLine): string {
  const text = (name: string): string => (members[name] === undefined ? '' : String(members[name]));
  const what = WHAT_MEMBERS.map(text).find((value) => value !== '') ?? '';
  const session = members['session'] === undefined ? '' : `${text('session')}#${text('step')}`;
  const reasons = Array.isArray(members['reasons']) ? members['reasons'].join(', ') : text('why');
  const cells = [text('time'), text('event'), what, text('tool'), text('agent')];
  const line = cells.map((cell, i) => printable(cell).padEnd(WIDTHS[i] ?? 0)).join(' ');
  return `${`${line} ${printable(session)} ${printable(reasons)}`.trimEnd()}\n`;
}
