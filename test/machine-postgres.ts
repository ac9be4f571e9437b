import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chown, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';
import pg from 'pg';
import { freePort, onServer, type TestPostgres } from './postgres.ts';

const run = promisify(execFile);
const START_MS = 60_000;

/**
 * Starts a throwaway server of the machine's own PostgreSQL, for tests of programs that must fit the server they are used
 * with. Resolves with the reason as a text where it cannot be started.
 * @param bin The folder of its programs: `/usr/lib/postgresql/17/bin`.
 */
export async function startMachinePostgres(bin: string): Promise<TestPostgres | string> {
  const dir = await mkdtemp(join(tmpdir(), 'toolgate-machine-pg-'));
  const clean = (): Promise<void> => rm(dir, { recursive: true, force: true });
  let server: ChildProcess | undefined;
  try {
    const as = await ownerOf(dir);
    const data = join(dir, 'data');
    const words = ['--auth=trust', '--username=postgres', '--no-sync', '--encoding=UTF8', '--locale=C'];
    await run(join(bin, 'initdb'), ['-D', data, ...words], { ...as, cwd: dir });
    const port = await freePort();
    const settings = ['listen_addresses=127.0.0.1', 'unix_socket_directories=', 'fsync=off'].flatMap((s) => ['-c', s]);
    server = spawn(join(bin, 'postgres'), ['-D', data, '-p', String(port), ...settings], {
      ...as,
      cwd: dir,
      stdio: 'ignore',
    });
    const ended = once(server, 'exit');
    const url = `postgres://postgres@127.0.0.1:${port}/postgres`;
    await untilUp(url, server);
    return {
      url,
      database: onServer(url).database,
      close: async () => {
        server?.kill('SIGINT');
        await ended;
        await clean();
      },
    };
  } catch (error) {
    server?.kill('SIGKILL');
    await clean();
    return `the machine's PostgreSQL cannot be started: ${error instanceof Error ? error.message : String(error)}`;
  }
}

/** PostgreSQL does not run as root: then it is the user's that its package makes. */
async function ownerOf(dir: string): Promise<{ readonly uid?: number; readonly gid?: number }> {
  if (userInfo().uid !== 0) return {};
  const [uid = 0, gid = 0] = await Promise.all(
    ['-u', '-g'].map(async (what) => Number((await run('id', [what, 'postgres'])).stdout)),
  );
  await chown(dir, uid, gid);
  return { uid, gid };
}

async function untilUp(url: string, server: ChildProcess): Promise<void> {
  for (const since = Date.now(); ; await pause(50)) {
    if (server.exitCode !== null) throw new Error(`it ended with ${server.exitCode}`);
    const client = new pg.Client({ connectionString: url });
    try {
      await client.connect();
      await client.end();
      return;
    } catch (error) {
      if (Date.now() - since > START_MS) throw error;
    }
  }
}
