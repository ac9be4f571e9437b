import { join } from 'node:path';

/** Where Node keeps what it compiled. */
export const COMPILE_CACHE: string = join(import.meta.dirname, '../.tmp/compile-cache');

/**
 * What a gateway in a process of its own gets as its environment: no coverage, which tells nothing of what is killed, and
 * of the rest what its tests in one process tell; and what was compiled once, so that a start costs a third less.
 */
export function childEnv(more: Readonly<Record<string, string>> = {}): NodeJS.ProcessEnv {
  return {
    ...process.env,
    // Said to be nothing: what is not said at all is handed down.
    NODE_V8_COVERAGE: undefined,
    NODE_COMPILE_CACHE: COMPILE_CACHE,
    ...more,
  };
}
