import type { Line } from './line.ts';
import { positionAt } from './line.ts';
import { quoted } from './nearest.ts';
import type { Problems } from './problem.ts';

/** Blocks inside blocks, expressions inside expressions: deeper is refused, so that no walk over them can overflow. */
export const MAX_NESTING = 64;

/** A line with the lines that are indented under it. */
export interface Outline {
  readonly line: Line;
  readonly body: readonly Outline[];
}

interface Open {
  readonly indent: number;
  readonly items: MutableOutline[];
}

interface MutableOutline {
  readonly line: Line;
  readonly body: MutableOutline[];
}

/**
 * Turns lines into a tree by their indentation. A line that goes back to a depth that no open block has is an error:
 * the reference would put it into whichever block comes next.
 */
export function outlineLines(lines: readonly Line[], problems: Problems): readonly Outline[] {
  const root: MutableOutline[] = [];
  const open: Open[] = [{ indent: 0, items: root }];
  for (const line of lines) {
    let top = open.at(-1);
    if (top === undefined) break;
    if (line.indent > top.indent) {
      const parent = top.items.at(-1);
      if (parent === undefined) {
        problems.error(
          'indent_unexpected',
          positionAt(line, 0),
          'this line is indented under nothing; start it at column 1',
        );
        return root;
      }
      if (open.length > MAX_NESTING) {
        problems.error(
          'nesting',
          positionAt(line, 0),
          `blocks are nested more than ${MAX_NESTING} deep; use a subflow`,
        );
        return root;
      }
      top = { indent: line.indent, items: parent.body };
      open.push(top);
    } else {
      while (top !== undefined && line.indent < top.indent) {
        open.pop();
        top = open.at(-1);
      }
      if (top === undefined || top.indent !== line.indent) {
        problems.error(
          'indent_dedent',
          positionAt(line, 0),
          'this line is indented like no block above it; align it with the block that it belongs to',
        );
        return root;
      }
    }
    top.items.push({ line, body: [] });
  }
  return root;
}

/** Whether a line is a triple-quoted text and nothing else, which says something to readers alone. */
export function isDocText(text: string): boolean {
  const quotes = text.slice(0, 3);
  return (quotes === '"""' || quotes === "'''") && text.indexOf(quotes, 3) === text.length - 3;
}

/** Reports lines indented under a statement that has no body: the reference would run them as if they were not. */
export function refuseBody(outline: Outline, what: string, problems: Problems): void {
  const child = outline.body[0];
  if (child === undefined) return;
  problems.error(
    'body_not_allowed',
    positionAt(child.line, 0),
    `nothing may be indented under ${quoted(what)}; align this line with the one above it`,
  );
}

/** Reports a statement that must lead to something and has nothing indented under it. */
export function requireBody(outline: Outline, problems: Problems): void {
  if (outline.body.length > 0) return;
  problems.error(
    'body_missing',
    positionAt(outline.line, 0),
    `nothing is indented under ${quoted(outline.line.text)}; indent what it leads to`,
  );
}
