import { decodeCoded, decodeEscapes, decodePercent, decodeReferences, decodeSpoken } from './decode-text.ts';
import { foldText, isAscii, latinLookAlikes } from './fold-text.ts';

/** How often one decoding may follow another; percent signs alone are taken off three times. */
const DEEPEST = 4;
const MOST_VIEWS = 48;
const MIGHT_SPEAK = /[[({<]|\b(?:dot|ponto|punto)\b|\s\.[a-z]/i;
const SPLIT_SCHEME = /^[\s\p{Cc}]*(?:https?|ftp|wss?|file|mailto|javascript|data|blob):/iu;
const LINE_BREAK = /[\t\r\n]/;
const LINE_BREAKS = /[\t\r\n]+/g;

/** One way of reading a string. `again` is the decoding that gave it, so that a piece already reported is known in it. */
export interface View {
  readonly text: string;
  readonly again: (piece: string) => string;
}

/** Counts the text that decoding makes during one call, so that a disguise cannot buy unbounded work. */
export class ViewBudget {
  private left: number;

  /** `units`: how many UTF-16 code units all views of a call may have together. */
  constructor(units: number) {
    this.left = units;
  }

  /** Takes `units` off; false where there are not so many. */
  take(units: number): boolean {
    this.left -= units;
    return this.left >= 0;
  }
}

const STEPS: readonly ((text: string) => string)[] = [decodePercent, decodeReferences, decodeEscapes];

/**
 * Calls `visit` for each view of `text`: as it is, folded, decoded (percent, character references, escapes, base64 and
 * hexadecimal, in any order up to four deep), and with its spoken marks written out. Answers false where the budget or
 * the number of views ran out: then nobody knows what the string holds.
 */
export function visitViews(text: string, budget: ViewBudget, visit: (view: View) => void): boolean {
  const seen = new Set<string>();
  const show = (view: string, again: (piece: string) => string): boolean => {
    seen.add(view);
    if (seen.size > MOST_VIEWS || !budget.take(view.length)) return false;
    visit({ text: view, again });
    return true;
  };
  const aside = (view: string, again: (piece: string) => string): boolean =>
    view === '' || seen.has(view) || show(view, again);

  const expand = (source: string, depth: number): boolean => {
    if (MIGHT_SPEAK.test(source) && !aside(decodeSpoken(source), decodeSpoken)) return false;
    if (!isAscii(source) && !aside(latinLookAlikes(source), latinLookAlikes)) return false;
    // The URL standard drops line breaks and tabs from a URL before it reads it, wherever they stand.
    const head = source.slice(0, 64);
    if (LINE_BREAK.test(source) && SPLIT_SCHEME.test(unbroken(head)) && !aside(unbroken(source), unbroken))
      return false;
    if (depth === DEEPEST) return true;
    for (const step of STEPS) {
      const decoded = step(source);
      if (decoded !== source && !follow(decoded, step, depth)) return false;
    }
    const coded = decodeCoded(source);
    return coded === '' || follow(coded, same, depth);
  };
  const follow = (decoded: string, step: (piece: string) => string, depth: number): boolean => {
    if (seen.has(decoded)) return true;
    if (!show(decoded, step)) return false;
    const folded = foldText(decoded);
    if (folded === decoded) return expand(decoded, depth + 1);
    if (seen.has(folded)) return true;
    return show(folded, (piece) => foldText(step(piece))) && expand(folded, depth + 1);
  };

  // The folded view first: what a disguise split in two is then known as parts of one piece.
  const folded = foldText(text);
  if (!show(folded, foldText) || (folded !== text && !show(text, same))) return false;
  return expand(folded, 0);
}

function unbroken(piece: string): string {
  return piece.replace(LINE_BREAKS, '');
}

function same(piece: string): string {
  return piece;
}
