/** The first words of the statements that are read. */
export const KNOWN: readonly string[] = [
  'abort',
  'bot',
  'break',
  'continue',
  'create',
  'do',
  'done',
  'else',
  'event',
  'execute',
  'goto',
  'if',
  'label',
  'log',
  'meta',
  'pass',
  'priority',
  'return',
  'set',
  'stop',
  'user',
  'when',
  'while',
];

/** Statements of the language, or near to it, that are refused on purpose, with what to write instead. */
export const REFUSED: ReadonlyMap<string, string> = new Map([
  ['for', 'loops over lists are not read; write the cases out'],
  ['foreach', 'loops over lists are not read; write the cases out'],
  ['check', '`check` does nothing that can be decided; write `if`'],
  ['any', '`any` is not read; write `when … else when …`'],
  ['elif', 'this is Colang 2.x; in a 1.0 file write `else if`'],
  ['await', 'this is Colang 2.x; in a 1.0 file write `execute NAME` or `do NAME`'],
  ['start', 'this is Colang 2.x; in a 1.0 file write `execute NAME` or `do NAME`'],
  ['activate', 'this is Colang 2.x; in a 1.0 file a `define flow` is active by itself'],
  ['match', 'this is Colang 2.x; in a 1.0 file write `user NAME`'],
  ['flow', 'flows are not defined inside flows; write `define flow` at column 1'],
  ['define', 'a definition starts at column 1'],
]);

/** The word that says what a statement is; `else if` and `else when` count as one. */
export function headOf(text: string): string {
  const two = /^(else\s+(?:if|when)|go\s+to)(?![^\s:])/.exec(text)?.[1];
  if (two !== undefined) return two.startsWith('go') ? 'goto' : two.endsWith('if') ? 'else if' : 'else when';
  const word = /^\S+/.exec(text)?.[0] ?? '';
  return word.length > 1 && word.endsWith(':') ? word.slice(0, -1) : word;
}
