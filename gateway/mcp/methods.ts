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

/**
 * Whether what one side says of its own accord may go to the other. A notification under the name of a request is none: a
 * server that looks at the name alone would do it, and nothing would have been checked.
 */
export function isNotification(method: string): boolean {
  return method.startsWith('notifications/');
}

/** Whether a route lets a method through. `tools` and `tools/` both name all below it. */
export function allowsMethod(methods: readonly string[] | undefined, method: string): boolean {
  const all: readonly string[] = methods ?? DEFAULT_METHODS;
  return all.some((name) => {
    const family = name.endsWith('/') ? name : `${name}/`;
    return method === name || method.startsWith(family);
  });
}
