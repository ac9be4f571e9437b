import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { startTestGateway, type TestGateway } from '../harness/gateway.ts';
import { type Backend, httpBackend } from '../http/backends.ts';

const INPUT = { type: 'object', properties: { amount: { type: 'number' } } };
const ORDER = { type: 'object', properties: { order_id: { type: 'string' } }, required: ['order_id'] };

/** A broker: orders are taken on at once and filled when a test says so. */
class Broker {
  /** Status by order id, as the read tells it next; the last of a list stays. */
  readonly statuses = new Map<string, string[]>();
  asked = 0;
  placed = 0;
  backend!: Backend;

  async start(): Promise<void> {
    this.backend = await httpBackend((request, response) => {
      request.resume().on('end', () => {
        response.setHeader('content-type', 'application/json');
        if (request.method === 'POST') {
          this.placed += 1;
          response.end(JSON.stringify({ order_id: `o-${this.placed}` }));
          return;
        }
        this.asked += 1;
        const id = (request.url ?? '').split('/').at(-1) ?? '';
        const statuses = this.statuses.get(id) ?? [];
        const status = statuses.length > 1 ? statuses.shift() : statuses[0];
        if (status === undefined) response.statusCode = 503;
        response.end(JSON.stringify(status === undefined ? {} : { status }));
      });
    });
  }
}

interface Called {
  readonly check: { readonly step: number; readonly session: string; readonly reason: string };
  readonly outcome?: string;
}

describe('a write that is followed by a read', () => {
  const broker = new Broker();
  let folder: string;
  let gateway: TestGateway;
  const start = (): Promise<TestGateway> => startTestGateway(configOf(broker.backend.origin), { folder });

  before(async () => {
    await broker.start();
    folder = await mkdtemp(join(tmpdir(), 'followed-'));
    gateway = await start();
  });
  after(async () => {
    await gateway.close();
    await broker.backend.close();
    await rm(folder, { recursive: true, force: true });
  });

  const place = async (amount: number): Promise<Called> => {
    const body = { tool: 'shop/place_order', arguments: { amount }, agent: 'desk', origins: { amount: 'context' } };
    return (await gateway.request('POST', '/v1/call', { body })).json as Called;
  };
  const stateOf = async ({ check }: Called): Promise<string | undefined> => {
    const answer = await gateway.request('GET', `/v1/sessions/${check.session}`);
    const { entries } = answer.json as { entries: { outcome?: string }[] };
    return entries[check.step]?.outcome;
  };
  const until = async (called: Called, outcome: string): Promise<void> => {
    for (let tries = 0; tries < 60; tries++) {
      if ((await stateOf(called)) === outcome) return;
      await pause(100);
    }
    assert.equal(await stateOf(called), outcome);
  };
  const left = async (): Promise<number> => {
    const { usage } = (await gateway.request('GET', '/v1/usage')).json as { usage: Record<string, string>[] };
    const [pool] = usage;
    return 100 - Number(pool?.['settled']) - Number(pool?.['held']);
  };

  test('pending, pending, filled: it ran, and what it spent is settled', async () => {
    broker.statuses.set('o-1', ['pending', 'pending', 'filled']);
    const called = await place(30);
    assert.equal(called.outcome, 'outcome_unknown');
    await until(called, 'ran');
    assert.equal(await left(), 70);
    const asked = broker.asked;
    assert.ok(asked >= 3, `${asked} reads`);
  });

  test('rejected: it failed, and what it spent is given back', async () => {
    broker.statuses.set('o-2', ['pending', 'rejected']);
    const called = await place(30);
    assert.equal(await left(), 40);
    await until(called, 'failed');
    assert.equal(await left(), 70);
  });

  test('a gateway that ends in between goes on when it starts again', async () => {
    broker.statuses.set('o-3', ['pending']);
    const called = await place(10);
    assert.equal(await stateOf(called), 'outcome_unknown');
    await gateway.close();
    broker.statuses.set('o-3', ['filled']);
    gateway = await start();
    await until(called, 'ran');
    assert.equal(await left(), 60);
  });

  test('a read that says nothing for as long as the tool allows leaves it to a person, and it stays counted', async () => {
    const called = await place(5);
    await pause(700);
    const now = gateway.gateway.now;
    Object.assign(gateway.gateway, { now: () => Date.now() + 61_000 });
    try {
      for (let tries = 0; tries < 60; tries++) {
        const [claim] = await gateway.gateway.store.listClaims('outcome_unknown', 10);
        if (claim?.why === 'gave_up') break;
        await pause(100);
      }
      const claims = await gateway.gateway.store.listClaims('outcome_unknown', 10);
      assert.deepEqual(
        claims.map(({ why }) => why),
        ['gave_up'],
      );
      const asked = broker.asked;
      broker.statuses.set('o-4', ['filled']);
      await pause(1_200);
      assert.equal(broker.asked, asked);
    } finally {
      Object.assign(gateway.gateway, { now });
    }
    assert.equal(await stateOf(called), 'outcome_unknown');
    assert.equal(await left(), 55);
  });
});

function configOf(upstream: string): object {
  return {
    tenant: 'shop',
    audience: 'shop-gateway',
    agents: { desk: { privilege: 'high' } },
    routes: [
      {
        name: 'shop',
        path: '/shop',
        upstream,
        agents: ['desk'],
        http: [
          { name: 'place_order', method: 'POST', path: '/orders', writes: true, input: INPUT },
          { name: 'get_order', method: 'GET', path: '/orders/{order_id}', input: ORDER },
        ],
        tools: [
          {
            name: 'place_order',
            confirm: 'reasons',
            result: { type: 'object', properties: { order_id: { type: 'string' } } },
            currency: 'USD',
            spend: [{ field: 'amount', at_most: 100, per: 'month' }],
            outcome: {
              follow: 'get_order',
              same: 'order_id',
              done_when: [{ field: 'status', is: 'filled' }],
              failed_when: [{ field: 'status', one_of: ['rejected', 'expired'] }],
              give_up_after: 1,
            },
          },
          { name: 'get_order', result: { type: 'object', properties: { status: { type: 'string' } } } },
        ],
      },
    ],
  };
}
