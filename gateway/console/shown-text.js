import { element } from './element.js';

/**
 * What a reader does not see, or what moves the text around it: controls, format and bidi characters, private and unassigned
 * ones, what fonts ignore, separators and every space but the plain one, and blanks that count as letters or symbols.
 */
const HIDDEN = /[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]|(?! )\p{Zs}/u;

/** More marks on one letter than any writing has: they run over the lines above and below. */
const MOST_MARKS = 4;

/** Names of those that are used to deceive; the others are shown by number. */
const NAMES = new Map([
  [0x00, 'null'],
  [0x09, 'tab'],
  [0x0a, 'new line'],
  [0x0d, 'carriage return'],
  [0x1b, 'escape'],
  [0xa0, 'no-break space'],
  [0xad, 'soft hyphen'],
  [0x061c, 'Arabic letter mark'],
  [0x200b, 'zero-width space'],
  [0x200c, 'zero-width non-joiner'],
  [0x200d, 'zero-width joiner'],
  [0x200e, 'left-to-right mark'],
  [0x200f, 'right-to-left mark'],
  [0x2028, 'line separator'],
  [0x202a, 'left-to-right embedding'],
  [0x202b, 'right-to-left embedding'],
  [0x202c, 'end of direction'],
  [0x202d, 'left-to-right override'],
  [0x202e, 'right-to-left override'],
  [0x2060, 'word joiner'],
  [0x2066, 'left-to-right isolate'],
  [0x2067, 'right-to-left isolate'],
  [0x2068, 'first strong isolate'],
  [0x2069, 'end of isolate'],
  [0xfeff, 'zero-width no-break space'],
]);

/**
 * A text of strangers as it is, in its own direction, with what would not be seen written out.
 * @param {string} text
 * @param {boolean} [laidOut] Its lines are our layout and not its own: JSON, which writes its own as `\\n`.
 */
export function shownText(text, laidOut = false) {
  const shown = element('bdi', { class: 'text' });
  let plain = '';
  let marks = 0;
  /** The hidden character that came last, and how often in a row. */
  let run;
  const flush = () => {
    if (plain !== '') shown.append(plain);
    plain = '';
  };
  for (const char of text) {
    marks = /\p{M}/u.test(char) ? marks + 1 : 0;
    if ((laidOut && char === '\n') || (!HIDDEN.test(char) && marks <= MOST_MARKS)) {
      plain += char;
      continue;
    }
    flush();
    if (run?.char === char && shown.lastChild === run.node) {
      run.times += 1;
      run.node.textContent = `${nameOf(char)} \u00d7${run.times}`;
      continue;
    }
    run = { char, node: hiddenChar(char), times: 1 };
    shown.append(run.node);
    // A line of the value is a line on the screen; the mark says that it is the value's own.
    if (char === '\n') shown.append('\n');
  }
  flush();
  return shown;
}

/** The same in one string, for titles and labels, which take no elements. */
export function shownWords(text) {
  let shown = '';
  for (const char of text) shown += HIDDEN.test(char) ? `[${nameOf(char)}]` : char;
  return shown;
}

function hiddenChar(char) {
  const name = nameOf(char);
  return element('span', { class: 'hidden-char', title: name }, char === '\n' ? '\u21b5' : name);
}

function nameOf(char) {
  const point = char.codePointAt(0) ?? 0;
  const code = `U+${point.toString(16).toUpperCase().padStart(4, '0')}`;
  const name = NAMES.get(point);
  return name === undefined ? code : `${code} ${name}`;
}

const LOOKALIKES = /[\p{Script=Cyrillic}\p{Script=Greek}\p{Script=Armenian}\p{Script=Cherokee}]|[\uff01-\uff5e]/u;
const LATIN = /\p{Script=Latin}/u;
const RIGHT_TO_LEFT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u;

/** What a person should know of a text before believing their eyes, a sentence each. */
export function warningsOf(text) {
  const warnings = [];
  let hidden = 0;
  for (const char of text) if (char !== '\n' && HIDDEN.test(char)) hidden += 1;
  if (hidden > 0)
    warnings.push(`${hidden === 1 ? '1 hidden character is' : `${hidden} hidden characters are`} written out.`);
  if (text !== text.trim()) warnings.push('There is space at the beginning or the end.');
  if (LATIN.test(text) && LOOKALIKES.test(text))
    warnings.push('Letters of several alphabets are mixed; some look alike.');
  if (RIGHT_TO_LEFT.test(text))
    warnings.push('Part of it reads from right to left, so parts can stand in another order.');
  return warnings;
}
