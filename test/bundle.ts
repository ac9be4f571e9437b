import { rm, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { build } from 'esbuild';
import { PROGRAMS } from './programs.ts';

const ROOT = join(import.meta.dirname, '..');

/** What finds its own files beside the sources: each is put at the same place below the bundle. */
const BESIDE = ['package.json', 'gateway/console'];

/**
 * Puts the programs that tests start, and the store's thread, into a few files below `folder`, at the places of their
 * sources. They are the same code: what a test may do that a built gateway refuses (fault points) it may here as well.
 */
export async function bundlePrograms(folder: string): Promise<void> {
  await rm(folder, { recursive: true, force: true });
  await build({
    absWorkingDir: ROOT,
    entryPoints: [...PROGRAMS, 'gateway/store/sqlite-worker.ts'],
    outdir: folder,
    outbase: ROOT,
    // Shared parts lie as deep as the sources, so that they find what those have beside them, and the thread's program.
    chunkNames: 'gateway/store/[name]-[hash]',
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node24',
    external: ['better-sqlite3', 'pg-native'],
    // Loading takes longer the more there is to read; names stay, for what a fault says of its place.
    minifyWhitespace: true,
    legalComments: 'none',
    // The one thing that reads it asks whether it is source.
    define: { 'import.meta.filename': '"source.ts"' },
    // CommonJS packages ask for Node's own modules so.
    banner: { js: "import{createRequire as r_}from'node:module';const require=r_(import.meta.url);" },
    logLevel: 'warning',
  });
  for (const path of BESIDE) await symlink(join(ROOT, path), join(folder, path));
}
