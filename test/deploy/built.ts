import { execFile } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { childEnv } from '../child-env.ts';

const ROOT = join(import.meta.dirname, '../..');

/** Instructions of a Dockerfile, continued lines joined, comments left out. */
export function instructions(text: string): readonly { readonly word: string; readonly rest: string }[] {
  return text
    .replaceAll(/^#.*\n/gm, '')
    .replaceAll(/\\\n\s*/g, '')
    .split('\n')
    .filter((line) => line.trim() !== '')
    .map((line) => {
      const space = line.indexOf(' ');
      return { word: line.slice(0, space), rest: line.slice(space + 1).trim() };
    });
}

let built: Promise<string> | undefined;

/** The `dist` that the image's build stage makes, made once for all who ask in this process, and gone when it ends. */
export function builtDist(): Promise<string> {
  built ??= build();
  return built;
}

/** As in the build stage: what is copied there, and the script that is run there. */
async function build(): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'toolgate-build-'));
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  const copied = instructions(readFileSync(join(ROOT, 'Dockerfile'), 'utf8'))
    .filter(({ word, rest }) => word === 'COPY' && !rest.startsWith('--from='))
    .flatMap(({ rest }) => rest.split(' ').slice(0, -1));
  for (const source of new Set(copied)) cpSync(join(ROOT, source), join(folder, source), { recursive: true });
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  await promisify(execFile)('npm', ['run', '-s', 'build'], { cwd: folder, env: childEnv() });
  return join(folder, 'dist');
}
