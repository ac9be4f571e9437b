import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { bundlePrograms } from './bundle.ts';
import { childEnv } from './child-env.ts';
import { SHARED_SERVER } from './postgres.ts';
import { BUNDLE_FOLDER } from './programs.ts';

// What `npm test` makes once for all test processes, which inherit the variables. A file that is run alone goes without:
// it starts the sources, and a server of its own.

let server: ChildProcess | undefined;

export async function globalSetup(): Promise<void> {
  const folder = join(import.meta.dirname, '../.tmp/programs');
  const [url] = await Promise.all([sharedServer(), bundlePrograms(folder)]);
  process.env[BUNDLE_FOLDER] = folder;
  if (url !== undefined) process.env[SHARED_SERVER] = url;
}

export async function globalTeardown(): Promise<void> {
  if (server === undefined || server.exitCode !== null) return;
  const ended = once(server, 'exit');
  server.stdin?.end();
  await ended;
}

/** Where the server is that all share; nothing where there is one already, or none can be had: then each test says why. */
async function sharedServer(): Promise<string | undefined> {
  if ((process.env['DATABASE_URL'] ?? '') !== '') return undefined;
  const started = spawn(process.execPath, [join(import.meta.dirname, 'postgres-process.ts')], {
    stdio: ['pipe', 'pipe', 'inherit'],
    env: childEnv(),
  });
  server = started;
  const [line] = await Promise.race([
    once(started.stdout.setEncoding('utf8'), 'data'),
    once(started, 'exit').then(([code]) => Promise.reject(new Error(`the shared PostgreSQL ended with ${code}`))),
  ]);
  return (JSON.parse(String(line)) as { readonly url?: string }).url;
}
