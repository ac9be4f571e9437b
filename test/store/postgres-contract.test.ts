import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
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
      const opened: Store[] = [];
      let shared: Store | undefined;
      const own = async (): Promise<Store> => {
        const options = encryptionKey === undefined ? {} : { encryptionKey };
        const store = await openStore(await server.database(), options);
        opened.push(store);
        return store;
      };
      before(async () => {
        shared = await own();
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
