import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { Client } from '../../gateway/client/client.ts';
import { UntrustedAnswer } from '../../gateway/client/errors.ts';
import { encodeBase64url } from '../../receipts/base64url.ts';
import type { Crypto, PublicKey } from '../../receipts/crypto.ts';
import { nodeCrypto } from '../../receipts/crypto-node.ts';
import { cutHistory } from '../../receipts/history-cut.ts';
import { verifyHistory } from '../../receipts/history-verify.ts';
import { renderSigningKeyPem } from '../../receipts/keys.ts';
import { startTestGateway } from '../harness/gateway.ts';
import { sampleKey } from '../receipts/sample.ts';
import { APP, issuerHistory, type ReceiptAnswer, RUNTIME_KEY, startBackend, startWorld, worldConfig } from './world.ts';

const RUNS = 200;

describe('changes to what was signed', () => {
  test('a receipt with any one byte changed admits nothing', async () => {
    const world = await startWorld();
    try {
      for (const history of [issuerHistory(), cutHistory(nodeCrypto, issuerHistory())]) {
        const bytes = Buffer.from(JSON.stringify(history));
        const call = { tool: 'shop/charge', arguments: { amount: 40, order_id: 'A1' }, agent: 'desk' };
        const head = Buffer.from(`${JSON.stringify(call).slice(0, -1)},"history":`);
        const ask = async (text: Uint8Array): Promise<ReceiptAnswer | undefined> => {
          const answer = await fetch(`${world.gateway.url}/v1/receipts`, {
            method: 'POST',
            headers: { authorization: `Bearer ${APP.key}`, 'content-type': 'application/json' },
            body: Buffer.concat([head, text, Buffer.from('}')]),
          });
          assert.ok([200, 400].includes(answer.status), `${answer.status}`);
          return answer.status === 200 ? ((await answer.json()) as ReceiptAnswer) : undefined;
        };
        assert.equal((await ask(bytes))?.reason, 'receipt');
        const at = fc.nat({ max: bytes.length - 1 });
        const other = fc.integer({ min: 1, max: 255 });
        const property = fc.asyncProperty(at, other, async (index, change) => {
          const changed = Buffer.from(bytes);
          changed[index] = (changed[index] ?? 0) ^ change;
          const answer = await ask(changed);
          if (answer !== undefined) assert.deepEqual([answer.decision, answer.resend], ['refuse', false]);
        });
        await fc.assert(property, { numRuns: RUNS / 2 });
      }
      assert.deepEqual(world.backend.seen, []);
    } finally {
      await world.close();
    }
  });

  test("the gateway's own key changes by overlap: old histories go on, and a receipt outlives the change", async () => {
    const folder = await mkdtemp(join(tmpdir(), 'toolgate-rotation-'));
    const backend = await startBackend();
    const [first, second] = [sampleKey(21), sampleKey(22)];
    const publicKeys = [first, second].map(({ publicBytes }) => encodeBase64url(publicBytes));
    const pem = (byte: number): string => renderSigningKeyPem(new Uint8Array(32).fill(byte));
    const files = { 'first.pem': pem(21), 'second.pem': pem(22) };
    const start = (keys: object): ReturnType<typeof startTestGateway> =>
      startTestGateway(worldConfig(backend.url, { keys }), { folder, files });
    try {
      let gateway = await start({ signing: './first.pem' });
      const client = (publicKey: string | readonly string[]): Client =>
        new Client({ url: gateway.url, key: APP.key, publicKey });
      const session = client(publicKeys[0] ?? '').session('desk', { carried: true });
      await session.check('shop/get_order', { order_id: 'A1' });
      const history = await session.history();
      await gateway.close();

      const notAfter = new Date(Date.now() + 3_600_000).toISOString();
      gateway = await start({
        signing: './second.pem',
        previous: [{ public_key: publicKeys[0], not_after: notAfter }],
      });
      const on = client(publicKeys).session('desk', { history });
      const read = await on.call('shop/get_order', { order_id: 'A1' }, { receipt: history.cut() });
      assert.equal(read.outcome, 'ran', JSON.stringify(read));
      assert.equal((await on.check('shop/get_order', { order_id: 'A1' })).step, 1);
      const grown = await on.history();
      grown.verify({ publicKey: publicKeys });
      assert.throws(() => grown.verify({ publicKey: publicKeys[0] ?? '' }), { fault: 'signature', entry: 1 });
      const unaware = client(publicKeys[0] ?? '');
      assert.throws(() => unaware.session('desk', { history: grown }), UntrustedAnswer);
      await gateway.close();

      gateway = await start({ signing: './second.pem' });
      const late = await client(publicKeys)
        .session('desk', { history: grown })
        .check('shop/get_order', { order_id: 'A1' });
      assert.deepEqual([late.reason, late.detail['fault'], late.detail['entry']], ['history_invalid', 'signature', 0]);
      await gateway.close();
    } finally {
      await backend.close();
      await rm(folder, { recursive: true, force: true });
    }
  });
});

test('a cut receipt costs the same however long its history is: as many hashes and verifications', () => {
  const work = [1, 10_000].map((entries) => {
    const history = cutHistory(nodeCrypto, issuerHistory({ before: entries - 1 }));
    let [hashes, hashed, verified] = [0, 0, 0];
    const counting: Crypto = {
      ...nodeCrypto,
      sha256: (data) => {
        hashes += 1;
        hashed += data.length;
        return nodeCrypto.sha256(data);
      },
    };
    const own = nodeCrypto.publicKey(RUNTIME_KEY.publicBytes);
    const key: PublicKey = {
      bytes: own.bytes,
      verify: (message, signature) => {
        verified += 1;
        return own.verify(message, signature);
      },
    };
    const options = { crypto: counting, now: Date.now(), audience: 'shop-gateway', maxAgeMs: 300_000 };
    verifyHistory(history, { ...options, issuers: new Map([['desk-runtime', { keys: [{ key }], limits: 'none' }]]) });
    return { hashes, hashed, verified };
  });
  const [short, long] = work;
  assert.deepEqual([long?.hashes, long?.verified], [short?.hashes, 1]);
  // Only the digits of the step and the names of what is before are more.
  assert.ok((long?.hashed ?? 0) - (short?.hashed ?? 0) < 100, JSON.stringify(work));
});
