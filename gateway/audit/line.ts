import { hash } from 'node:crypto';
import { canonicalize, quoteJson } from '../../receipts/canonical.ts';
import type { JsonObject, JsonValue } from '../../receipts/json-value.ts';
import { type AuditEvent, EVENT_MEMBERS, type EventMember, type Latency, MEMBERS_OF_CALLS } from './events.ts';

/**
 * A line of the log is one JSON object in RFC 8785 canonical form. `seq` counts the lines of the chain from 0, over all
 * its files; `prev` is the hash of the line before, so that no line can be changed, left out or moved without the next
 * one showing it. The hash of a line is SHA-256 over the ASCII `qls-audit/1 line`, 0x00 and the line's UTF-8 without
 * its newline, in base64url. Line 0 follows the genesis, a hash of the replica id alone.
 */
export const FORMAT = 'qls-audit/1';
const LINE_DOMAIN = 'qls-audit/1 line\0';
const GENESIS_DOMAIN = 'qls-audit/1 genesis\0';

/**
 * A line before it has its place in the chain: canonical, without `prev` and `seq`, and where those two go. The store
 * keeps `line` in the transaction that the line tells of, when nobody knows yet which line will stand before it.
 */
export interface Draft {
  readonly line: string;
  /** Where `prev` goes, and where `seq` goes. */
  readonly cuts: readonly [number, number];
  /** Tells it apart from every other line of its replica that a store's transaction holds too. */
  readonly n?: number;
}

/** A draft that a store's transaction holds too. */
export interface PreparedLine extends Draft {
  readonly n: number;
}

/** The hash of a line, which the next line names as `prev`. */
export function hashLine(line: string): string {
  return hash('sha256', LINE_DOMAIN + line, 'base64url');
}

/** What line 0 of a replica names as `prev`. */
export function genesisOf(replica: string): string {
  return hash('sha256', GENESIS_DOMAIN + replica, 'base64url');
}

/** A draft at its place in the chain. */
export function placeDraft(draft: Draft, seq: number, prev: string): string {
  const { line, cuts } = draft;
  return `${line.slice(0, cuts[0])}"prev":"${prev}",${line.slice(cuts[0], cuts[1])}"seq":${seq},${line.slice(cuts[1])}`;
}

type Writer = (value: unknown) => string;

/** Longer texts than any name the gateway admits are cut, so that no caller decides how long a line is. */
const TEXT_MAX = 1024;
const LIST_MAX = 64;

function writeText(value: unknown): string {
  const text = String(value);
  if (text.length > TEXT_MAX) return quoteJson(`${text.slice(0, TEXT_MAX).toWellFormed()}…`);
  return quoteJson(text.isWellFormed() ? text : text.toWellFormed());
}

function writeTexts(value: unknown): string {
  if (!Array.isArray(value)) return '[]';
  const shown = value.length > LIST_MAX ? value.slice(0, LIST_MAX) : value;
  return `[${shown.map(writeText).join(',')}]`;
}

function writeNumber(value: unknown): string {
  return Number.isFinite(value) ? String(value) : 'null';
}

/** Milliseconds with three decimals: the clock that they come from says no more. */
function writeLatency(value: unknown): string {
  const { check, store, upstream } = value as Latency;
  let text = '';
  if (check !== undefined) text = `"check":${writeNumber(Math.round(check * 1000) / 1000)}`;
  if (store !== undefined) text += `${text === '' ? '' : ','}"store":${writeNumber(Math.round(store * 1000) / 1000)}`;
  if (upstream !== undefined)
    text += `${text === '' ? '' : ','}"upstream":${writeNumber(Math.round(upstream * 1000) / 1000)}`;
  return `{${text}}`;
}

const WRITERS: Readonly<Record<(typeof EVENT_MEMBERS)[EventMember], Writer>> = {
  text: writeText,
  number: writeNumber,
  flag: (value) => (value === true ? 'true' : 'false'),
  texts: writeTexts,
  latency: writeLatency,
  json: (value) => canonicalize(value as JsonValue),
};

interface MemberRow {
  readonly name: EventMember | 'n' | 'time';
  /** `"name":` */
  readonly label: string;
  readonly write: Writer;
}

const MEMBER_ROWS: readonly MemberRow[] = [...Object.entries(EVENT_MEMBERS), ['n', 'number'], ['time', 'text']]
  .map(([name, kind]) => ({ name, label: `"${name}":`, write: WRITERS[kind as keyof typeof WRITERS] }) as MemberRow)
  .sort((a, b) => (a.name < b.name ? -1 : 1));

/** The rows of a line, cut where `prev` and `seq` go. */
interface Rows {
  readonly beforePrev: readonly MemberRow[];
  readonly beforeSeq: readonly MemberRow[];
  readonly afterSeq: readonly MemberRow[];
}

function rowsOf(members?: Readonly<Record<string, true>>): Rows {
  const own = MEMBER_ROWS.filter(
    ({ name }) => members === undefined || name === 'n' || name === 'time' || Object.hasOwn(members, name),
  );
  return {
    beforePrev: own.filter(({ name }) => name < 'prev'),
    beforeSeq: own.filter(({ name }) => name > 'prev' && name < 'seq'),
    afterSeq: own.filter(({ name }) => name > 'seq'),
  };
}

const ALL_ROWS = rowsOf();
const DECISION_ROWS = rowsOf(MEMBERS_OF_CALLS.decision);
const OUTCOME_ROWS = rowsOf(MEMBERS_OF_CALLS.outcome);

type Members = Readonly<Partial<Record<MemberRow['name'], unknown>>>;

/** An event in, its draft out. `time` is RFC 3339 in UTC; `n` is there where the store keeps the draft too. */
export function draftEvent(event: AuditEvent, time: string, values: boolean, n?: number): Draft {
  const members: Members = event;
  const { event: kind } = event;
  const rows = kind === 'decision' ? DECISION_ROWS : kind === 'outcome' ? OUTCOME_ROWS : ALL_ROWS;
  const head = writeRows(rows.beforePrev, members, time, values, n);
  const middle = writeRows(rows.beforeSeq, members, time, values, n);
  const tail = writeRows(rows.afterSeq, members, time, values, n);
  // `event` stands in the first part and `time` in the last, so neither is ever empty.
  return {
    line: `{${head}${middle}${tail.slice(0, -1)}}`,
    cuts: [1 + head.length, 1 + head.length + middle.length],
  };
}

function writeRows(
  rows: readonly MemberRow[],
  members: Members,
  time: string,
  values: boolean,
  n: number | undefined,
): string {
  let text = '';
  for (const row of rows) {
    const { name } = row;
    const value = name === 'time' ? time : name === 'n' ? n : members[name];
    if (value === undefined || (name === 'values' && !values)) continue;
    text += `${row.label}${row.write(value)},`;
  }
  return text;
}

/** Any flat object with members before `prev` and after `seq` as a draft: the chain's own lines, and rows of the store. */
export function draftObject(object: JsonObject): Draft {
  const parts = ['', '', ''];
  for (const key of Object.keys(object).sort()) {
    const part = key < 'prev' ? 0 : key < 'seq' ? 1 : 2;
    parts[part] += `${quoteJson(key)}:${canonicalize(object[key] as JsonValue)},`;
  }
  const [head = '', middle = '', tail = ''] = parts;
  return {
    line: `{${head}${middle}${tail.slice(0, -1)}}`,
    cuts: [1 + head.length, 1 + head.length + middle.length],
  };
}
