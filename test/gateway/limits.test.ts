import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { startTestGateway, type TestGateway } from '../harness/gateway.ts';
import { type Called, call, configOf, reasonOf, Shop } from './scripted-shop.ts';

const LISBON = { timezone: 'Europe/Lisbon' };

describe('limits and spend', () => {
  const shop = new Shop();
  let gateway: TestGateway;
  before(async () => {
    await shop.start();
    gateway = await startTestGateway(
      configOf(shop.backend.origin, {
        ten: { writes: true, at_most: { count: 10, per: 'day' } },
        search: { at_most: [{ count: 3, per: 'hour' }] },
        pay: {
          writes: true,
          undo: { tool: 'refund', with: { amount: 'arguments.amount' } },
          currency: 'EUR',
          spend: [{ field: 'amount', at_most: '100.00', per: 'month', pool: 'trading' }],
        },
        tip: {
          writes: true,
          currency: 'EUR',
          spend: [{ field: 'amount', at_most: 100, per: 'month', pool: 'trading' }],
        },
        refund: { writes: true, undo: 'none', restores: true },
        gift: {
          writes: true,
          undo: { tool: 'take_back', with: { amount: 'arguments.amount' } },
          currency: 'EUR',
          spend: [{ field: 'amount', at_most: 10, per: 'month' }],
        },
        take_back: { writes: true, undo: 'none' },
        loan: {
          writes: true,
          undo: { tool: 'repay', with: { amount: 'arguments.amount' } },
          at_most: { count: 3, per: 'month' },
          currency: 'EUR',
          spend: [{ field: 'amount', at_most: 10, per: 'month' }],
        },
        repay: { writes: true, undo: 'none', restores: true },
      }),
    );
    shop.answer = () => ({ body: '{}' });
  });
  after(async () => {
    await gateway.close();
    await shop.backend.close();
  });

  test('100 calls at once of a limit of 10: exactly 10 run', async () => {
    shop.calls.length = 0;
    const called = await Promise.all(
      Array.from({ length: 100 }, (_, index) => call(gateway, 'ten', {}, { session: `ten-${index % 25}` })),
    );
    const reasons = Map.groupBy(called, reasonOf);
    assert.equal(shop.calls.length, 10);
    assert.equal(reasons.get('allow')?.length, 10);
    assert.equal(reasons.get('limit_reached')?.length, 90, JSON.stringify([...reasons.keys()]));
  });

  test('a read is limited like a write', async () => {
    const called = await Promise.all(
      Array.from({ length: 8 }, (_, index) => call(gateway, 'search', {}, { session: `search-${index}` })),
    );
    assert.equal(called.filter((one) => one.outcome === 'ran').length, 3);
    const refused = called.find((one) => one.check?.decision === 'refuse');
    assert.deepEqual(refused?.check?.detail, { limit: { count: 3, per: 'hour' } });
  });

  test('a pool of 100.00 takes two calls of 40.00, whichever tools make them, and what failed is given back', async () => {
    shop.answer = () => ({ status: 422, body: '{}' });
    assert.equal((await call(gateway, 'pay', { amount: 90 })).outcome, 'failed');
    shop.answer = () => ({ body: '{}' });
    const tools = ['pay', 'tip', 'pay', 'tip', 'pay'];
    const called = await Promise.all(tools.map((tool) => call(gateway, tool, { amount: 40 })));
    assert.equal(called.filter((one) => one.outcome === 'ran').length, 2);
    assert.equal(called.filter((one) => reasonOf(one) === 'spend_exceeded').length, 3);
    assert.equal(reasonOf(await call(gateway, 'pay', { amount: 20.01 })), 'spend_exceeded');
    // An unknown outcome stays counted.
    shop.answer = () => ({ status: 503, body: '{}' });
    assert.equal((await call(gateway, 'tip', { amount: 15 })).outcome, 'outcome_unknown');
    shop.answer = () => ({ body: '{}' });
    assert.equal(reasonOf(await call(gateway, 'tip', { amount: 5.01 })), 'spend_exceeded');
    assert.equal((await call(gateway, 'tip', { amount: 5 })).outcome, 'ran');
    for (const amount of [-1, undefined]) {
      const args = amount === undefined ? {} : { amount };
      assert.equal(reasonOf(await call(gateway, 'pay', args)), 'spend_unknown');
    }
  });

  test('what is used of each limit is told, held apart from settled', async () => {
    const answer = await gateway.request('GET', '/v1/usage');
    assert.equal(answer.status, 200, answer.text);
    const { at, usage } = answer.json as { at: number; usage: Record<string, unknown>[] };
    const of = (tool: string): Record<string, unknown> | undefined =>
      usage.find(({ tools }) => (tools as string[]).includes(`shop/${tool}`));
    assert.equal(of('ten')?.['settled'], '10');
    assert.equal(of('search')?.['settled'], '3');
    assert.equal(of('search')?.['since'], at - 3_600_000 + 1);
    const { until, ...pool } = of('tip') ?? {};
    assert.deepEqual(pool, {
      kind: 'spend',
      tools: ['shop/tip'],
      pool: 'trading',
      currency: 'EUR',
      per: 'month',
      at_most: '100',
      settled: of('pay')?.['settled'],
      held: of('pay')?.['held'],
    });
    assert.ok(Number(until) > at);
    assert.equal(Number(pool['settled']) + Number(pool['held']), 100);
    assert.ok(Number(pool['held']) >= 15);
  });

  test('an undo gives back what its step spent only where it says so', async () => {
    const undone = async (tool: string, undo: string, session: string, amount: number): Promise<void> => {
      const ran = await call(gateway, tool, { amount }, { session });
      assert.equal(ran.outcome, 'ran', JSON.stringify(ran));
      const back = await call(gateway, undo, { amount }, { session, undoes: ran.check?.step });
      assert.equal(back.outcome, 'ran', JSON.stringify(back));
    };
    await undone('gift', 'take_back', 'gift-1', 6);
    assert.equal(reasonOf(await call(gateway, 'gift', { amount: 6 })), 'spend_exceeded');
    assert.equal((await call(gateway, 'gift', { amount: 4 })).outcome, 'ran');
    // Its money is there again; its place among the calls is not.
    await undone('loan', 'repay', 'loan-1', 6);
    assert.equal(reasonOf(await call(gateway, 'loan', { amount: 10.01 })), 'spend_exceeded');
    assert.equal((await call(gateway, 'loan', { amount: 6 })).outcome, 'ran');
    assert.equal(reasonOf(await call(gateway, 'loan', { amount: 4.01 })), 'spend_exceeded');
    assert.equal((await call(gateway, 'loan', { amount: 3 })).outcome, 'ran');
    assert.equal(reasonOf(await call(gateway, 'loan', { amount: 1 })), 'limit_reached');
  });

  test('a host that checks and runs a call itself reserves at the check, and its report gives back', async () => {
    const check = async (): Promise<NonNullable<Called['check']> & { session: string }> => {
      const body = { tool: 'shop/gift_host', arguments: { amount: 6 }, agent: 'desk', origins: { amount: 'context' } };
      return (await gateway.request('POST', '/v1/check', { body })).json as never;
    };
    await gateway.reconfigure(
      configOf(shop.backend.origin, {
        gift_host: { writes: true, currency: 'EUR', spend: [{ field: 'amount', at_most: 10, per: 'month' }] },
        pay: {
          writes: true,
          undo: { tool: 'refund', with: { amount: 'arguments.amount' } },
          currency: 'EUR',
          spend: [{ field: 'amount', at_most: 10, per: 'month' }],
        },
        refund: { writes: true, undo: 'none', restores: true },
      }),
    );
    const first = await check();
    assert.equal(first.decision, 'allow');
    assert.equal((await check()).reason, 'spend_exceeded');
    const body = { session: first.session, step: first.step, outcome: 'failed' };
    assert.equal((await gateway.request('POST', '/v1/outcomes', { body })).status, 200);
    assert.equal((await check()).decision, 'allow');
    // And an undo that restores, in a limit of its own.
    const paid = await call(gateway, 'pay', { amount: 6 }, { session: 'pay-1' });
    assert.equal(paid.outcome, 'ran');
    assert.equal(reasonOf(await call(gateway, 'pay', { amount: 6 })), 'spend_exceeded');
    const back = await call(gateway, 'refund', { amount: 6 }, { session: 'pay-1', undoes: paid.check?.step });
    assert.equal(back.outcome, 'ran', JSON.stringify(back));
    assert.equal((await call(gateway, 'pay', { amount: 6 })).outcome, 'ran');
  });

  test('what is counted survives a reload', async () => {
    const config = configOf(shop.backend.origin, { ten: { writes: true, at_most: { count: 10, per: 'day' } } });
    await gateway.reconfigure(config);
    assert.equal(reasonOf(await call(gateway, 'ten', {})), 'limit_reached');
  });

  test('a hold made before midnight and settled after it counts in the day in which it was made', async () => {
    const before = Date.parse('2026-03-28T23:59:59Z');
    const midnight = Date.parse('2026-03-29T00:00:00Z');
    const { now } = gateway.gateway;
    const at = (nowMs: number): void => void Object.assign(gateway.gateway, { now: () => nowMs });
    const { promise, resolve } = Promise.withResolvers<void>();
    await gateway.reconfigure(
      configOf(shop.backend.origin, { one: { writes: true, at_most: { count: 1, per: 'day' } } }, LISBON),
    );
    try {
      at(before);
      shop.hold = promise;
      const first = call(gateway, 'one', {}, { session: 'day-1' });
      while (!shop.calls.some(({ path }) => path === '/one')) await pause(10);
      at(midnight);
      shop.hold = undefined;
      const second = await call(gateway, 'one', {}, { session: 'day-2' });
      assert.equal(second.outcome, 'ran');
      resolve();
      assert.equal((await first).outcome, 'ran');
      assert.equal(reasonOf(await call(gateway, 'one', {}, { session: 'day-3' })), 'limit_reached');
      at(before);
      assert.equal(reasonOf(await call(gateway, 'one', {}, { session: 'day-4' })), 'limit_reached');
      // The day on which clocks go forward ends after 23 hours.
      at(midnight + 23 * 3_600_000 - 1);
      assert.equal(reasonOf(await call(gateway, 'one', {}, { session: 'day-5' })), 'limit_reached');
      at(midnight + 23 * 3_600_000);
      assert.equal((await call(gateway, 'one', {}, { session: 'day-6' })).outcome, 'ran');
    } finally {
      resolve();
      Object.assign(gateway.gateway, { now });
    }
  });
});
