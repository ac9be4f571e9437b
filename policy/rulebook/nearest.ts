import { distance } from 'fastest-levenshtein';

/** The candidate nearest to a word that somebody wrote, where one is near enough to be what was meant. */
function nearest(word: string, candidates: Iterable<string>): string | undefined {
  if (word.length > 64) return undefined;
  let best: string | undefined;
  let least = Math.floor(word.length / 3) + 1;
  for (const candidate of candidates) {
    if (Math.abs(candidate.length - word.length) >= least) continue;
    const far = distance(word, candidate);
    if (far < least) {
      least = far;
      best = candidate;
    }
  }
  return best;
}

/** `; did you mean …?`, or nothing. */
export function didYouMean(word: string, candidates: Iterable<string>): string {
  const near = nearest(word, candidates);
  return near === undefined ? '' : `; did you mean \`${near}\`?`;
}

/** User input inside backticks in a message, on one line and cut to what a person reads. */
export function quoted(written: string): string {
  const text = written.replaceAll(/[\r\n]+\s*/g, ' ');
  return `\`${text.length > 60 ? `${text.slice(0, 57)}...` : text}\``;
}
