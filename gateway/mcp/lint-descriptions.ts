import type { JsonValue } from '../../receipts/json-value.ts';
import type { ToolDraft } from '../catalogue/tool-draft.ts';
import type { ProblemLog } from '../config/problem.ts';

/** Shorter names stand in too many sentences to mean a tool. */
const SHORTEST_NAME = 5;
const MAX_TEXT = 100_000;

/** What speaks to a model and not of the tool, in lower case. */
const ORDERS = [
  'ignore previous',
  'ignore all previous',
  'ignore the previous',
  'disregard',
  'do not tell',
  "don't tell",
  'do not mention',
  "don't mention",
  'without telling',
  'system prompt',
  'you must',
  'must first call',
  'always call',
  'call this tool first',
  'before using any other tool',
  'before calling any other tool',
  'before any other tool',
  '<important>',
  '<system>',
] as const;

/**
 * Warns of descriptions that servers list and a model will read: those that name another tool, hide text, or give orders.
 * What the operator wrote instead of a server's description is not looked at.
 */
export function lintDescriptions(drafts: readonly ToolDraft[], log: ProblemLog): void {
  const listed = drafts.filter(({ source }) => source.listed !== undefined);
  const names = new Map(
    drafts.filter(({ source }) => source.name.length >= SHORTEST_NAME).map((d) => [d.source.name, d.id]),
  );
  for (const { id, source, words } of listed) {
    const text = textsOf(source.listed ?? null, words.said.description !== undefined)
      .join('\n')
      .slice(0, MAX_TEXT);
    const warn = (what: string): void => {
      log.warning(
        'description',
        source.path,
        `the description of \`${id}\` ${what}; a model reads it: say a \`description\` of your own, or leave the tool out`,
      );
    };
    if (hidesText(text)) warn('holds characters that nobody sees (zero-width, bidirectional or tag characters)');
    const order = ORDERS.find((phrase) => text.toLowerCase().includes(phrase));
    if (order !== undefined) warn(`gives orders (\`${order}\`)`);
    const other = wordsOf(text).find((word) => word !== source.name && names.has(word) && names.get(word) !== id);
    if (other !== undefined) warn(`names another tool, \`${names.get(other)}\``);
  }
}

/** Every text of a definition that is shown to a model: its descriptions and titles, also those of arguments. */
function textsOf(value: JsonValue, hasOwn: boolean, depth = 0): readonly string[] {
  if (typeof value !== 'object' || value === null || depth > 32) return [];
  if (Array.isArray(value)) return value.flatMap((item) => textsOf(item, false, depth + 1));
  return Object.entries(value).flatMap(([name, member]) => {
    if (hasOwn && depth === 0 && name === 'description') return [];
    const isText = typeof member === 'string' && (name === 'description' || name === 'title');
    return isText ? [member] : textsOf(member, false, depth + 1);
  });
}

function wordsOf(text: string): readonly string[] {
  return text
    .split(/[^A-Za-z0-9_-]/)
    .filter(
      (word) => word.length >= SHORTEST_NAME && (word.includes('_') || word.includes('-') || /[a-z][A-Z]/.test(word)),
    );
}

/** Zero-width and bidirectional controls, variation selectors beyond emoji's, and the tag block. */
function hidesText(text: string): boolean {
  for (const char of text) {
    const code = char.codePointAt(0) ?? 0;
    if (code >= 0x200b && code <= 0x200f) return true;
    if (code >= 0x202a && code <= 0x202e) return true;
    if (code >= 0x2060 && code <= 0x206f) return true;
    if (code === 0xfeff || code === 0x00ad || code === 0x061c || code === 0x180e) return true;
    if (code >= 0xe0000 && code <= 0xe0fff) return true;
  }
  return false;
}
