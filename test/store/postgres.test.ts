import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { checkStore } from '../../gateway/store/check-store.ts';
import { openStore } from '../../gateway/store/open.ts';
import { StoreFault } from '../../gateway/store/port.ts';
import { startPostgres } from '../postgres.ts';
import { aClaim, anEntry, append, aSession, fresh, hold, NOW_MS, open } from './records.ts';

const server = await startPostgres({ own: true });

async function ask(url: string, sql: string): Promise<readonly (readonly unknown[])[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query<unknown[]>({ text: sql, rowMode: 'array' })).rows;
  } finally {
    await client.end();
  }
}

if (typeof server === 'string') {
  test('several replicas on PostgreSQL', { skip: server }, () => undefined);
} else {
  after(() => server.close());
  const shared = await server.database();

  describe('several replicas on PostgreSQL', () => {
    test('of 100 at once on two replicas ten take the ten places, and one has the key', async () => {
      const stores = await Promise.all([openStore(shared), openStore(shared)]);
      assert.deepEqual(stores[0]?.secret(), stores[1]?.secret());
      const scopeKey = fresh();
      for (const window of [{}, { sinceMs: NOW_MS - 1_000 }]) {
        const bucket = fresh();
        const all = await Promise.all(
          stores.flatMap((store) => Array.from({ length: 50 }, () => store.commit([hold(bucket, '1', '10', window)]))),
        );
        assert.equal(all.filter((result) => result.ok).length, 10);
      }
      const claims = await Promise.all(
        stores.flatMap((store) =>
          Array.from({ length: 25 }, () => store.commit([{ op: 'claim', claim: aClaim({ scopeKey }) }])),
        ),
      );
      assert.equal(claims.filter((result) => result.ok).length, 1);
      const caller = fresh();
      const sessions = await Promise.all(
        stores.flatMap((store) =>
          Array.from({ length: 10 }, () => store.commit([open(aSession({ caller, session: fresh() }), 5)])),
        ),
      );
      assert.equal(sessions.filter((result) => result.ok).length, 5);
      await Promise.all(stores.map((store) => store.close()));
      assert.deepEqual((await checkStore(shared)).problems, []);
    });

    test('lists that lock the same rows crosswise end without a fault', async () => {
      const stores = await Promise.all([openStore(shared), openStore(shared)]);
      const sessions = [aSession(), aSession()];
      await stores[0]?.commit(sessions.map((session) => open(session)));
      const buckets = [fresh(), fresh()];
      const results = await Promise.all(
        Array.from({ length: 40 }, (_, i) => {
          const order = i % 2 === 0 ? [0, 1] : [1, 0];
          return stores[i % 2]?.commit([
            ...order.map((n) => ({ op: 'freeze_session', sid: sessions[n]?.sid ?? '', why: String(i) }) as const),
            ...order.map((n) => hold(buckets[n] ?? '', '1', '1000')),
          ]);
        }),
      );
      for (const result of results) assert.deepEqual(result, { ok: true });
      const counted = await stores[0]?.readCounters(buckets);
      assert.deepEqual(
        [...(counted?.values() ?? [])],
        [
          { settled: '0', held: '40' },
          { settled: '0', held: '40' },
        ],
      );
      await Promise.all(stores.map((store) => store.close()));
    });

    test('lapsed claims are shared out, each to one', async () => {
      const stores = await Promise.all([openStore(shared), openStore(shared)]);
      const claims = Array.from({ length: 40 }, () => aClaim({ leaseUntilMs: NOW_MS - 1 }));
      await stores[0]?.commit(claims.map((claim) => ({ op: 'claim', claim })));
      const takes = await Promise.all(
        [0, 1, 0, 1].map((n, i) => stores[n]?.takeLapsedClaims(`o${i}`, NOW_MS, NOW_MS + 9_000, 20) ?? []),
      );
      const links = takes.flat().map((claim) => claim.link);
      assert.equal(new Set(links).size, links.length);
      const rest = await stores[0]?.takeLapsedClaims('rest', NOW_MS, NOW_MS + 9_000, 99);
      assert.equal(links.length + (rest?.length ?? 0), 40);
      await Promise.all(stores.map((store) => store.close()));
    });

    test('what was sent before closing is stored, and what comes after is refused', async () => {
      const store = await openStore(shared);
      const claims = Array.from({ length: 120 }, () => aClaim());
      const commits = claims.map((claim) => store.commit([{ op: 'claim', claim }]));
      const last = aClaim();
      store.enqueue([{ op: 'claim', claim: last }]);
      await store.close();
      for (const result of await Promise.all(commits)) assert.deepEqual(result, { ok: true });
      const again = await openStore(shared);
      for (const claim of [...claims, last]) assert.deepEqual(await again.findClaim(claim), claim);
      await again.close();
      await assert.rejects(store.commit([{ op: 'claim', claim: aClaim() }]), /closed/);
      await assert.rejects(store.findClaim(last), /closed/);
      await assert.rejects(store.ready(), /closed/);
      await store.close();
    });

    test('a text that PostgreSQL cannot hold is refused alone', async () => {
      const store = await openStore(shared);
      const [refused, good] = await Promise.all([
        store.commit([{ op: 'claim', claim: aClaim({ agent: 'a\0b' }) }]).catch((error: unknown) => error),
        store.commit([{ op: 'claim', claim: aClaim({ request: '{"a":"\\u0000"}', agent: '\\u0000' }) }]),
      ]);
      assert.ok(refused instanceof StoreFault && !refused.maybe);
      assert.deepEqual(good, { ok: true });
      await store.close();
    });

    test('a store is opened with its key alone, and private values are sealed in it', async () => {
      const url = await server.database();
      const encryptionKey = Buffer.alloc(32, 7);
      const store = await openStore(url, { encryptionKey });
      const claim = aClaim({ request: 'Ana Müller' });
      await store.commit([{ op: 'claim', claim }]);
      await store.close();
      const stored = (await ask(url, 'SELECT request FROM toolgate.claims'))[0]?.[0];
      assert.ok(Buffer.isBuffer(stored) && !stored.includes('Ana'));
      await assert.rejects(openStore(url), /`store.encryption_key` is not set/);
      await assert.rejects(openStore(url, { encryptionKey: Buffer.alloc(32, 8) }), /is not the key/);
      const again = await openStore(url, { encryptionKey });
      assert.equal((await again.findClaim(claim))?.request, 'Ana Müller');
      await again.close();
      assert.deepEqual((await checkStore(url, encryptionKey)).problems, []);
    });

    test('a newer schema is refused, and a check changes nothing', async () => {
      const url = await server.database();
      await assert.rejects(checkStore(url), /schema 0/);
      assert.deepEqual(await ask(url, "SELECT to_regnamespace('toolgate') IS NULL"), [[true]]);
      await (await openStore(url)).close();
      await ask(url, 'UPDATE toolgate.schema_version SET version = 99');
      await assert.rejects(openStore(url), { name: 'StoreSetupError', message: /schema 99.*use a newer toolgate/ });
    });

    test('a connection that is cut under load is made again, and nothing is lost or done twice', async () => {
      const store = await openStore(shared);
      const told = await underLoad(store, async () => {
        for (let i = 0; i < 4; i += 1) {
          await delay(60);
          await ask(
            shared,
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'toolgate'",
          );
        }
      });
      await agrees(store, told);
      await store.close();
    });

    test('a server that stops and starts again under load gives faults meanwhile and needs no restart', async (t) => {
      if (server.power === undefined) {
        t.skip('the server at DATABASE_URL is not ours to stop');
        return;
      }
      const { power } = server;
      const store = await openStore(shared);
      let reason = '';
      const told = await underLoad(store, async () => {
        await delay(100);
        await power.stop();
        await assert.rejects(store.ready(), (error: unknown) => {
          assert.ok(error instanceof StoreFault);
          reason = error.message;
          return true;
        });
        const since = performance.now();
        await assert.rejects(store.findClaim({ link: 'x' }), StoreFault);
        assert.ok(performance.now() - since < 1_000, 'a fault comes at once');
        await power.start();
        for (let left = 100; left > 0; left -= 1) {
          if (
            await store.ready().then(
              () => true,
              () => false,
            )
          )
            break;
          await delay(50);
        }
      });
      assert.match(reason, /PostgreSQL/);
      assert.ok(told.stored.length > 0 && told.faulted.length > 0);
      await agrees(store, told);
      await store.close();
    });
  });
}

