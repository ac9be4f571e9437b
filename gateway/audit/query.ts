import { readLines } from './read-lines.ts';
import { parseChainLine } from './tail.ts';

/** What lines must say to be shown; every filter that is given must hold. */
export interface AuditFilter {
  readonly event?: string;
  readonly session?: string;
  /** A pair, or a bare name of any server. */
  readonly tool?: string;
  readonly agent?: string;
  readonly caller?: string;
  readonly run?: string;
  readonly decision?: string;
  /** A reason's code, or the reason in full. */
  readonly reason?: string;
  /** From this moment on, and before that one, in milliseconds since 1970. */
  readonly sinceMs?: number;
  readonly untilMs?: number;
}

/** A line that the filter lets through. */
export interface FoundLine {
  readonly file: string;
  /** As it stands in the file. */
  readonly text: string;
  readonly members: Readonly<Record<string, unknown>>;
}

const EQUAL_MEMBERS = ['event', 'session', 'agent', 'caller', 'run', 'decision'] as const;

/**
 * The lines of some audit logs that a filter lets through, in the order of the files. Looks at one line at a time, so a
 * log may be as long as it likes. What is no line of a log is passed over: `verifyAudit` is who complains.
 * Throws the system's error where a file cannot be read.
 */
export function* queryAudit(files: readonly string[], filter: AuditFilter): Generator<FoundLine> {
  const needles = needlesOf(filter);
  for (const file of files) {
    for (const { text, broken } of readLines(file)) {
      // Most lines are not looked for, and finding a text in them is cheaper than parsing them.
      if (broken || !needles.every((needle) => text.includes(needle))) continue;
      const line = parseChainLine(text);
      if (line !== undefined && isWanted(line.members, filter)) yield { file, text, members: line.members };
    }
  }
}

function needlesOf(filter: AuditFilter): readonly string[] {
  const needles = EQUAL_MEMBERS.flatMap((name) => {
    const value = filter[name];
    return value === undefined ? [] : [`"${name}":${JSON.stringify(value)}`];
  });
  if (filter.tool !== undefined) needles.push(JSON.stringify(filter.tool).slice(1));
  return needles;
}

function isWanted(members: Readonly<Record<string, unknown>>, filter: AuditFilter): boolean {
  for (const name of EQUAL_MEMBERS) if (filter[name] !== undefined && members[name] !== filter[name]) return false;
  return (
    isTool(members['tool'], filter.tool) &&
    hasReason(members['reasons'], filter.reason) &&
    isWithin(members['time'], filter.sinceMs, filter.untilMs)
  );
}

function isTool(value: unknown, wanted: string | undefined): boolean {
  if (wanted === undefined) return true;
  return typeof value === 'string' && (value === wanted || (!wanted.includes('/') && value.endsWith(`/${wanted}`)));
}

function hasReason(value: unknown, wanted: string | undefined): boolean {
  if (wanted === undefined) return true;
  return Array.isArray(value) && value.some((reason) => reason === wanted || String(reason).startsWith(`${wanted}:`));
}

function isWithin(value: unknown, sinceMs: number | undefined, untilMs: number | undefined): boolean {
  if (sinceMs === undefined && untilMs === undefined) return true;
  const atMs = typeof value === 'string' ? Date.parse(value) : Number.NaN;
  return atMs >= (sinceMs ?? Number.NEGATIVE_INFINITY) && atMs < (untilMs ?? Number.POSITIVE_INFINITY);
}
