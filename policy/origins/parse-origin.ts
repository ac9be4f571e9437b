/** Where a caller says an argument's value came from. `step` counts the session's entries from 0. */
export type Origin =
  | { readonly kind: 'typed' | 'reply' | 'context' | 'computed' | 'model' }
  | { readonly kind: 'result'; readonly step: number; readonly field?: string };

const MODEL: Origin = Object.freeze({ kind: 'model' });
const WORDS: ReadonlyMap<string, Origin> = new Map([
  ['typed', Object.freeze({ kind: 'typed' })],
  ['reply', Object.freeze({ kind: 'reply' })],
  ['context', Object.freeze({ kind: 'context' })],
  ['computed', Object.freeze({ kind: 'computed' })],
  ['model', MODEL],
]);
const LONGEST = 512;
const RESULT = /^result:(0|[1-9][0-9]{0,8})(?:\.([^.\s\p{Cc}]+(?:\.[^.\s\p{Cc}]+)*))?$/u;

/**
 * Reads an origin: `typed`, `reply`, `context`, `computed`, `model`, `result:<step>` or `result:<step>.<field>` with a
 * dotted path. Anything else, also a known word in another case or with white space, is `model`: the least trusted.
 */
export function parseOrigin(text: string): Origin {
  const word = WORDS.get(text);
  if (word !== undefined) return word;
  const match = text.length > LONGEST ? null : RESULT.exec(text);
  if (match === null) return MODEL;
  const step = Number(match[1]);
  const field = match[2];
  return field === undefined ? { kind: 'result', step } : { kind: 'result', step, field };
}
