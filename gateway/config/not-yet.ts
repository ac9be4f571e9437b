import type { JsonValue } from '../../receipts/json-value.ts';
import type { ConfigPath, ProblemLog } from './problem.ts';

/**
 * Words that the schema knows and the gateway does not enforce yet. A configuration that uses one is refused: a word
 * that is read and not obeyed would be a rule that its author believes in. `*` stands for any member; `at_most.*` is met
 * by the forms of `at_most` that have members, not by its bare number. The table shrinks as they are built.
 */
export const NOT_YET: Readonly<Record<string, string>> = {};

/** Refuses every word of `table` that the configuration uses; each once, at its own place. */
export function checkNotYet(value: JsonValue, table: Readonly<Record<string, string>>, log: ProblemLog): void {
  for (const [pattern, sentence] of Object.entries(table)) {
    const told = new Set<string>();
    for (const path of matches(value, pattern.split('.'), [])) {
      const word = pattern.endsWith('.*') ? path.slice(0, -1) : path;
      const key = word.join('/');
      if (told.has(key)) continue;
      told.add(key);
      log.error('not_yet', word, `\`${String(word.at(-1))}\`: ${sentence}; take the word out`, 'key');
    }
  }
}

function* matches(value: JsonValue, pattern: readonly string[], path: ConfigPath): Generator<ConfigPath> {
  const [part, ...rest] = pattern;
  if (part === undefined) {
    yield path;
    return;
  }
  if (value === null || typeof value !== 'object') return;
  const members: readonly (readonly [string | number, JsonValue])[] = Array.isArray(value)
    ? value.map((item, index) => [index, item])
    : Object.entries(value);
  for (const [key, member] of members) {
    if (part === '*' || part === String(key)) yield* matches(member, rest, [...path, key]);
  }
}
