import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { openStore } from '../../gateway/store/open.ts';
import type { Store } from '../../gateway/store/port.ts';
import { CONTRACT } from './contract.ts';
import { fresh } from './records.ts';

for (const encryptionKey of [undefined, Buffer.alloc(32, 7)]) {
  describe(`the SQLite store${encryptionKey === undefined ? '' : ', encrypted,'}`, () => {
    const opened: Store[] = [];
    let dir = '';
    let shared: Store | undefined;
    const own = async (): Promise<Store> => {
      const store = await openStore(join(dir, `${fresh()}.db`), encryptionKey === undefined ? {} : { encryptionKey });
      opened.push(store);
      return store;
    };
    before(async () => {
      dir = mkdtempSync(join(tmpdir(), 'toolgate-store-'));
      shared = await own();
    });
    after(async () => {
      for (const store of opened) await store.close();
      rmSync(dir, { recursive: true });
    });
    for (const { title, run } of CONTRACT) {
      test(title, async () => {
        assert.ok(shared);
        await run({ shared, own });
      });
    }
  });
}
