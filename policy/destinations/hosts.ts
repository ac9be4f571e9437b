import { parse } from 'tldts';
import {
  endOfPiece,
  isBlank,
  isDigit,
  isHexCode,
  isHostCode,
  isLetter,
  isWordCode,
  type Span,
} from './character-classes.ts';
import { isIpv4 } from './ip-addresses.ts';

// Names that IANA's list does not have and that resolvers of private networks, Tor or RFC 6761 do.
const PRIVATE_SUFFIXES: ReadonlySet<string> = new Set([
  'internal', 'local', 'localhost', 'localdomain', 'lan', 'intranet', 'corp', 'onion', 'i2p', 'svc', 'invalid',
  'example', 'arpa',
]); // biome-ignore format: a list of words
// Suffixes that file names and code end in as well; `test` is no top-level domain but is reserved as one.
const FILE_SUFFIXES: ReadonlySet<string> = new Set([
  'md', 'py', 'zip', 'sh', 'rs', 'mov', 'pm', 'ps', 'so', 'tf', 'pub', 'cab', 'map', 'properties', 'test',
]); // biome-ignore format: a list of words
// Abbreviations that would else be hosts of Seychelles, of Saudi Arabia and of .com; exactly as they are written.
const ABBREVIATIONS: ReadonlySet<string> = new Set(['B.Sc', 'M.Sc', 'V.Sa', 'V.Sas', 'B.Com', 'M.Com']);
// Where a text runs on after a host without a space, only these end the host: `response.id.value` is code.
const COMMON_SUFFIXES: ReadonlySet<string> = new Set([
  'com', 'net', 'org', 'io', 'co', 'dev', 'app', 'xyz', 'ai', 'br', 'uk', 'edu', 'gov', 'biz', 'top', 'site', 'online',
  'ru', 'cn', 'de', 'onion', 'internal',
]); // biome-ignore format: a list of words
const TLDTS_OPTIONS = { extractHostname: false, validateHostname: false, mixedInputs: false, detectIp: false };
const ESCAPE = /^(?:u[0-9a-f]{4}|x[0-9a-f]{2})/i;
const LAST_LABELS = 6;

/** What a suffix says of a host: `sure`, `file` where a file name ends so too, `none` where nobody resolves it. */
type Suffix = 'sure' | 'file' | 'none';

function suffixOf(labels: readonly string[]): Suffix {
  const last = labels.at(-1)?.toLowerCase() ?? '';
  if (last.length < 2) return 'none';
  if (FILE_SUFFIXES.has(last)) return 'file';
  if (PRIVATE_SUFFIXES.has(last)) return 'sure';
  if (isDigit(last.charCodeAt(0))) return 'none';
  // The public suffix list needs the last labels alone; a longer name cannot make it slower.
  const host = labels.slice(-LAST_LABELS).join('.').toLowerCase();
  return parse(host, TLDTS_OPTIONS).isIcann === true ? 'sure' : 'none';
}

/** True where the labels end in a name that IANA, RFC 6761 or a private network resolves, file-like endings included. */
export function hasHostSuffix(labels: readonly string[]): boolean {
  return labels.length > 1 && suffixOf(labels) !== 'none';
}

function isClock(labels: readonly string[]): boolean {
  const last = labels.at(-1)?.toLowerCase();
  return (last === 'am' || last === 'pm') && labels.slice(0, -1).every((label) => /^[0-9]{1,2}$/.test(label));
}

/** How many of the leading labels make a host: all of them, or up to a common suffix where the text runs on; 0 for none. */
function hostLength(labels: readonly string[], anchored: boolean): number {
  if (labels.length < 2 || isClock(labels)) return 0;
  const suffix = suffixOf(labels);
  const www = labels[0]?.toLowerCase() === 'www';
  if (suffix === 'sure' || (suffix === 'file' && (anchored || www || labels.length > 2))) return labels.length;
  if (www && labels.length > 2) return labels.length;
  for (let count = labels.length - 1; count > 1; count -= 1) {
    if (COMMON_SUFFIXES.has(labels[count - 1]?.toLowerCase() ?? '')) return count;
  }
  return 0;
}

/** True where what follows at `at` is a port or a path: then even `evil.sh` is no file name. */
function isAnchored(text: string, at: number): boolean {
  const code = text.charCodeAt(at + 1);
  if (text[at] === ':') return isDigit(code);
  if (text[at] === '?') return isWordCode(code);
  return text[at] === '/' && !isBlank(code);
}

