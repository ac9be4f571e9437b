import { isBase64url } from './base64url.ts';
import {
  type CutHistory,
  type Decision,
  type Entry,
  HISTORY_FORMAT,
  HistoryFault,
  type HistoryHeader,
  type LateReport,
  type Outcome,
  type Previous,
  type Report,
  type WholeHistory,
} from './history.ts';
import { isArray, type JsonObject, type JsonValue } from './json-value.ts';

/** The longest `tool` that an entry holds, in code points: longer names are cut when the entry is written. */
export const MAX_TOOL_LENGTH = 200;

/** What a caller sent as `history`: the wish to begin one, a whole one, or one cut to its head. */
export type CarriedHistory =
  | { readonly kind: 'opening'; readonly session?: string }
  | { readonly kind: 'whole'; readonly history: WholeHistory }
  | { readonly kind: 'cut'; readonly history: CutHistory };

const HEADER_MEMBERS: ReadonlySet<string> = new Set(['format', 'session', 'issuer', 'audience', 'nonce']);
const HISTORY_MEMBERS: ReadonlySet<string> = new Set([...HEADER_MEMBERS, 'entries', 'prev']);
const OPENING_MEMBERS: ReadonlySet<string> = new Set(['format', 'session', 'entries']);
const REPORT_MEMBERS: ReadonlySet<string> = new Set(['step', 'outcome', 'result']);
const PREV_MEMBERS: ReadonlySet<string> = new Set(['link', 'outcome', 'result']);
const ENTRY_MEMBERS: ReadonlySet<string> = new Set([
  ...['step', 'tool', 'agent', 'arguments', 'origins', 'labels', 'decision', 'reasons', 'at', 'policy'],
  ...['run', 'undoes', 'reports', 'token', 'outcome', 'result'],
]);
const DECISIONS: ReadonlySet<unknown> = new Set<Decision>(['allow', 'confirm', 'refuse']);
const OUTCOMES: ReadonlySet<unknown> = new Set<Outcome>(['ran', 'failed', 'outcome_unknown', 'compensated']);

/**
 * A JSON value from outside in, the history that it is out; only its shape is looked at, no link and no signature.
 * Throws {@link HistoryFault} `format` with the entry's index, or `order` for a whole history whose steps are not
 * 0, 1, 2 and on.
 */
export function parseHistory(value: JsonValue): CarriedHistory {
  const object = asObject(value, 0, 'the history');
  if (object['format'] !== HISTORY_FORMAT) throw format(0, `\`format\` must be \`${HISTORY_FORMAT}\``);
  const entries = object['entries'];
  if (!isArray(entries)) throw format(0, '`entries` must be an array');
  if (entries.length === 0 && !('issuer' in object) && !('audience' in object) && !('nonce' in object)) {
    refuseUnknown(object, OPENING_MEMBERS, 0, 'a history to begin');
    if (object['session'] === undefined) return { kind: 'opening' };
    return { kind: 'opening', session: nonEmpty(object, 'session', 0) };
  }
  refuseUnknown(object, HISTORY_MEMBERS, 0, 'the history');
  const header = parseHeader(object);
  if (object['prev'] !== undefined) return { kind: 'cut', history: parseCut(header, object['prev'], entries) };
  const parsed: Entry[] = [];
  for (let i = 0; i < entries.length; i++) parsed.push(parseEntry(entries[i] as JsonValue, i, i));
  return { kind: 'whole', history: { ...header, entries: parsed } };
}

/**
 * One entry from outside in (a gateway's own store and the client library read single entries), the typed entry out.
 * Throws {@link HistoryFault} as {@link parseHistory}.
 */
export function parseEntry(value: JsonValue, index: number, step?: number): Entry {
  const o = asObject(value, index, 'the entry');
  const parsedStep = count(o, 'step', index);
  if (step !== undefined && parsedStep !== step) {
    throw new HistoryFault(
      'order',
      index,
      `entry ${index} says it is step ${parsedStep}: entries may not be moved or left out`,
    );
  }
  refuseUnknown(o, ENTRY_MEMBERS, index, 'the entry');
  const tool = text(o, 'tool', index);
  if (tool.length > MAX_TOOL_LENGTH && [...tool].length > MAX_TOOL_LENGTH) {
    throw format(index, `\`tool\` may not be longer than ${MAX_TOOL_LENGTH} characters`);
  }
  const decision = o['decision'];
  if (!isDecision(decision)) throw format(index, '`decision` must be `allow`, `confirm` or `refuse`');
  return {
    step: parsedStep,
    tool,
    agent: text(o, 'agent', index),
    arguments: encoded(o, 'arguments', 32, index),
    origins: encoded(o, 'origins', 32, index),
    labels: sortedTexts(o, 'labels', index),
    decision,
    reasons: texts(o, 'reasons', index),
    at: count(o, 'at', index),
    policy: text(o, 'policy', index),
    ...('run' in o ? { run: text(o, 'run', index) } : undefined),
    ...('undoes' in o ? { undoes: count(o, 'undoes', index) } : undefined),
    ...('reports' in o ? { reports: parseReports(o['reports'] ?? null, parsedStep, index) } : undefined),
    token: encoded(o, 'token', 64, index),
    ...parseReport(o, index),
  };
}

