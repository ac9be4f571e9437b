import { distance } from 'fastest-levenshtein';

/** The word of `words` that `word` was probably meant to be, where one is near. */
export function nearestWord(word: string, words: Iterable<string>): string | undefined {
  let best: string | undefined;
  let bestDistance = Math.max(2, Math.floor(word.length / 3)) + 1;
  const asked = word.toLowerCase().slice(0, 200);
  for (const candidate of words) {
    const steps = distance(asked, candidate.toLowerCase());
    if (steps < bestDistance) {
      best = candidate;
      bestDistance = steps;
    }
  }
  return best;
}

/** `; did you mean ...?`, or else the words that there are, to stand behind a message; empty where they are many. */
export function suggest(word: string, words: readonly string[]): string {
  const near = nearestWord(word, words);
  if (near !== undefined) return `; did you mean \`${near}\`?`;
  // A long list is no suggestion; the reference has it.
  if (words.length === 0 || words.length > 12) return '';
  return `; there ${words.length === 1 ? 'is' : 'are'} ${words.map((known) => `\`${known}\``).join(', ')}`;
}
