import type { AfterRule } from '../../policy/tool.ts';
import { checkArgument, type Drafts, resolveTool, type ToolDraft, watchField } from './tool-draft.ts';

/** The `after` rules of a tool, names resolved. */
export function readAfter(drafts: Drafts, draft: ToolDraft): readonly AfterRule[] {
  const path = draft.words.pathOf('after');
  return (draft.words.said.after ?? []).flatMap((said, index) => {
    const at = [...path, index];
    const { tool: name, bind } = typeof said === 'string' ? { tool: said, bind: undefined } : said;
    const tool = resolveTool(drafts, name, draft.route.name, typeof said === 'string' ? at : [...at, 'tool']);
    if (tool === undefined) return [];
    const earlier = drafts.byId.get(tool);
    for (const [argument, field] of Object.entries(bind ?? {})) {
      checkArgument(drafts, draft, argument, [...at, 'bind', argument], 'key');
      if (earlier !== undefined) watchField(drafts, earlier, field, [...at, 'bind', argument]);
    }
    return [bind === undefined ? { tool } : { tool, bind }];
  });
}

/** The `not_after` marks of a tool: pairs, and `untrusted`. */
export function readNotAfter(drafts: Drafts, draft: ToolDraft): readonly string[] {
  const path = draft.words.pathOf('not_after');
  return (draft.words.said.not_after ?? []).flatMap((name, index) => {
    if (name === 'untrusted') return [name];
    const tool = resolveTool(drafts, name, draft.route.name, [...path, index]);
    return tool === undefined ? [] : [tool];
  });
}

/** Tells tools that wait for each other, or for themselves: they could never be called. */
export function checkOrderCycles(drafts: Drafts, after: ReadonlyMap<string, readonly AfterRule[]>): void {
  const done = new Set<string>();
  const told = new Set<string>();
  for (const start of after.keys()) {
    // Depth first with an explicit stack: a chain of `after` may be as long as the catalogue.
    const stack: { readonly id: string; next: number }[] = [{ id: start, next: 0 }];
    const onPath = new Set([start]);
    while (!done.has(start)) {
      const top = stack.at(-1);
      if (top === undefined) break;
      const rule = after.get(top.id)?.[top.next];
      top.next += 1;
      if (rule === undefined) {
        done.add(top.id);
        onPath.delete(top.id);
        stack.pop();
      } else if (onPath.has(rule.tool)) {
        const circle = stack.slice(stack.findIndex((entry) => entry.id === rule.tool)).map((entry) => entry.id);
        const draft = drafts.byId.get(top.id);
        if (draft === undefined || told.has(circle.toSorted().join(' '))) continue;
        told.add(circle.toSorted().join(' '));
        drafts.log.error(
          'after_cycle',
          draft.words.pathOf('after'),
          `${circle.map((id) => `\`${id}\``).join(', ')} can never be called: each must come after ${circle.length === 1 ? 'itself' : 'the other'}`,
        );
      } else if (!done.has(rule.tool)) {
        stack.push({ id: rule.tool, next: 0 });
        onPath.add(rule.tool);
      }
    }
  }
}
