import { endOfPiece, isBlank, isDigit, isHostCode, isLetter, isWordCode, type Span } from './character-classes.ts';
import { opensToken } from './urls.ts';

const HOME_VARIABLE =
  /^(?:\$\{?(?:HOME|PWD|TMPDIR|TEMP|TMP)\}?|%(?:USERPROFILE|APPDATA|LOCALAPPDATA|TEMP|TMP|WINDIR|SYSTEMROOT|HOMEPATH)%)[/\\]/i;

// `@/etc/passwd` sends a file, `@/components` is a module: after these marks the well-known roots alone make a path.
const GLUE = '@&!?%*#+-';
const ROOTS: ReadonlySet<string> = new Set(
  'etc home root var tmp usr proc dev sys opt mnt srv run bin boot media private users volumes'.split(' '),
);
const WINDOWS_ROOT = /^\\(?:windows|users|programdata|program files|temp|inetpub|winnt)\\/i;

function isRoot(text: string, at: number): boolean {
  const end = text.indexOf('/', at + 1);
  return end !== -1 && end - at < 12 && ROOTS.has(text.slice(at + 1, end).toLowerCase());
}

function readRooted(text: string, at: number, spans: Span[]): number {
  if (!opensToken(text, at) || !WINDOWS_ROOT.test(text.slice(at, at + 16))) return at + 1;
  const end = Math.max(endOfPiece(text, at), at + 1);
  spans.push({ start: at, end });
  return end;
}

function startsSegment(code: number): boolean {
  return isWordCode(code) || code === 0x2e || code === 0x5f || code === 0x7e || code === 0x25 || code === 0x24;
}

/** `/etc/passwd`. One segment after a space is a path too, unless digits alone; `prose` may hold it (`5 reais /unit`). */
function readAbsolute(text: string, at: number, spans: Span[]): number {
  const opens = opensToken(text, at) || text[at - 1] === ':' || (GLUE.includes(text[at - 1] ?? '') && isRoot(text, at));
  if (!opens || !startsSegment(text.charCodeAt(at + 1))) return at + 1;
  // `</b>` closes a tag.
  if (text[at - 1] === '<') return at + 1;
  const end = endOfPiece(text, at);
  let digits = true;
  let deep = false;
  for (let index = at + 1; index < end; index += 1) {
    if (text[index] === '/') deep ||= index + 1 < end;
    else digits &&= isDigit(text.charCodeAt(index));
  }
  if (end > at + 1 && (!digits || at === 0)) spans.push({ start: at, end, aside: !deep && at > 0 });
  return Math.max(end, at + 1);
}

/** `../x`, `..\x` and `a/../b`, but not the end of `wait.../maybe`. */
function readParent(text: string, at: number, spans: Span[]): number {
  const slash = text[at + 2];
  const before = text[at - 1];
  if (text[at + 1] !== '.' || before === '.' || !(slash === '/' || slash === '\\' || endsHere(text, at, before))) {
    return at + 1;
  }
  if (at > 0 && isWordCode(text.charCodeAt(at - 1))) return at + 2;
  let start = at;
  // A path of any length before it is one piece with it; what was read already is not read again (`spans` are merged).
  while (start > 0 && at - start < 256 && isPathCode(text, start - 1)) start -= 1;
  const end = Math.max(endOfPiece(text, at), at + 2);
  spans.push({ start, end });
  return end;
}

function endsHere(text: string, at: number, before: string | undefined): boolean {
  const alone = at === 0 && text.length === 2;
  return alone || ((before === '/' || before === '\\') && (at + 2 === text.length || isBlank(text.charCodeAt(at + 2))));
}

function isPathCode(text: string, at: number): boolean {
  return isHostCode(text.charCodeAt(at)) || text[at] === '/' || text[at] === '\\';
}

/** `C:\x`, `C:/x`; a slash with nothing after it is a drive's root only with a backslash. */
function readDrive(text: string, at: number, spans: Span[]): number {
  const slash = text[at + 1];
  const letter = at > 0 && isLetter(text.charCodeAt(at - 1)) && (at === 1 || !isWordCode(text.charCodeAt(at - 2)));
  if (!letter || (slash !== '\\' && (slash !== '/' || text[at + 2] === '/'))) return at + 1;
  const end = endOfPiece(text, at + 1);
  if (slash === '/' && end <= at + 2) return at + 1;
  spans.push({ start: at - 1, end });
  return end;
}

function readHome(text: string, at: number, spans: Span[]): number {
  if (!opensToken(text, at)) return at + 1;
  const tilde = text[at] === '~' && (text[at + 1] === '/' || text[at + 1] === '\\');
  const variable = tilde ? 2 : (HOME_VARIABLE.exec(text.slice(at, at + 20))?.[0].length ?? 0);
  if (variable === 0) return at + 1;
  const end = Math.max(endOfPiece(text, at + variable), at + variable);
  spans.push({ start: at, end });
  return end;
}

/** The file paths of a text that lead out of where a tool works: absolute, of a drive, of a home folder, to a parent. */
export function findPaths(text: string, spans: Span[]): void {
  let at = 0;
  while (at < text.length) {
    const code = text.charCodeAt(at);
    if (code === 0x2f) at = readAbsolute(text, at, spans);
    else if (code === 0x2e) at = readParent(text, at, spans);
    else if (code === 0x5c) at = readRooted(text, at, spans);
    else if (code === 0x3a) at = readDrive(text, at, spans);
    else if (code === 0x7e || code === 0x24 || code === 0x25) at = readHome(text, at, spans);
    else at += 1;
  }
}
