/** What a text is cut into: words, ids and numbers whole; each mark at their edges, each space and line break on its own. */
const SPACE = /[\p{Zs}\t]/u;
const LINE_BREAK = /[\r\n\v\f\u0085\u2028\u2029]/;
const LETTERS_OR_DIGITS = /[\p{L}\p{M}\p{N}]/u;
const NAME = /^[\p{L}\p{M}_-]+$/u;
const ALWAYS_APART = '()[]{}<>"“”«»;';
const LEADING = "'#@*_~`¿¡§†‹›„‚&|%,:!?";
const TRAILING = "'.,:!?…%*_~`‹›&|°";
// `nº4411`, `n.4411`, `no.4411`
const NUMBER_SIGN = /^n(?:[º°]\.?|\.[º°]?|o\.|r\.)(?=[0-9])/i;
const CURRENCY = /^([+\-−]?)((?:US|CA|AU|NZ|HK|R|A|C)?\$|[€£¥₹₩₽₺¢])(?=[+\-−]?[.,]?[0-9]|$)/;
const CURRENCY_AFTER = /[0-9](R\$|US\$|[$€£¥₹₩₽₺¢])$/;

function isDigitAt(text: string, at: number): boolean {
  const code = text.charCodeAt(at);
  return code >= 0x30 && code <= 0x39;
}

/** An ASCII letter or digit: never ends a token, and most of what people type. */
function isPlainWord(code: number): boolean {
  return (code >= 0x61 && code <= 0x7a) || (code >= 0x30 && code <= 0x39) || (code >= 0x41 && code <= 0x5a);
}

function isSpace(character: string): boolean {
  return character === ' ' || (character > '\x7f' ? SPACE.test(character) : character === '\t');
}

/** The same text for whatever is typed alike: NFC, curly quotes straight, kinds of spaces and line breaks one. */
function plain(text: string): string {
  const composed = text.normalize('NFC');
  return composed.replace(/[’‘ʼ]/g, "'").replace(/\r\n?/g, '\n');
}

/** True for a token that says something: a word, an id, a number. */
export function isWord(token: string): boolean {
  return LETTERS_OR_DIGITS.test(token);
}

/** True where the mark at `at` ends a token: a bracket, or a comma, dash or colon that no number holds. */
function cutsAt(text: string, start: number, at: number): boolean {
  const mark = text[at] ?? '';
  if (ALWAYS_APART.includes(mark)) return true;
  const between = isDigitAt(text, at - 1) && isDigitAt(text, at + 1);
  if (mark === ',' || mark === '—' || mark === '–' || mark === '…') return at > start && !between;
  if (mark !== ':' && mark !== '=') return false;
  // `pedido:4411` is two words; `10:30`, `https://x`, `std::string` and `C:\x` are one.
  const next = text[at + 1] ?? ' ';
  return at > start && at - start <= 64 && !'/\\:='.includes(next) && NAME.test(text.slice(start, at));
}

/** A chunk between marks that cut, as marks before it, the word, marks after it. */
function pushChunk(text: string, start: number, end: number, out: string[]): void {
  let from = start;
  let to = end;
  // `,99` is 0,99 in Portuguese and nothing in English, but never 99.
  while (from < to && LEADING.includes(text[from] ?? '') && !(text[from] === ',' && isDigitAt(text, from + 1)))
    out.push(text[from++] ?? '');
  const after: string[] = [];
  while (to > from && TRAILING.includes(text[to - 1] ?? '')) after.push(text[--to] ?? '');
  let word = text.slice(from, to);
  const sign = NUMBER_SIGN.exec(word.slice(0, 6))?.[0];
  if (sign !== undefined) {
    out.push(sign);
    word = word.slice(sign.length);
  }
  const before = CURRENCY.exec(word.slice(0, 8));
  if (before !== null) {
    out.push(before[2] ?? '');
    word = (before[1] ?? '') + word.slice(before[0].length);
  }
  const behind = before === null ? CURRENCY_AFTER.exec(word.slice(-5))?.[1] : undefined;
  if (behind !== undefined) word = word.slice(0, -behind.length);
  if (word !== '') out.push(word);
  if (behind !== undefined) out.push(behind);
  for (let index = after.length - 1; index >= 0; index -= 1) out.push(after[index] ?? '');
}

/**
 * Cuts a text into tokens. A token never ends inside a number, date, id, address or word: `44` is no token of `SKU-44.11-A`,
 * `40` none of `40,00`, `1.234` or `29/11/2026`. Spaces come as `' '`, line breaks as `'\n'`, runs as one.
 */
export function tokenize(source: string): string[] {
  const text = plain(source);
  const out: string[] = [];
  let start = 0;
  for (let at = 0; at <= text.length; at += 1) {
    if (isPlainWord(text.charCodeAt(at))) continue;
    const character = text[at] ?? '\n';
    const line = character <= '\x7f' ? '\n\v\f'.includes(character) : LINE_BREAK.test(character);
    // A no-break space between digits groups thousands: what it joins is one number, in neither language well-formed.
    const space =
      !line && isSpace(character) && !(character !== ' ' && isDigitAt(text, at - 1) && isDigitAt(text, at + 1));
    if (!line && !space && !cutsAt(text, start, at)) continue;
    if (at > start) pushChunk(text, start, at, out);
    start = at + 1;
    if (at === text.length) break;
    const last = out.at(-1);
    if (line) {
      if (last === ' ') out.pop();
      if (out.at(-1) !== '\n') out.push('\n');
    } else if (!space) out.push(character);
    else if (last !== ' ' && last !== '\n') out.push(' ');
  }
  return out;
}
