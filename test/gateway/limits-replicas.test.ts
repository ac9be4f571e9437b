import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { startTestGateway, type TestGateway } from '../harness/gateway.ts';
import { type Backend, httpBackend } from '../http/backends.ts';
import { startPostgres, type TestPostgres } from '../postgres.ts';

const postgres = await startPostgres();
const skip = typeof postgres === 'string' ? postgres : false;

interface Called {
  readonly check?: { readonly decision: string; readonly reason: string };
  readonly outcome?: string;
}

describe('limits through two replicas that share a store', { skip }, () => {
  const gateways: TestGateway[] = [];
  let backend: Backend;
  let reached = 0;

  before(async () => {
    backend = await httpBackend((request, response) => {
      reached += 1;
      request.resume().on('end', () => response.setHeader('content-type', 'application/json').end('{}'));
    });
    const database = await (postgres as TestPostgres).database();
    for (let replica = 0; replica < 2; replica++)
      gateways.push(await startTestGateway(configOf(backend.origin, database)));
  });
  after(async () => {
    for (const gateway of gateways) await gateway.close();
    await backend.close();
    await (postgres as TestPostgres).close();
  });

  const callAll = (tool: string, args: object, count: number): Promise<readonly Called[]> =>
    Promise.all(
      Array.from({ length: count }, async (_, index) => {
        const origins = Object.fromEntries(Object.keys(args).map((name) => [name, 'context']));
        const body = { tool: `shop/${tool}`, arguments: args, agent: 'desk', origins, session: `${tool}-${index}` };
        const answer = await gateways[index % gateways.length]?.request('POST', '/v1/call', { body });
        return answer?.json as Called;
      }),
    );
  const count = (called: readonly Called[], reason: string): number =>
    called.filter(({ check }) => check?.reason === reason).length;

  test('100 calls at once of a limit of 10: exactly 10 run', async () => {
    reached = 0;
    const called = await callAll('ten', {}, 100);
    assert.equal(reached, 10);
    assert.equal(called.filter(({ outcome }) => outcome === 'ran').length, 10);
    assert.equal(count(called, 'limit_reached'), 90, JSON.stringify(called.find(({ check }) => check === undefined)));
  });

  test('100 calls at once of a sliding limit of 10: exactly 10 run', async () => {
    reached = 0;
    const called = await callAll('hourly', {}, 100);
    assert.equal(reached, 10);
    assert.equal(count(called, 'limit_reached'), 90, JSON.stringify(called.find(({ check }) => check === undefined)));
  });

  test('a pool of 100.00 takes two calls of 40.00', async () => {
    reached = 0;
    const called = await callAll('pay', { amount: 40 }, 20);
    assert.equal(reached, 2);
    assert.equal(count(called, 'spend_exceeded'), 18);
  });
});

function configOf(upstream: string, store: string): object {
  const write = (name: string, words: object): [object, object] => [
    { name, method: 'POST', path: `/${name}`, writes: true, input: INPUT },
    { name, confirm: 'reasons', ...words },
  ];
  const tools = [
    write('ten', { at_most: { count: 10, per: 'day' } }),
    write('hourly', { at_most: [{ count: 10, per: 'hour' }] }),
    write('pay', { currency: 'EUR', spend: [{ field: 'amount', at_most: '100.00', per: 'month', pool: 'trading' }] }),
  ];
  return {
    tenant: 'shop',
    audience: 'shop-gateway',
    store,
    agents: { desk: { privilege: 'high' } },
    routes: [
      {
        name: 'shop',
        path: '/shop',
        upstream,
        agents: ['desk'],
        http: tools.map(([http]) => http),
        tools: tools.map(([, words]) => words),
      },
    ],
  };
}

const INPUT = { type: 'object', properties: { amount: { type: 'number' } } };
