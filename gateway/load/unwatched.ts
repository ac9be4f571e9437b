import type { Catalogue } from '../../policy/catalogue.ts';
import type { Tool } from '../../policy/tool.ts';

/**
 * Reads that no rule counts, orders, taints by or takes a value from: their entries may ride in the store's next group,
 * since no later decision hangs on them (docs/performance.md).
 */
export function unwatchedReads(catalogue: Catalogue, limited: ReadonlySet<string>): ReadonlySet<string> {
  const named = new Set<string>();
  for (const tool of catalogue.tools.values()) {
    for (const rule of tool.after) named.add(rule.tool);
    for (const other of tool.notAfter) named.add(other);
  }
  const isUnwatched = (tool: Tool): boolean =>
    !tool.writes &&
    !tool.readsOutside &&
    tool.result === undefined &&
    tool.watched.length === 0 &&
    tool.atMost === undefined &&
    !named.has(tool.id) &&
    !limited.has(tool.id);
  return new Set([...catalogue.tools.values()].filter(isUnwatched).map((tool) => tool.id));
}
