import type { RouteConfig } from '../config/config.ts';
import type { ConfigPath, ProblemLog } from '../config/problem.ts';
import type { RawTool } from '../config/raw.ts';

type Word = Exclude<keyof RawTool, 'name'>;

/** The words about one tool, and where each was said. */
export interface ToolWords {
  readonly said: Omit<RawTool, 'name'>;
  /** Where a word stands; the tool's own place where it was not said. */
  readonly pathOf: (word: Word) => ConfigPath;
  /** Whether a word stands in an entry with exactly this tool's name. */
  readonly isExact: (word: Word) => boolean;
}

/**
 * The words about tool `name` of a route: of all entries whose `name` fits, the most specific wins, word by word. Most
 * specific is the name itself, then the glob with the most characters that are no wildcard; two that are equally
 * specific and differ are a fault.
 */
export function wordsFor(route: RouteConfig, name: string, own: ConfigPath, log: ProblemLog): ToolWords {
  const said: Record<string, unknown> = {};
  const from = new Map<string, { readonly index: number; readonly weight: number; readonly exact: boolean }>();
  for (const [index, entry] of route.tools.entries()) {
    if (!matchesGlob(entry.name, name)) continue;
    const exact = !isGlob(entry.name);
    const weight = exact ? Number.POSITIVE_INFINITY : entry.name.replace(/[*?]/g, '').length;
    for (const [word, value] of Object.entries(entry)) {
      if (word === 'name') continue;
      const known = from.get(word);
      if (known !== undefined && known.weight > weight) continue;
      if (known !== undefined && known.weight === weight && JSON.stringify(said[word]) !== JSON.stringify(value)) {
        const other = route.tools[known.index]?.name ?? '';
        log.error(
          'ambiguous_glob',
          ['routes', route.index, 'tools', index, word],
          `\`${entry.name}\` and \`${other}\` say different things of \`${name}\` and neither is more specific`,
          'key',
        );
      }
      said[word] = value;
      from.set(word, { index, weight, exact });
    }
  }
  return {
    said,
    pathOf: (word) => {
      const found = from.get(word);
      return found === undefined ? own : ['routes', route.index, 'tools', found.index, word];
    },
    isExact: (word) => from.get(word)?.exact ?? false,
  };
}

/** Words by which a tool is held less than it would be without them. */
const LOWERING: Readonly<Partial<Record<Word, unknown>>> = {
  writes: false,
  reads_outside: false,
  sends_out: true,
  idempotent: true,
  confirm: 'reasons',
};

/** The words without those of globs that lower a guard; which words those were. */
export function withoutLoweringGlobs(words: ToolWords): { readonly words: ToolWords; readonly left: readonly Word[] } {
  const left = WORDS.filter(
    (word) => words.said[word] !== undefined && words.said[word] === LOWERING[word] && !words.isExact(word),
  );
  if (left.length === 0) return { words, left };
  const said = Object.fromEntries(Object.entries(words.said).filter(([word]) => !left.some((other) => other === word)));
  return { words: { ...words, said }, left };
}

const WORDS = ['writes', 'reads_outside', 'sends_out', 'idempotent', 'confirm'] as const;

/** Whether a name holds wildcards. */
export function isGlob(name: string): boolean {
  return name.includes('*') || name.includes('?');
}

/** Whether `name` fits `glob`: `*` stands for any characters, `?` for one. Time grows with the product of the lengths. */
export function matchesGlob(glob: string, name: string): boolean {
  let at = 0;
  let pattern = 0;
  let star = -1;
  let starAt = 0;
  while (at < name.length) {
    if (glob[pattern] === '*') {
      star = pattern;
      starAt = at;
      pattern += 1;
    } else if (pattern < glob.length && (glob[pattern] === '?' || glob[pattern] === name[at])) {
      pattern += 1;
      at += 1;
    } else if (star >= 0) {
      pattern = star + 1;
      starAt += 1;
      at = starAt;
    } else {
      return false;
    }
  }
  while (glob[pattern] === '*') pattern += 1;
  return pattern === glob.length;
}
