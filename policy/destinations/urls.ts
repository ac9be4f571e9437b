import { endOfPiece, isBlank, isDigit, isHostCode, isSchemeCode, isWordCode, type Span } from './character-classes.ts';

const LONGEST_SCHEME = 40;
const LONGEST_MEDIA_TYPE = 200;
// The URL standard's special schemes need no slashes: `http:evil.com` opens a host. `file:/x` is RFC 8089's short form.
const SLASHLESS: ReadonlySet<string> = new Set(['http', 'https', 'ftp', 'ws', 'wss', 'hxxp', 'hxxps']);
const OPAQUE: ReadonlySet<string> = new Set([
  'mailto', 'javascript', 'vbscript', 'blob', 'filesystem', 'view-source', 'jar', 'intent', 'sip', 'sips',
  'xmpp', 'callto', 'skype', 'facetime', 'ldap', 'ldaps', 'ssh', 'sftp', 'smb', 'gopher', 'feed', 'webcal', 'bitcoin',
]); // biome-ignore format: a list of words
const DIALLED: ReadonlySet<string> = new Set(['tel', 'sms', 'smsto', 'mms', 'fax']);

function startOfScheme(text: string, colon: number): number {
  let start = colon;
  while (start > 0 && colon - start < LONGEST_SCHEME && isSchemeCode(text.charCodeAt(start - 1))) start -= 1;
  return start;
}

/** `data:[<media type>],<data>` (RFC 2397); `data: 10 items` and `data:10,5` are prose. */
function isDataUrl(text: string, colon: number): boolean {
  for (let at = colon + 1; at < text.length && at < colon + LONGEST_MEDIA_TYPE; at += 1) {
    const code = text.charCodeAt(at);
    if (code === 0x2c) return at === colon + 1 || text[colon + 1] === ';' || text.slice(colon + 1, at).includes('/');
    if (isBlank(code) && code !== 0x20) return false;
  }
  return false;
}

const HOST_LIKE = /[./\\:@[]|^0x|^[0-9]{4}|[^\p{ASCII}]/iu;

/** `http:404` and `https:h1` in a log line name nothing; `http:evil.com`, `http:2130706433` and `ftp:files` alone do. */
function opensHost(text: string, start: number, after: number): boolean {
  const end = endOfPiece(text, after);
  const rest = text.slice(after, Math.min(end, after + 64));
  const alone = start === 0 && end === text.length && !/^[0-9]*$/.test(rest);
  return rest.length > 0 && (alone || HOST_LIKE.test(rest));
}

/** `file:/x`, `file:../x`, `file:C:\x`; `file:line:column` is prose. */
function opensFile(text: string, after: number): boolean {
  const rest = text.slice(after, Math.min(endOfPiece(text, after), after + 64));
  return /^[.~]|[/\\]/.test(rest);
}

function isOpaque(text: string, start: number, colon: number): boolean {
  const after = colon + 1;
  const code = text.charCodeAt(after);
  if (after >= text.length || isBlank(code)) return false;
  const scheme = text.slice(start, colon).toLowerCase();
  if (scheme === 'file') return opensFile(text, after);
  if (OPAQUE.has(scheme)) return endOfPiece(text, after) > after;
  if (SLASHLESS.has(scheme)) return opensHost(text, start, after);
  if (DIALLED.has(scheme)) return isDigit(code) || code === 0x2b;
  if (scheme === 'data') return isDataUrl(text, colon);
  return scheme === 'magnet' && code === 0x3f;
}

/** Every `scheme://`, whatever the scheme, and the opaque ones (`mailto:`, `data:`, `http:` without slashes). */
export function findUrls(text: string, spans: Span[]): void {
  let covered = 0;
  for (let colon = text.indexOf(':'); colon !== -1; colon = text.indexOf(':', colon + 1)) {
    if (colon < covered) continue;
    const start = startOfScheme(text, colon);
    const slashes = isSlash(text, colon + 1) && isSlash(text, colon + 2);
    if (start === colon || (start > 0 && isSchemeCode(text.charCodeAt(start - 1)))) {
      if (!slashes) continue;
    } else if (!slashes && !isOpaque(text, start, colon)) continue;
    // `C:\\share` is a drive, and `://` with nothing after it leads nowhere.
    if (slashes && isDrive(text, start, colon)) continue;
    const end = endOfPiece(text, colon + 1);
    if (slashes && end <= colon + 3) continue;
    spans.push({ start, end });
    covered = end;
  }
}

function isDrive(text: string, start: number, colon: number): boolean {
  return colon - start === 1 && text[colon + 1] === '\\';
}

function isSlash(text: string, at: number): boolean {
  return text[at] === '/' || text[at] === '\\';
}

const OPENERS = '"\'`=([{<,;|>«“';

/** True where a token begins at `at`: at the start, after white space, or after a quote, bracket or sign that opens one. */
export function opensToken(text: string, at: number): boolean {
  return at === 0 || isBlank(text.charCodeAt(at - 1)) || OPENERS.includes(text[at - 1] ?? '');
}

/** `//host/path` (RFC 3986 section 4.2), `\\server\share`, and the mixtures that browsers read as either. */
export function findNetworkPaths(text: string, spans: Span[]): void {
  let at = 0;
  while (at < text.length) {
    if (!isSlash(text, at) || !isSlash(text, at + 1) || !opensToken(text, at)) {
      at += 1;
      continue;
    }
    const end = endOfPiece(text, at);
    let host = at + 2;
    while (isSlash(text, host)) host += 1;
    let stop = host;
    while (stop < end && isHostCode(text.charCodeAt(stop))) stop += 1;
    const named = stop > host && isWordCode(text.charCodeAt(host));
    const goesOn = stop < end && '/\\:?#@'.includes(text[stop] ?? ' ') && stop + 1 < end;
    const alone = at === 0 && end === text.length;
    const device = text[host] === '?' || text[host] === '.' || text[host] === '[';
    if ((named && (goesOn || alone || text.slice(host, stop).includes('.'))) || (device && end > host + 1)) {
      spans.push({ start: at, end });
    }
    at = Math.max(end, at + 2);
  }
}
