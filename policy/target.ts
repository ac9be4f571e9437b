/**
 * A request target after strict reading: the path exactly as it came, cut into raw (still percent-encoded) segments.
 * `/` has one empty segment; a trailing slash makes a last empty one, which is another path than without.
 */
export interface NormalPath {
  readonly ok: true;
  readonly path: string;
  readonly segments: readonly string[];
  /** What stands after `?`, raw; undefined without one. */
  readonly rawQuery: string | undefined;
}

/** Why a target is refused (400). The message starts in lower case and names what to change. */
export interface TargetFault {
  readonly ok: false;
  readonly fault: TargetFaultCode;
  readonly message: string;
}

/** What can be wrong with a target, with the sentence that says so. */
const TARGET_FAULTS = {
  form: 'the request target must be a path that starts with `/`',
  character: 'the request target holds a character that must be percent-encoded',
  encoding: 'the request target holds a broken percent-encoding or text that is not UTF-8',
  slash: 'the path holds an empty segment, an encoded slash or a backslash',
  dots: 'the path holds a dot segment',
  control: 'the path holds an encoded control character',
  percent: 'the path holds an encoded percent sign',
  parameters: 'the path holds `;` parameters',
  length: 'the path has too many segments',
} as const;

/** Codes of `TARGET_FAULTS`. */
type TargetFaultCode = keyof typeof TARGET_FAULTS;

/** How a target is read. */
export interface TargetOptions {
  /** Lets `;` stand in segments, for operations with matrix parameters; the reader of the operation then refuses others. */
  readonly matrix?: boolean;
}

const MAX_SEGMENTS = 64;

const UNRESERVED = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~';
/** RFC 3986 section 3.3, `pchar` without the percent sign. */
const PATH_CHARACTERS = characters(`${UNRESERVED}!$&'()*+,;=:@/%`);
/** RFC 3986 section 3.4, and the brackets and bars that clients leave as they are. */
const QUERY_CHARACTERS = characters(`${UNRESERVED}!$&'()*+,;=:@/%?[]|`);

function characters(allowed: string): Uint8Array {
  const table = new Uint8Array(128);
  for (const char of allowed) table[char.charCodeAt(0)] = 1;
  return table;
}

function keepsTo(text: string, table: Uint8Array): boolean {
  for (let i = 0; i < text.length; i++) if (table[text.charCodeAt(i)] !== 1) return false;
  return true;
}

/**
 * Reads a raw request target (RFC 9112 section 3.2.1, origin-form) strictly: nothing is resolved, decoded or repaired,
 * because a backend might do it differently. What two readers could take for two paths is refused.
 */
export function normalisePath(rawTarget: string, options: TargetOptions = {}): NormalPath | TargetFault {
  if (rawTarget[0] !== '/') return refuse('form');
  const question = rawTarget.indexOf('?');
  const path = question < 0 ? rawTarget : rawTarget.slice(0, question);
  const rawQuery = question < 0 ? undefined : rawTarget.slice(question + 1);
  if (path.includes('\\')) return refuse('slash');
  if (!keepsTo(path, PATH_CHARACTERS)) return refuse('character');
  if (rawQuery !== undefined && !keepsTo(rawQuery, QUERY_CHARACTERS)) return refuse('character');
  if (path.includes(';') && options.matrix !== true) return refuse('parameters');
  const segments = path.slice(1).split('/');
  if (segments.length > MAX_SEGMENTS) return refuse('length');
  for (let i = 0; i < segments.length; i++) {
    const segment = segments[i] ?? '';
    if (segment === '') {
      if (i < segments.length - 1) return refuse('slash');
      continue;
    }
    const fault = segmentFault(segment);
    if (fault !== undefined) return refuse(fault);
  }
  return { ok: true, path, segments, rawQuery };
}

function refuse(fault: TargetFaultCode): TargetFault {
  return { ok: false, fault, message: TARGET_FAULTS[fault] };
}

function segmentFault(segment: string): TargetFaultCode | undefined {
  const hasDots = segment === '.' || segment === '..' || segment.startsWith('.;') || segment.startsWith('..;');
  if (hasDots) return 'dots';
  if (!segment.includes('%')) return undefined;
  const decoded = decodePercent(segment);
  if (decoded === undefined) return 'encoding';
  if (decoded === '.' || decoded === '..') return 'dots';
  if (decoded.includes('/') || decoded.includes('\\')) return 'slash';
  if (decoded.includes('%')) return 'percent';
  return hasControl(decoded) ? 'control' : undefined;
}

/** Decodes percent-encoding strictly; undefined where it is broken or not UTF-8. */
export function decodePercent(raw: string): string | undefined {
  if (!raw.includes('%')) return raw;
  try {
    return decodeURIComponent(raw);
  } catch {
    return undefined;
  }
}

/** Percent-encodes everything but RFC 3986's unreserved characters; undefined for a text with half a surrogate pair. */
export function encodePercent(text: string): string | undefined {
  if (!text.isWellFormed()) return undefined;
  return encodeURIComponent(text).replace(/[!'()*]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`);
}

/** Whether a text holds a control character (Unicode category Cc). */
export function hasControl(text: string): boolean {
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code < 0x20 || (code >= 0x7f && code <= 0x9f)) return true;
  }
  return false;
}

/**
 * Why a text cannot be one segment of a path, or undefined. A percent sign is refused with the rest: a backend that
 * decodes once more than it should would read a slash or dots out of it.
 */
export function pathTextFault(text: string): string | undefined {
  if (text === '') return 'must not be empty';
  if (text === '.' || text === '..') return 'must not be a dot segment';
  if (text.includes('/') || text.includes('\\')) return 'must not hold a slash or backslash';
  if (text.includes('%')) return 'must not hold a percent sign';
  if (hasControl(text)) return 'must not hold a control character';
  return text.isWellFormed() ? undefined : 'must be well-formed Unicode';
}