type Told = { readonly stored: string[]; readonly faulted: string[]; readonly unclear: string[] };

/** Commits on eight sessions at once while something happens; says what each commit was told. */
async function underLoad(store: Awaited<ReturnType<typeof openStore>>, happens: () => Promise<void>): Promise<Told> {
  const told: Told = { stored: [], faulted: [], unclear: [] };
  let going = true;
  const clients = Array.from({ length: 8 }, async () => {
    while (going) {
      const session = aSession();
      const claim = aClaim({ sid: session.sid });
      try {
        const result = await store.commit([open(session), ...append(session, 1, anEntry(0)), { op: 'claim', claim }]);
        assert.deepEqual(result, { ok: true });
        told.stored.push(claim.link);
      } catch (error) {
        assert.ok(error instanceof StoreFault, String(error));
        (error.maybe ? told.unclear : told.faulted).push(claim.link);
        await delay(5);
      }
    }
  });
  try {
    await happens();
    await delay(50);
  } finally {
    going = false;
    await Promise.all(clients);
  }
  return told;
}

/** What was told to be stored is there, what was told to be refused is not. */
async function agrees(store: Awaited<ReturnType<typeof openStore>>, told: Told): Promise<void> {
  const claim = aClaim();
  assert.deepEqual(await store.commit([{ op: 'claim', claim }]), { ok: true });
  for (const link of told.stored) assert.notEqual(await store.findClaim({ link }), undefined, 'stored and lost');
  for (const link of told.faulted) assert.equal(await store.findClaim({ link }), undefined, 'refused and stored');
}
