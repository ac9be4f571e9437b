import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import { startPostgres } from '../postgres.ts';
import { killUnderLoad } from './kill-under-load.ts';

/** How many on both stores together. `npm run test:kills` does more. */
const KILLS = Number(process.env['TOOLGATE_KILLS'] ?? 6);

/** What one kill and the next start may take on a machine that has other things to do. */
const KILL_MS = 60_000;

const server = await startPostgres();
after(async () => {
  if (typeof server !== 'string') await server.close();
});

describe('random kills under load lose nothing and run no write twice', { concurrency: 2 }, () => {
  const kills = Math.ceil(KILLS / 2);
  const timeout = 120_000 + kills * KILL_MS;

  test('SQLite', { timeout }, async (t) => {
    const found = await killUnderLoad({}, kills);
    t.diagnostic(`SQLite: ${JSON.stringify(found.counts)}`);
    assert.deepEqual(found.faults, []);
    assert.ok(found.counts.ran > 0);
  });

  test('PostgreSQL', { timeout, skip: typeof server === 'string' ? server : false }, async (t) => {
    assert.ok(typeof server !== 'string');
    const found = await killUnderLoad({ store: await server.database() }, kills);
    t.diagnostic(`PostgreSQL: ${JSON.stringify(found.counts)}`);
    assert.deepEqual(found.faults, []);
    assert.ok(found.counts.ran > 0);
  });
});
