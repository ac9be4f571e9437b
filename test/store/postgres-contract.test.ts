import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import pg from 'pg';
import { openStore } from '../../gateway/store/open.ts';
import type { Store } from '../../gateway/store/port.ts';
import { startPostgres } from '../postgres.ts';
import { CONTRACT } from './contract.ts';

const server = await startPostgres();
if (typeof server === 'string') {
  test('the PostgreSQL store', { skip: server }, () => undefined);
} else {
  after(() => server.close());
  for (const encryptionKey of [undefined, Buffer.alloc(32, 7)]) {
    describe(`the PostgreSQL store${encryptionKey === undefined ? '' : ', encrypted,'}`, () => {
      const options = encryptionKey === undefined ? {} : { encryptionKey };
      const opened: Store[] = [];
      let shared: Store | undefined;
      let alone: { readonly store: Store; readonly url: string } | undefined;
      // Cases run one after the other: a database that was emptied is as good as a new one, and there at once.
      const own = async (): Promise<Store> => {
        assert.ok(alone);
        await empty(alone.url);
        return alone.store;
      };
      before(async () => {
        shared = await openStore(await server.database(), options);
        const url = await server.database();
        alone = { url, store: await openStore(url, options) };
        opened.push(shared, alone.store);
      });
      after(() => Promise.all(opened.map((store) => store.close())));
      for (const { title, run } of CONTRACT) {
        test(title, async () => {
          assert.ok(shared);
          await run({ shared, own });
        });
      }
    });
  }
}

async function empty(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(`SET search_path TO toolgate;
      TRUNCATE sessions, swept, steps, watched, claims, confirmations, receipts, holds, counters, runs, undos, outbox`);
  } finally {
    await client.end();
  }
}
