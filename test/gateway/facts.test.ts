import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { startTestGateway, type TestGateway } from '../harness/gateway.ts';
import { type Backend, httpBackend } from '../http/backends.ts';

const RULEBOOK = `define user ask refund
  "refund order 4411"

define flow refunds
  user ask refund
  if $order_paid
    execute refund_card
  else
    bot refuse
`;

describe('a fact that the configuration names is read from what tools answered', () => {
  let backend: Backend;
  let gateway: TestGateway;
  let status = 'open';

  before(async () => {
    backend = await httpBackend((request, response) => {
      request.resume().on('end', () => {
        response.setHeader('content-type', 'application/json').end(JSON.stringify({ status }));
      });
    });
    const input = { type: 'object', properties: { order_id: { type: 'string' } }, required: ['order_id'] };
    gateway = await startTestGateway(
      {
        tenant: 'shop',
        audience: 'shop-gateway',
        agents: { desk: { privilege: 'high' } },
        rulebook: './policy.co',
        facts: { order_paid: { from: 'orders.get.status == paid', same: 'order_id' } },
        routes: [
          {
            name: 'shop',
            path: '/shop',
            upstream: backend.origin,
            agents: ['desk'],
            http: [
              { name: 'orders.get', method: 'GET', path: '/orders/{order_id}', input },
              { name: 'refund_card', method: 'POST', path: '/refunds', writes: true, input },
            ],
            tools: [
              { name: 'orders.get', result: { type: 'object', properties: { status: { type: 'string' } } } },
              { name: 'refund_card', undo: 'none', confirm: 'reasons' },
            ],
          },
        ],
      },
      { files: { 'policy.co': RULEBOOK } },
    );
  });
  after(async () => {
    await gateway.close();
    await backend.close();
  });

  const call = async (tool: string, orderId: string): Promise<{ decision: string; reason: string }> => {
    const args = { tool: `shop/${tool}`, arguments: { order_id: orderId }, origins: { order_id: 'context' } };
    const body = { ...args, agent: 'desk', session: 'facts', context: { order_paid: true } };
    const { json, text } = await gateway.request('POST', '/v1/call', { body });
    const { check } = json as { check?: { decision: string; reason: string } };
    assert.ok(check, text);
    return check;
  };

  test('it is false until its tool answers, whatever the caller says, and of another order it stays so', async () => {
    assert.equal((await call('refund_card', '4411')).decision, 'refuse');
    await call('orders.get', '4411');
    assert.equal((await call('refund_card', '4411')).decision, 'refuse');
    status = 'paid';
    await call('orders.get', '4411');
    assert.equal((await call('refund_card', '4412')).decision, 'refuse');
    assert.equal((await call('refund_card', '4411')).decision, 'allow');
    status = 'refunded';
    await call('orders.get', '4411');
    assert.equal((await call('refund_card', '4411')).decision, 'refuse');
  });
});