function endOfHost(text: string, at: number): number {
  let end = at;
  if (text[end] === ':') {
    let port = end + 1;
    while (port < text.length && isDigit(text.charCodeAt(port))) port += 1;
    if (port > end + 1) end = port;
  }
  if (text[end] === '/' || text[end] === '?' || text[end] === '#') return endOfPiece(text, end);
  if (text[end] === ':' && (text[end + 1] === '/' || text[end + 1] === '~')) return endOfPiece(text, end);
  return end;
}

/** `name:8080/x` names a host of a private network; `page:12/13` does not. */
function isServicePort(text: string, at: number): boolean {
  let end = at + 1;
  while (end < text.length && end < at + 7 && isDigit(text.charCodeAt(end))) end += 1;
  const port = text.slice(at + 1, end);
  const known = port === '80' || port === '443' || (port.length >= 4 && port.length <= 5);
  return known && text[end] === '/' && isLetter(text.charCodeAt(end + 1));
}

/** `10.0.0.1-9` and `10.0.0.1-10.0.0.9`; `1.2.3.4-beta` is a version. */
function isIpRange(run: string): boolean {
  const [first = '', last = '', more] = run.length > 31 ? [] : run.split('-');
  return more === undefined && isIpv4(first) && (isIpv4(last) || /^[0-9]{1,3}$/.test(last));
}

function readRun(text: string, start: number, end: number, spans: Span[]): void {
  let from = start;
  let to = end;
  // `%2Fevil.com` and `\u0040evil.com` before they are decoded: the digits belong to the sign before them.
  const coded = text[from - 1] === '\\' ? ESCAPE.exec(text.slice(from, from + 5)) : null;
  if (coded !== null) from += coded[0].length;
  else if (text[from - 1] === '%' && isHexCode(text.charCodeAt(from)) && isHexCode(text.charCodeAt(from + 1)))
    from += 2;
  while (from < to && '.-'.includes(text[from] ?? '')) from += 1;
  while (to > from && '.-'.includes(text[to - 1] ?? '')) to -= 1;
  const run = text.slice(from, to);
  const dotted = run.includes('.');
  const anchored = isAnchored(text, to) && to === end;
  if (!dotted) {
    const local = run.length === 9 && run.toLowerCase() === 'localhost';
    if (local || (anchored && text[to] === ':' && isLetter(text.charCodeAt(from)) && isServicePort(text, to))) {
      spans.push({ start: from, end: endOfHost(text, to) });
    }
    return;
  }
  if (ABBREVIATIONS.has(run)) return;
  if (isIpv4(run) || isIpRange(run)) {
    const stop = endOfHost(text, to);
    spans.push({ start: from, end: stop, bare: stop === to });
    return;
  }
  readLabels(text, from, to, spans, anchored);
}

function readLabels(text: string, from: number, to: number, spans: Span[], anchored: boolean): void {
  // Two dots in a row, or a label that begins with a hyphen, end one name and begin another.
  let start = from;
  for (const part of text.slice(from, to).split(/\.\.+|\.-/)) {
    const at = text.indexOf(part, start);
    start = at + part.length;
    const labels = part.split('.');
    const count = hostLength(labels, anchored && start === to);
    if (count > 0) {
      const whole = count === labels.length;
      const end = whole ? start : at + labels.slice(0, count).join('.').length;
      const stop = whole ? endOfHost(text, end) : end;
      const bare = stop === end && labels[0]?.toLowerCase() !== 'www';
      // `logger.info(x)`: to a resolver a host, to a reader of code a call.
      spans.push({ start: at, end: stop, bare, aside: bare && count === 2 && text[stop] === '(' });
    }
  }
}

/** The hosts and IPv4 addresses of a text, each with its port and path. Every character belongs to one run, read once. */
export function findHosts(text: string, spans: Span[]): void {
  let at = 0;
  while (at < text.length) {
    if (!isHostCode(text.charCodeAt(at))) {
      at += 1;
      continue;
    }
    const start = at;
    let asks = false;
    while (at < text.length && isHostCode(text.charCodeAt(at))) {
      asks ||= text.charCodeAt(at) === 0x2e;
      at += 1;
    }
    if (!asks && at - start !== 9 && text[at] !== ':') continue;
    readRun(text, start, at, spans);
    // What a piece covers is not read again, which keeps `a.co/a.co/...` linear.
    at = Math.max(at, spans.at(-1)?.end ?? 0);
  }
}
