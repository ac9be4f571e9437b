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
  const running = files.sort().map((file) =>
    test(file, async () => {
      const loaded = Promise.withResolvers<void>();
      // The tests of a file that is run alone begin when all of it was read. So they do here.
      before(() => loaded.promise);
      try {
        await import(join(folder, file));
      } finally {
        loaded.resolve();
      }
    }),
  );
  // `--test-force-exit` would lose what the last tests had to say. Every result is written by the time that this timer ends
  // a process in which a file left something open.
  const end = (): void => {
    process.stderr.write(`${folder}: ended, although a test left something open\n`);
    process.exit();
  };
  const endLater = (): unknown => setTimeout(end, LEFT_OPEN_MS).unref();
  Promise.all(running).then(endLater, endLater);
}

const LEFT_OPEN_MS = 3_000;
