import type { Language } from './typed-numbers.ts';

const MONTHS: Readonly<Record<Language, ReadonlySet<string>>> = {
  en: new Set(
    (
      'january february march april may june july august september october november december ' +
      'jan feb mar apr jun jul aug sep sept oct nov dec'
    ).split(' '),
  ),
  'pt-BR': new Set(
    (
      'janeiro fevereiro março marco abril maio junho julho agosto setembro outubro novembro dezembro ' +
      'jan fev mar abr mai jun jul ago set out nov dez'
    ).split(' '),
  ),
};
const BETWEEN: ReadonlySet<string> = new Set([' ', ',', '.', 'de', 'of', 'the']);
const FARTHEST = 4;
const DAY_OR_YEAR = /^(?:[1-9]|[12][0-9]|3[01]|(?:19|20)[0-9]{2})$/;

function neighbour(tokens: readonly string[], at: number, step: 1 | -1): number {
  for (let next = at + step, passed = 0; passed <= FARTHEST; next += step, passed += 1) {
    const token = tokens[next];
    if (token === undefined) return -1;
    if (!BETWEEN.has(token.toLowerCase())) return next;
  }
  return -1;
}

/**
 * Tells the numbers of one turn that are part of a date in words: the 29 and the 2026 of `29 de novembro de 2026` and of
 * `November 29, 2026` are no amount that the person typed. Asked in order of the tokens.
 */
export class DateWords {
  private readonly tokens: readonly string[];
  private readonly months: ReadonlySet<string>;
  private last = -1;

  constructor(tokens: readonly string[], language: Language) {
    this.tokens = tokens;
    this.months = MONTHS[language];
  }

  /** True where the token at `at` is a day or year beside a month's name, or a year after such a day. */
  covers(at: number): boolean {
    const token = this.tokens[at] ?? '';
    if (!DAY_OR_YEAR.test(token)) return false;
    const before = neighbour(this.tokens, at, -1);
    const covered = this.isMonth(before) || this.isMonth(neighbour(this.tokens, at, 1)) || this.follows(before, token);
    if (covered) this.last = at;
    return covered;
  }

  private follows(before: number, token: string): boolean {
    return before !== -1 && before === this.last && token.length === 4;
  }

  private isMonth(at: number): boolean {
    return at !== -1 && this.months.has((this.tokens[at] ?? '').toLowerCase());
  }
}
