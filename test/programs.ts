import { join } from 'node:path';

/** Where the programs below lie in one file each, with all that they load: half the cost of a start. `npm test` sets it. */
export const BUNDLE_FOLDER = 'TOOLGATE_TEST_PROGRAMS';

const ROOT = join(import.meta.dirname, '..');

/** Every program that tests start often. */
export const PROGRAMS = [
  'gateway/cli/main.ts',
  'test/execution/gateway-process.ts',
  'test/store/crash-child.ts',
  'test/audit/writer.ts',
] as const;

/** The file to start for one of them: the bundled one where there is one, else the source. */
export function programFile(program: (typeof PROGRAMS)[number]): string {
  const bundled = process.env[BUNDLE_FOLDER];
  return bundled === undefined ? join(ROOT, program) : join(bundled, program.replace(/\.ts$/, '.js'));
}
