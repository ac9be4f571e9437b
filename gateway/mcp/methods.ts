/**
 * Methods of clients' requests and notifications that pass where a route says nothing of them: those of the protocol's
 * revisions 2025-11-25 and 2026-07-28 that this gateway gives a meaning. A name that ends in `/` stands for all below it.
 */
const DEFAULT_METHODS = [
  'initialize',
  'server/discover',
  'ping',
  'notifications/',
  'tools/',
  'resources/',
  'prompts/',
  'completion/',
  'logging/',
  'subscriptions/',
  'tasks/',
] as const;

/** Whether a route lets a method through. `tools` and `tools/` both name all below it. */
export function allowsMethod(methods: readonly string[] | undefined, method: string): boolean {
  const all: readonly string[] = methods ?? DEFAULT_METHODS;
  return all.some((name) => {
    const family = name.endsWith('/') ? name : `${name}/`;
    return method === name || method.startsWith(family);
  });
}