function parseHeader(o: JsonObject): HistoryHeader {
  return {
    format: HISTORY_FORMAT,
    session: nonEmpty(o, 'session', 0),
    issuer: nonEmpty(o, 'issuer', 0),
    audience: nonEmpty(o, 'audience', 0),
    nonce: encoded(o, 'nonce', 16, 0),
  };
}

function parseCut(header: HistoryHeader, prev: JsonValue, entries: readonly JsonValue[]): CutHistory {
  const [only] = entries;
  if (only === undefined || entries.length > 1) throw format(0, 'a history with `prev` has exactly one entry');
  const entry = parseEntry(only, 0);
  if (entry.step === 0) throw format(0, 'step 0 has nothing before it, so no `prev`');
  const o = asObject(prev, 0, '`prev`');
  refuseUnknown(o, PREV_MEMBERS, 0, '`prev`');
  const previous: Previous = { link: encoded(o, 'link', 32, 0), ...parseReport(o, 0) };
  return { ...header, entries: [entry], prev: previous };
}

function parseReport(o: JsonObject, index: number): Report {
  const outcome = o['outcome'];
  if (outcome === undefined) {
    if (o['result'] !== undefined) throw format(index, '`result` stands beside an `outcome` only');
    return {};
  }
  if (!isOutcome(outcome)) throw format(index, '`outcome` must be `ran`, `failed`, `outcome_unknown` or `compensated`');
  return o['result'] === undefined ? { outcome } : { outcome, result: encoded(o, 'result', 32, index) };
}

function parseReports(value: JsonValue, step: number, index: number): readonly LateReport[] {
  if (!isArray(value) || value.length === 0)
    throw format(index, '`reports` must be a list with something in it, or absent');
  let before = -1;
  return value.map((item) => {
    const o = asObject(item, index, 'a late report');
    refuseUnknown(o, REPORT_MEMBERS, index, 'a late report');
    const of = count(o, 'step', index);
    if (of <= before || of >= step) throw format(index, '`reports` are of earlier steps, sorted, each step once');
    before = of;
    const { outcome, result } = parseReport(o, index);
    if (outcome === undefined) throw format(index, 'a late report has an `outcome`');
    return result === undefined ? { step: of, outcome } : { step: of, outcome, result };
  });
}

function asObject(value: JsonValue, index: number, what: string): JsonObject {
  if (typeof value !== 'object' || value === null || isArray(value)) throw format(index, `${what} must be an object`);
  return value;
}

function isDecision(value: JsonValue | undefined): value is Decision {
  return DECISIONS.has(value);
}

function isOutcome(value: JsonValue): value is Outcome {
  return OUTCOMES.has(value);
}

function refuseUnknown(o: JsonObject, known: ReadonlySet<string>, index: number, what: string): void {
  for (const key of Object.keys(o)) {
    if (!known.has(key)) throw format(index, `${what} has the unknown member \`${key.slice(0, 40)}\``);
  }
}

function text(o: JsonObject, key: string, index: number): string {
  const value = o[key];
  if (typeof value !== 'string') throw format(index, `\`${key}\` must be a string`);
  return value;
}

function nonEmpty(o: JsonObject, key: string, index: number): string {
  const value = text(o, key, index);
  if (value === '') throw format(index, `\`${key}\` must not be empty`);
  return value;
}

function count(o: JsonObject, key: string, index: number): number {
  const value = o[key];
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < 0) {
    throw format(index, `\`${key}\` must be a whole number from 0 to 2^53-1`);
  }
  return value;
}

function encoded(o: JsonObject, key: string, bytes: number, index: number): string {
  const value = o[key];
  if (typeof value !== 'string' || !isBase64url(value, bytes)) {
    throw format(index, `\`${key}\` must be ${bytes} bytes in canonical base64url`);
  }
  return value;
}

function texts(o: JsonObject, key: string, index: number): readonly string[] {
  const value = o[key];
  if (!isArray(value)) throw format(index, `\`${key}\` must be a list of strings`);
  return value.map((item) => {
    if (typeof item !== 'string') throw format(index, `\`${key}\` must be a list of strings`);
    return item;
  });
}

function sortedTexts(o: JsonObject, key: string, index: number): readonly string[] {
  const value = texts(o, key, index);
  for (let i = 1; i < value.length; i++) {
    if ((value[i - 1] ?? '') >= (value[i] ?? '')) throw format(index, `\`${key}\` must be sorted, each once`);
  }
  return value;
}

function format(index: number, message: string): HistoryFault {
  return new HistoryFault('format', index, message);
}
