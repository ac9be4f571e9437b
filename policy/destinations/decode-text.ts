import { decodeHTML } from 'entities/decode';

const PERCENT_RUN = /(?:%[0-9A-Fa-f]{2})+/g;
const BACKSLASH =
  /\\(?:u\{([0-9A-Fa-f]{1,6})\}|u([0-9A-Fa-f]{4})|x([0-9A-Fa-f]{2})|([0-7]{3})|([/.:@]))|%u([0-9A-Fa-f]{4})|=(2E|2F|3A|40)/g;
const SHORTEST_CODED_RUN = 16;
const CODED_RUN: RegExp = new RegExp(`[A-Za-z0-9+/_-]{${SHORTEST_CODED_RUN},}`, 'g');
const CODED: Uint8Array = new Uint8Array(128);
for (const letter of 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/_-')
  CODED[letter.charCodeAt(0)] = 1;
// The commonest long id, too short and too few letters to hide anything.
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
const HEX_RUN = /^(?:[0-9A-Fa-f]{2})+$/;
const CONTROLS = /[^\P{Cc}\t\n\r]|\ufffd/u;
const SHORTEST_RUN = 10;
const PRINTABLE_RUN: RegExp = new RegExp(`[\\x20-\\x7e]{${SHORTEST_RUN},}`, 'g');
const BLANKS = /\s+/g;
const ONLY_CODED = /^[A-Za-z0-9+/_\-=\s]+$/;
const BLANK = /\s/;
// Sentences too are written in base64's alphabet, but seldom with a capital inside a word.
const INNER_CAPITAL = /[a-z][A-Z]/;
const UTF_8 = new TextDecoder('utf-8');

/** `%2E` as `.`, once. What is not UTF-8 becomes U+FFFD. */
export function decodePercent(text: string): string {
  if (!text.includes('%')) return text;
  return text.replace(PERCENT_RUN, (run) => {
    const bytes = new Uint8Array(run.length / 3);
    for (let index = 0; index < bytes.length; index += 1) {
      bytes[index] = Number.parseInt(run.slice(index * 3 + 1, index * 3 + 3), 16);
    }
    return UTF_8.decode(bytes);
  });
}

/** HTML's character references, named and numbered, also the old ones without a semicolon. */
export function decodeReferences(text: string): string {
  return text.includes('&') ? decodeHTML(text) : text;
}

function codePoint(hex: string): string {
  const code = Number.parseInt(hex, 16);
  return code > 0x10ffff ? '\ufffd' : String.fromCodePoint(code);
}

/** `\u002e`, `\x2e`, `\u{2e}`, `%u002e`, `\056`, a mark with a backslash before it as JSON and Markdown write it (`\/`), and of quoted-printable (RFC 2045) what makes an address: `=2E`. */
export function decodeEscapes(text: string): string {
  if (!text.includes('\\') && !text.includes('%u') && !text.includes('=')) return text;
  return text.replace(BACKSLASH, (_all, ...groups: (string | undefined)[]) => {
    const [braced, four, two, octal, mark, old, quoted] = groups;
    const hex = braced ?? four ?? two ?? old ?? quoted;
    if (octal !== undefined) return String.fromCharCode(Number.parseInt(octal, 8));
    return hex === undefined ? (mark ?? '') : codePoint(hex);
  });
}

/** True for a text that may hold a run of base64 or hexadecimal long enough to hide a destination. */
export function mayHoldCode(text: string): boolean {
  return text.length >= 16 && !UUID.test(text) && (hasCodedRun(text) || isWrapped(text));
}

/** As `CODED_RUN` would find one, without trying each word again from its every letter. */
function hasCodedRun(text: string): boolean {
  let run = 0;
  for (let at = 0; at < text.length; at += 1) {
    run = CODED[text.charCodeAt(at)] === 1 ? run + 1 : 0;
    if (run === SHORTEST_CODED_RUN) return true;
  }
  return false;
}

/** Base64 broken into lines or groups. */
function isWrapped(text: string): boolean {
  return BLANK.test(text) && INNER_CAPITAL.test(text) && ONLY_CODED.test(text);
}

function readable(bytes: Buffer, out: string[]): boolean {
  if (!hasControl(bytes)) {
    const text = UTF_8.decode(bytes);
    if (!CONTROLS.test(text)) {
      out.push(text);
      return true;
    }
  }
  // A few characters before the base64 make its beginning unreadable, not its rest.
  if (hasPrintableRun(bytes)) out.push(...(bytes.toString('latin1').match(PRINTABLE_RUN) ?? []));
  return false;
}

/** A control other than a tab or line break: what is no text nearly always shows one within a few bytes, before it is decoded. */
function hasControl(bytes: Buffer): boolean {
  for (let at = 0; at < bytes.length; at += 1) {
    const byte = bytes[at] ?? 0;
    if (byte === 0x7f || (byte < 0x20 && byte !== 0x09 && byte !== 0x0a && byte !== 0x0d)) return true;
  }
  return false;
}

function hasPrintableRun(bytes: Buffer): boolean {
  let run = 0;
  for (let at = 0; at < bytes.length; at += 1) {
    const byte = bytes[at] ?? 0;
    run = byte >= 0x20 && byte <= 0x7e ? run + 1 : 0;
    if (run === SHORTEST_RUN) return true;
  }
  return false;
}

/** Whatever is readable in base64 (either alphabet, at any of its four alignments) or in hexadecimal, a line for each. */
export function decodeCoded(text: string): string {
  if (!mayHoldCode(text)) return '';
  const out: string[] = [];
  const runs: string[] = text.match(CODED_RUN) ?? [];
  if (isWrapped(text)) runs.push(text.replace(BLANKS, ''));
  for (const run of runs) {
    if (run.length % 2 === 0 && HEX_RUN.test(run) && readable(Buffer.from(run, 'hex'), out)) continue;
    for (let skip = 0; skip < 4; skip += 1) {
      if (readable(Buffer.from(run.slice(skip), 'base64'), out)) break;
    }
  }
  return out.join('\n');
}

const SPOKEN_MARK =
  /[ \t]{0,3}[[({<]\s{0,3}(at|arroba|@|dot|ponto|punto|\.|slash|barra|colon|:)\s{0,3}[\])}>][ \t]{0,3}/gi;
const SPOKEN_ADDRESS =
  /(?<![\p{L}\p{N}_+-])([\p{L}\p{N}_+-]{1,64})\s{1,3}(?:at|arroba)\s{1,3}([\p{L}\p{N}-]{1,63})\s{1,3}(?:dot|ponto|punto)\s{1,3}(\p{L}{2,24})/giu;
// `evil dot com` and `evil .com`; not Portuguese, where `ponto com` is also a point with something.
const SPOKEN_HOST =
  /(?<![\p{L}\p{N}-])([\p{L}\p{N}-]{2,63})(?:\s{1,3}dot\s{1,3}|\s\.)(com|net|org|io|dev|app|xyz|info|biz|ai)(?![\p{L}\p{N}])/giu;
const ARTICLES: ReadonlySet<string> = new Set(
  'the an of this that every early first old new another any all like and or in is os as um uma no na'.split(' '),
);
const MARKS: Readonly<Record<string, string>> = {
  at: '@', arroba: '@', '@': '@', dot: '.', ponto: '.', punto: '.', '.': '.', slash: '/', barra: '/', colon: ':',
}; // biome-ignore format: a table

/** `alice [at] evil [dot] com`, `evil(.)com` and, for an address or a common suffix, the bare words, in English, Portuguese and Spanish. */
export function decodeSpoken(text: string): string {
  const marked = text.replace(SPOKEN_MARK, (_all, word: string) => MARKS[word.toLowerCase()] ?? word);
  const addressed = /\b(?:dot|ponto|punto)\b/i.test(marked) ? marked.replace(SPOKEN_ADDRESS, '$1@$2.$3') : marked;
  return addressed.replace(SPOKEN_HOST, (all, name: string, suffix: string) =>
    ARTICLES.has(name.toLowerCase()) ? all : `${name}.${suffix}`,
  );
}
