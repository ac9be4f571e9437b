import { isDigit, isHexCode, isHostCode, isWordCode, type Span } from './character-classes.ts';

const QUAD_PART = /^(?:0x[0-9a-f]{1,8}|[0-9]{1,11})$/i;
const HEX_GROUP = /^[0-9a-f]{1,4}$/i;
const LOCAL_PREFIX = /^f[c-f]/i;
const ANY_DIGIT = /[0-9]/;

function partValue(part: string): number {
  if (!QUAD_PART.test(part)) return -1;
  if (part.startsWith('0x') || part.startsWith('0X')) return Number.parseInt(part.slice(2), 16);
  if (part.length > 1 && part.startsWith('0') && /^[0-7]+$/.test(part)) return Number.parseInt(part, 8);
  return Number.parseInt(part, 10);
}

/**
 * True where a run of host characters is an IPv4 address: four parts, each up to 255 and each decimal, octal or
 * hexadecimal; or fewer parts of which one is hexadecimal, as the WHATWG URL standard's IPv4 parser takes them (`0x7f.1`).
 * A whole number alone is an order number, not an address.
 */
export function isIpv4(run: string): boolean {
  if (run.length < 5 || run.length > 48) return false;
  const parts = run.split('.');
  if (parts.length < 2 || parts.length > 4) return false;
  let hexadecimal = false;
  for (let index = 0; index < parts.length; index += 1) {
    const part = parts[index] ?? '';
    const value = partValue(part);
    const last = index === parts.length - 1;
    if (value < 0 || value > (last ? 256 ** (5 - parts.length) - 1 : 255)) return false;
    hexadecimal ||= part.length > 2 && (part[1] === 'x' || part[1] === 'X');
  }
  return parts.length === 4 || hexadecimal;
}

/** True for an IPv6 address (RFC 4291 section 2.2), with or without a dotted quad at its end; no zone, no brackets. */
function isIpv6(text: string): boolean {
  if (text.length < 2 || text.length > 45) return false;
  const halves = text.split('::');
  if (halves.length > 2) return false;
  let groups = 0;
  for (let half = 0; half < halves.length; half += 1) {
    const side = halves[half] ?? '';
    if (side === '') continue;
    const pieces = side.split(':');
    for (let index = 0; index < pieces.length; index += 1) {
      const piece = pieces[index] ?? '';
      const atEnd = half === halves.length - 1 && index === pieces.length - 1;
      if (HEX_GROUP.test(piece)) groups += 1;
      else if (atEnd && piece.includes('.') && piece.split('.').length === 4 && isIpv4(piece)) groups += 2;
      else return false;
    }
  }
  return halves.length === 2 ? groups <= 7 : groups === 8;
}

/** `DB::add` and `a::b` read as IPv6 to a parser and as code to everyone else. */
function readsAsCode(text: string): boolean {
  return !ANY_DIGIT.test(text) && !LOCAL_PREFIX.test(text);
}

/** The IPv6 addresses of a text, with their brackets and port. Colons and hexadecimal digits make one run, read once. */
export function findIpv6(text: string, spans: Span[]): void {
  let colon = text.indexOf(':');
  let from = 0;
  while (colon !== -1) {
    let start = colon;
    while (start > from && isHexCode(text.charCodeAt(start - 1))) start -= 1;
    let end = colon;
    while (end < text.length) {
      const code = text.charCodeAt(end);
      if (!isHexCode(code) && code !== 0x3a && code !== 0x2e) break;
      end += 1;
    }
    from = end;
    let stop = end;
    while (stop > start && text[stop - 1] === '.') stop -= 1;
    // `addr:2001:db8::1` and `2001:db8::1:` carry a colon of the sentence, not of the address.
    if (text[start] === ':' && text[start + 1] !== ':') start += 1;
    if (text[stop - 1] === ':' && text[stop - 2] !== ':') stop -= 1;
    const run = text.slice(start, Math.min(stop, start + 46));
    const bracketed = text[start - 1] === '[' && (text[stop] === ']' || text[stop] === '%');
    const apart =
      !(start > 0 && isHostCode(text.charCodeAt(start - 1))) &&
      !(stop < text.length && isWordCode(text.charCodeAt(stop)));
    if (
      (bracketed || (apart && !readsAsCode(run))) &&
      run.includes(':') &&
      (run !== '::' || (bracketed && text[stop + 1] === ':')) &&
      isIpv6(run)
    ) {
      spans.push(withBrackets(text, start, stop, bracketed));
    }
    colon = text.indexOf(':', end);
  }
}

function withBrackets(text: string, start: number, stop: number, bracketed: boolean): Span {
  let end = stop;
  if (text[end] === '%') while (end < text.length && (isHostCode(text.charCodeAt(end)) || text[end] === '%')) end += 1;
  if (!bracketed) return { start, end };
  if (text[end] === ']') end += 1;
  if (text[end] === ':') {
    let port = end + 1;
    while (port < text.length && isDigit(text.charCodeAt(port))) port += 1;
    if (port > end + 1) end = port;
  }
  return { start: start - 1, end };
}
