import { headOf, KNOWN } from './colang1-words.ts';
import { positionAt } from './line.ts';
import { quoted } from './nearest.ts';
import type { Outline } from './outline.ts';
import type { Problems } from './problem.ts';

const STATEMENTS: ReadonlySet<string> = new Set([...KNOWN, 'else if', 'else when']);

/** Refuses statements among the settings under `meta`, where they would be passed over. */
export function refuseStatements(meta: Outline, problems: Problems): void {
  for (const child of meta.body) {
    const { text } = child.line;
    const isSetting = /^[^:=]*[:=]/.test(text) && !text.endsWith(':');
    if (STATEMENTS.has(headOf(text)) && !isSetting) {
      const message = `${quoted(text)} under \`meta\` would be passed over; align it with \`meta\``;
      problems.error('body_not_allowed', positionAt(child.line, 0), message);
      return;
    }
    refuseStatements(child, problems);
  }
}
