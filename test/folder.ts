import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { before, test } from 'node:test';
import { COMPILE_CACHE } from './child-env.ts';

/**
 * Runs every test file of a folder in this process, one after the other, each as a test of its own: loading the gateway
 * costs more than most files do, and so it is loaded once. A file must leave the process as it found it, and runs alone
 * as well.
 */
export function testFolder(folder: string): void {
  const files = readdirSync(folder).filter((name) => name.endsWith('.test.ts'));
  // For the threads and processes that a test starts. This one began without, so that its coverage is exact.
  process.env['NODE_COMPILE_CACHE'] = COMPILE_CACHE;
  if (files.length === 0) throw new Error(`${folder} has no tests`);
  for (const file of files.sort()) {
    test(file, async () => {
      const loaded = Promise.withResolvers<void>();
      // The tests of a file that is run alone begin when all of it was read. So they do here.
      before(() => loaded.promise);
      try {
        await import(join(folder, file));
      } finally {
        loaded.resolve();
      }
    });
  }
}
