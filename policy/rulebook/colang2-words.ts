const HEAD = /^(?:else\s+if|or\s*when|\.\.\.|[\p{L}\p{N}_]+|\$[\p{L}\p{N}_]+|\S)/u;

/** The word that says what a statement is; `else if` and `or when` count as one. */
export function headOf(text: string): string {
  const head = HEAD.exec(text)?.[0] ?? '';
  if (head.startsWith('else')) return head === 'else' || !/^else\s+if$/.test(head) ? head : 'else if';
  return /^or\s*when$/.test(head) ? 'or when' : head;
}

/** The first words of statements: with a colon behind it such a word is a statement written wrongly, and no label. */
const STATEMENTS: ReadonlySet<string> = new Set(
  'abort activate await bot break continue deactivate define elif else execute flow global if import log match or pass print priority return send start stop user when while'.split(
    ' ',
  ),
);

/** `start_new_flow_instance:` and its like say how the conversation engine runs a flow. */
export function isLabel(text: string): boolean {
  return /^[\p{L}\p{N}_]+:$/u.test(text) && !STATEMENTS.has(text.slice(0, -1));
}
