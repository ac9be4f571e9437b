import { endOfPiece, isHostCode, isLetter, isLocalCode, isWideWord, type Span } from './character-classes.ts';
import { hasHostSuffix } from './hosts.ts';
import { isIpv4 } from './ip-addresses.ts';

const LONGEST_DOMAIN = 253;
const DOMAIN_LITERAL = /^\[(?:ipv6:)?[0-9a-f:.]{3,45}\]/i;

function endsInWord(labels: readonly string[]): boolean {
  const last = labels.at(-1) ?? '';
  if (labels.length < 2 || last.length < 2 || labels.some((label) => label === '')) return false;
  for (let at = 0; at < last.length; at += 1) {
    const code = last.charCodeAt(at);
    if (!isLetter(code) && !isWideWord(code)) return /^xn--/i.test(last);
  }
  return true;
}

/** True where a domain could take mail: any name that ends in letters, resolvable here or not, `localhost`, an address. */
function takesMail(domain: string): boolean {
  const labels = domain.split('.');
  return domain.toLowerCase() === 'localhost' || endsInWord(labels) || hasHostSuffix(labels) || isIpv4(domain);
}

/**
 * The e-mail addresses of a text, and `user@host` as SSH takes it. A package at a version (`lodash@4.17.21`), a handle
 * (`@alice`) and a release (`checkout@v4`) have no domain that ends in a word.
 */
export function findEmails(text: string, spans: Span[]): void {
  let from = 0;
  for (let sign = text.indexOf('@'); sign !== -1; sign = text.indexOf('@', sign + 1)) {
    let start = sign;
    while (start > from && isLocalCode(text.charCodeAt(start - 1))) start -= 1;
    if (text[sign - 1] === '"' && start === sign) start = quotedStart(text, sign, from);
    from = sign + 1;
    if (start === sign) continue;
    let end = sign + 1;
    while (end < text.length && end - sign <= LONGEST_DOMAIN && isHostCode(text.charCodeAt(end))) end += 1;
    while (end > sign + 1 && '.-_'.includes(text[end - 1] ?? '')) end -= 1;
    const literal = text[sign + 1] === '[' ? DOMAIN_LITERAL.exec(text.slice(sign + 1, sign + 60))?.[0] : undefined;
    if (literal !== undefined) end = sign + 1 + literal.length;
    else if (!takesMail(text.slice(sign + 1, end))) continue;
    // `git@host:path` and `user@host/x` go on.
    if (text[end] === '/' || (text[end] === ':' && end + 1 < text.length)) end = Math.max(end, endOfPiece(text, end));
    // `left-pad@1.2.3.4` may be a version where the operator says so.
    spans.push({ start: trimLocal(text, start, sign), end, bare: isIpv4(text.slice(sign + 1, end)) });
    // What the piece covers is not read again, which keeps `a@b.co:a@b.co:...` linear.
    if (end > from) {
      from = end;
      sign = end - 1;
    }
  }
}

/** A quoted local part (RFC 5321 section 4.1.2), looked for no further than it may be long. */
function quotedStart(text: string, sign: number, from: number): number {
  for (let at = sign - 2; at >= from && sign - at <= 66; at -= 1) if (text[at] === '"') return at;
  return sign;
}

/** What opens a sentence's or a form's piece (`to=a@b.co`, `'a@b.co'`) may stand in a local part; show the address alone. */
function trimLocal(text: string, start: number, sign: number): number {
  for (let at = sign - 1; at > start; at -= 1) if ("='`{|/?&!*#".includes(text[at - 1] ?? '')) return at;
  return start;
}
