import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { startTestGateway, type TestGateway } from '../harness/gateway.ts';
import { type Called, configOf, reasonOf, Shop } from './scripted-shop.ts';

describe('limits per session and per run', () => {
  const shop = new Shop();
  let gateway: TestGateway;
  before(async () => {
    await shop.start();
    const sha = (key: string): string => `sha256:${createHash('sha256').update(key).digest('hex')}`;
    const credentials = [sha('agent-key'), { key: sha('host-key'), host: true, name: 'app' }];
    gateway = await startTestGateway(
      configOf(
        shop.backend.origin,
        {
          look: { at_most: [{ count: 2, per: 'session' }] },
          buy_data: { currency: 'EUR', spend: [{ field: 'amount', at_most: 10, per: 'session' }] },
          in_run: { at_most: [{ count: 1, per: 'run' }] },
        },
        { agents: { desk: { credentials } } },
      ),
    );
  });
  after(async () => {
    await gateway.close();
    await shop.backend.close();
  });

  const ask = async (key: string, tool: string, args: object, more: object): Promise<string> => {
    const body = { tool: `shop/${tool}`, arguments: args, agent: 'desk', ...more };
    return reasonOf((await gateway.request('POST', '/v1/call', { body, key })).json as Called);
  };

  test('a new session is no way out for an agent, and a fresh start for a host', async () => {
    for (const [key, next] of [
      ['host-key', 'allow'],
      ['agent-key', 'refused'],
    ] as const) {
      assert.equal(await ask(key, 'look', {}, { session: 'a' }), 'allow');
      assert.equal(await ask(key, 'look', {}, { session: 'a' }), 'allow');
      assert.equal(await ask(key, 'look', {}, { session: 'a' }), 'limit_reached');
      assert.equal(await ask(key, 'look', {}, { session: 'b' }), next === 'allow' ? 'allow' : 'limit_reached');
      assert.equal(await ask(key, 'buy_data', { amount: 6 }, { session: 'c' }), 'allow');
      assert.equal(await ask(key, 'buy_data', { amount: 6 }, { session: 'c' }), 'spend_exceeded');
      assert.equal(
        await ask(key, 'buy_data', { amount: 6 }, { session: 'd' }),
        next === 'allow' ? 'allow' : 'spend_exceeded',
      );
    }
  });

  test('a run counts for its caller alone, and a call without one cannot be counted', async () => {
    assert.equal(await ask('host-key', 'in_run', {}, { session: 'r' }), 'usage_unknown');
    assert.equal(await ask('host-key', 'in_run', {}, { session: 'r', run: 'r-1' }), 'allow');
    assert.equal(await ask('host-key', 'in_run', {}, { session: 'r', run: 'r-1' }), 'limit_reached');
    assert.equal(await ask('host-key', 'in_run', {}, { session: 'r', run: 'r-2' }), 'allow');
    assert.equal(await ask('agent-key', 'in_run', {}, { session: 'r', run: 'r-1' }), 'allow');
  });
});
