import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { nodeCrypto } from '../../receipts/crypto-node.ts';
import { cutHistory } from '../../receipts/history-cut.ts';
import { renderSigningKeyPem } from '../../receipts/keys.ts';
import { type Served, serveGateway } from '../deploy/served.ts';
import type { TestAnswer } from '../harness/gateway.ts';
import { startPostgres, type TestPostgres } from '../postgres.ts';
import { appClient, OWN_WORDS, receiptIn, sendOnRoute } from './support.ts';
import { type CountingBackend, issuerHistory, startBackend, worldConfig } from './world.ts';

const SENDS = 64;
let postgres: TestPostgres | string;
let folder: string;
let backend: CountingBackend;
before(async () => {
  [postgres, folder, backend] = await Promise.all([
    startPostgres(),
    mkdtemp(join(tmpdir(), 'toolgate-proofs-')),
    startBackend(),
  ]);
});
after(async () => {
  await backend.close();
  if (typeof postgres !== 'string') await postgres.close();
  await rm(folder, { recursive: true, force: true });
});

/** What `sendOnRoute` asks of a gateway, for one that is another process. */
function gatewayAt(url: string): Parameters<typeof sendOnRoute>[0] {
  return {
    request: async (method, path, { body, headers = {}, key = '' } = {}): Promise<TestAnswer> => {
      const answer = await fetch(`${url}${path}`, {
        method,
        headers: { ...headers, authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      const text = await answer.text();
      return { status: answer.status, headers: answer.headers, text, json: JSON.parse(text) };
    },
  };
}

describe('two gateway processes on one PostgreSQL', () => {
  let gateways: readonly Served[] = [];
  before(async () => {
    if (typeof postgres === 'string') return;
    const store = await postgres.database();
    await writeFile(join(folder, 'gateway.pem'), renderSigningKeyPem(new Uint8Array(32).fill(7)), { mode: 0o600 });
    const config = { ...worldConfig(backend.url, { store }), listen: '127.0.0.1:0' };
    const serve = (name: string): Promise<Served> =>
      serveGateway({ folder, name, config: { ...config, audit: { file: `./${name}.jsonl` } } });
    // One after the other: the first makes the tables.
    gateways = [await serve('one'), await serve('two')];
  });
  after(() => Promise.all(gateways.map((gateway) => gateway.stop())));

  const at = (i: number): Parameters<typeof sendOnRoute>[0] => gatewayAt(gateways[i % 2]?.url ?? '');

  test(`${SENDS} sends of one receipt at once run its call once`, async (t) => {
    if (typeof postgres === 'string') return t.skip(postgres);
    for (const receipt of [issuerHistory(), cutHistory(nodeCrypto, issuerHistory({ before: 9 }))]) {
      const before = backend.seen.length;
      const answers = await Promise.all(Array.from({ length: SENDS }, (_, i) => sendOnRoute(at(i), receipt)));
      assert.equal(backend.seen.length - before, 1);
      assert.equal(answers.filter(({ status }) => status === 200).length, 1);
      for (const answer of answers) if (answer.status !== 200) assert.equal(receiptIn(answer).reason, 'receipt_spent');
    }
  });

  test("and so do they of a receipt of the gateways' own", async (t) => {
    if (typeof postgres === 'string') return t.skip(postgres);
    const session = appClient({ gateway: { url: gateways[0]?.url ?? '' } }).session('desk');
    const check = await session.check('shop/send', { order_id: 'A1' }, OWN_WORDS);
    const receipt = (await session.receipt(check)).toJSON();
    const sent = { tool: 'shop/send', args: { order_id: 'A1' } };
    const before = backend.seen.length;
    const answers = await Promise.all(Array.from({ length: SENDS }, (_, i) => sendOnRoute(at(i), receipt, sent)));
    assert.equal(backend.seen.length - before, 1);
    assert.equal(answers.filter(({ status }) => status === 200).length, 1);
  });

  test('a settled write is answered by the other process too', async (t) => {
    if (typeof postgres === 'string') return t.skip(postgres);
    const receipt = issuerHistory({ tool: 'shop/keyed' });
    const before = backend.seen.length;
    const first = await sendOnRoute(at(0), receipt, { tool: 'shop/keyed' });
    const again = await sendOnRoute(at(1), receipt, { tool: 'shop/keyed' });
    assert.deepEqual([first.status, again.status, again.text], [200, 200, first.text]);
    assert.equal(again.headers.get('idempotency-replayed'), 'true');
    assert.equal(backend.seen.length - before, 1);
  });

  test('a session that one process froze is frozen for the other', async (t) => {
    if (typeof postgres === 'string') return t.skip(postgres);
    const header = { session: 'forked' };
    assert.equal((await sendOnRoute(at(1), issuerHistory({ header }))).status, 200);
    assert.equal(receiptIn(await sendOnRoute(at(0), issuerHistory({ header, before: 1 }))).detail['fault'], 'forked');
    const next = cutHistory(nodeCrypto, issuerHistory({ header, before: 5 }));
    assert.equal(receiptIn(await sendOnRoute(at(1), next)).detail['fault'], 'forked');
  });
});
