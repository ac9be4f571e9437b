import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import type { Shop } from '../../deploy/examples/shop/backend.ts';

/** Keys of the callers of a scenario: an application, an agent on its own, and a person who approves. */
export const KEYS = { app: 'tg_app', desk: 'tg_desk', ana: 'tg_ana' } as const;

const digest = (key: string): string => `sha256:${createHash('sha256').update(key).digest('hex')}`;

const MONEY = {
  type: 'object',
  properties: { order_id: { type: 'string' }, amount: { type: 'number' } },
  required: ['order_id', 'amount'],
};

/** The shop behind two routes: one that checks each call, and a till that takes receipts. */
export function scenarioConfig(upstream: string, more: object): object {
  return {
    listen: '127.0.0.1:0',
    tenant: 'shop',
    audience: 'shop-gateway',
    agents: {
      desk: { privilege: 'low', credentials: [digest(KEYS.desk)] },
      billing: { privilege: 'high', credentials: [{ key: digest(KEYS.app), host: true, name: 'shop-app' }] },
    },
    approvers: [{ name: 'ana', credentials: [digest(KEYS.ana)] }],
    ...more,
    routes: [
      {
        name: 'shop',
        path: '/shop',
        upstream,
        http: [
          { name: 'get_order', method: 'GET', path: '/orders/{order_id}' },
          { name: 'charge_card', method: 'POST', path: '/charges', writes: true, input: MONEY },
          { name: 'refund_card', method: 'POST', path: '/refunds', writes: true, input: MONEY },
          {
            name: 'create_order',
            method: 'POST',
            path: '/orders',
            writes: true,
            input: {
              type: 'object',
              properties: { sku: { type: 'string' }, quantity: { type: 'integer' } },
              required: ['sku', 'quantity'],
            },
          },
          { name: 'cancel_order', method: 'DELETE', path: '/orders/{order_id}', writes: true },
        ],
        tools: [
          {
            name: 'charge_card',
            after: ['get_order'],
            at_most: { count: 2, per: 'session' },
            idempotency: { header: 'Idempotency-Key' },
            undo: { tool: 'refund_card', with: { order_id: 'arguments.order_id', amount: 'arguments.amount' } },
          },
          { name: 'refund_card', idempotency: { header: 'Idempotency-Key' }, undo: 'none' },
          {
            name: 'create_order',
            confirm: 'reasons',
            undo: 'cancel_order',
            result: { type: 'object', properties: { order_id: { type: 'string' } } },
          },
          { name: 'cancel_order', irreversible: true },
        ],
      },
      {
        name: 'till',
        path: '/till',
        upstream,
        verify: 'receipt',
        http: [{ name: 'take', method: 'POST', path: '/charges', writes: true, input: MONEY }],
        tools: [{ name: 'take', idempotency: { header: 'Idempotency-Key' } }],
      },
    ],
  };
}

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly json: Record<string, unknown>;
}

export interface Sent {
  readonly key?: string;
  readonly session?: string;
  readonly body?: object;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Sends one request; a POST has a JSON body. */
export async function send(base: string, method: string, path: string, sent: Sent = {}): Promise<Answer> {
  const { key = KEYS.app, session, body, headers = {} } = sent;
  const response = await fetch(`${base}${path}`, {
    method,
    headers: {
      authorization: `Bearer ${key}`,
      ...(session === undefined ? {} : { 'toolgate-session': session }),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    json = { text };
  }
  return { status: response.status, headers: response.headers, json: json as Record<string, unknown> };
}

function checkOf(answer: Answer): Record<string, unknown> {
  return (answer.json['check'] ?? answer.json) as Record<string, unknown>;
}

/** The confirmation that an answer asks for: its id, and its token where a host asks. */
export function asked(answer: Answer): { readonly id: string; readonly token: string } {
  const { confirmation } = checkOf(answer) as { confirmation?: { id: string; token?: string } };
  assert.ok(confirmation !== undefined, JSON.stringify(answer.json));
  return { id: confirmation.id, token: confirmation.token ?? '' };
}

/** Asks, then sends again with the token. */
async function confirmed(base: string, path: string, sent: Sent): Promise<Answer> {
  const first = await send(base, 'POST', path, sent);
  assert.equal(first.status, 428, JSON.stringify(first.json));
  const headers = { ...sent.headers, 'toolgate-confirmation': asked(first).token };
  return send(base, 'POST', path, { ...sent, headers });
}

/** What reached the shop: methods and targets. */
export function seen(shop: Shop, method: string): readonly string[] {
  return shop.seen.filter((one) => one.method === method).map(({ target }) => target);
}

/** One session's calls, in which every rule is looked at that needs what an earlier call left. */
export async function playOrderAndLimits(base: string, shop: Shop): Promise<void> {
  const session = 'order-and-limits';
  const body = { order_id: '4411', amount: 40 };
  const early = await send(base, 'POST', '/shop/charges', { session, body });
  assert.equal(early.status, 403);
  assert.match(String(checkOf(early)['reason']), /^order_rule/);
  assert.equal((await send(base, 'GET', '/shop/orders/4411', { session })).status, 200);

  const before = seen(shop, 'POST').length;
  const first = await send(base, 'POST', '/shop/charges', { session, body });
  assert.equal(first.status, 428);
  const token = { 'toolgate-confirmation': asked(first).token };
  const ran = await send(base, 'POST', '/shop/charges', { session, body, headers: token });
  assert.equal(ran.status, 201, JSON.stringify(ran.json));
  assert.equal((await send(base, 'POST', '/shop/charges', { session, body, headers: token })).status, 428);

  const keyed = { session, body: { order_id: '4411', amount: 2 }, headers: { 'idempotency-key': '"k-1"' } };
  const second = await confirmed(base, '/shop/charges', keyed);
  assert.equal(second.status, 201, JSON.stringify(second.json));
  const repeat = await send(base, 'POST', '/shop/charges', keyed);
  assert.equal(repeat.status, 201);
  assert.equal(repeat.headers.get('idempotency-replayed'), 'true');
  assert.deepEqual(repeat.json, second.json);
  const other = await send(base, 'POST', '/shop/charges', { ...keyed, body: { order_id: '4411', amount: 3 } });
  assert.equal(other.status, 422);
  assert.equal(seen(shop, 'POST').length, before + 2);

  const third = await send(base, 'POST', '/shop/charges', { session, body });
  assert.equal(third.status, 403);
  assert.match(String(checkOf(third)['reason']), /at_most|limit/);
  const held = await send(base, 'GET', `/v1/sessions/${session}`);
  assert.equal(held.status, 200, JSON.stringify(held.json));
}

/** An agent on its own asks, a person approves, the agent sends the call again. */
export async function playHeldConfirmation(base: string, shop: Shop): Promise<void> {
  const session = 'held';
  const call = { key: KEYS.desk, session, body: { order_id: '4412', amount: 5 } };
  assert.equal((await send(base, 'GET', '/shop/orders/4412', { key: KEYS.desk, session })).status, 200);
  const first = await send(base, 'POST', '/shop/charges', call);
  assert.equal(first.status, 428);
  const { id, token } = asked(first);
  assert.equal(token, '');
  const headers = { 'toolgate-confirmation': id };
  assert.notEqual((await send(base, 'POST', '/shop/charges', { ...call, headers })).status, 201);
  const approved = await send(base, 'POST', `/v1/confirmations/${id}/approve`, { key: KEYS.ana, body: {} });
  assert.equal(approved.status, 200, JSON.stringify(approved.json));
  const before = seen(shop, 'POST').length;
  const ran = await send(base, 'POST', '/shop/charges', { ...call, headers });
  assert.equal(ran.status, 201, JSON.stringify(ran.json));
  assert.notEqual((await send(base, 'POST', '/shop/charges', { ...call, headers })).status, 201);
  assert.equal(seen(shop, 'POST').length, before + 1);
}

/** A caller that carries its history goes on in one line, whoever answers. */
export async function playCarried(base: string): Promise<void> {
  let header: object = { format: 'qls-history/1', session: 'carried' };
  const entries: unknown[] = [];
  for (let step = 0; step < 6; step++) {
    const call = { tool: 'shop/get_order', arguments: { order_id: '4411' }, agent: 'billing' };
    const answer = await send(base, 'POST', '/v1/check', { body: { ...call, history: { ...header, entries } } });
    assert.equal(answer.json['decision'], 'allow', JSON.stringify(answer.json));
    assert.deepEqual([answer.json['session'], answer.json['step']], ['carried', step]);
    header = (answer.json['history'] as object | undefined) ?? header;
    entries.push({ ...(answer.json['entry'] as object), outcome: 'ran' });
  }
}

/** A check gives a receipt, the till takes it, once. Answers the receipt that was spent. */
export async function playReceipt(base: string, shop: Shop, session: string): Promise<string> {
  const call = { tool: 'till/take', arguments: { order_id: '4413', amount: 9 }, agent: 'billing' };
  const opening = { format: 'qls-history/1', session, entries: [] };
  const first = await send(base, 'POST', '/v1/check', { body: { ...call, history: opening } });
  assert.equal(first.json['decision'], 'confirm', JSON.stringify(first.json));
  const history = (first.json['history'] ?? {}) as object;
  const entries = [first.json['entry']];
  const body = { ...call, history: { ...history, entries }, confirmation: asked(first).token };
  const allowed = await send(base, 'POST', '/v1/check', { body });
  assert.equal(allowed.json['decision'], 'allow', JSON.stringify(allowed.json));
  const receipt = { ...history, entries: [...entries, allowed.json['entry']] };
  const text = Buffer.from(JSON.stringify(receipt)).toString('base64url');
  const before = seen(shop, 'POST').length;
  const ran = await sendReceipt(base, text);
  assert.equal(ran.status, 201, JSON.stringify(ran.json));
  const again = await sendReceipt(base, text);
  assert.equal(again.headers.get('idempotency-replayed'), 'true', JSON.stringify(again.json));
  assert.equal(seen(shop, 'POST').length, before + 1);
  return text;
}

/** Sends the till's call with a receipt. */
export function sendReceipt(base: string, receipt: string): Promise<Answer> {
  return send(base, 'POST', '/till/charges', {
    body: { order_id: '4413', amount: 9 },
    headers: { 'toolgate-agent': 'billing', 'toolgate-receipt': receipt },
  });
}

/** A run of two writes fails at its third call: both are undone, the last first. */
export async function playUndo(base: string, shop: Shop): Promise<void> {
  const session = 'undo';
  const headers = { 'toolgate-run': 'r-1', 'toolgate-origins': 'sku=context, quantity=context' };
  const made: unknown[] = [];
  for (const sku of ['A1', 'B2']) {
    const ran = await send(base, 'POST', '/shop/orders', { session, headers, body: { sku, quantity: 1 } });
    assert.equal(ran.status, 201, JSON.stringify(ran.json));
    made.push(ran.json['order_id']);
  }
  const refused = await send(base, 'POST', '/shop/orders', { session, headers, body: { sku: 'A1', price: 1 } });
  assert.equal(refused.status, 403);
  const wanted = made.toReversed().map((id) => `/orders/${id}`);
  for (let waited = 0; waited < 10_000 && seen(shop, 'DELETE').length < 2; waited += 50) await pause(50);
  assert.deepEqual(seen(shop, 'DELETE'), wanted);
  const late = await send(base, 'POST', '/shop/orders', { session, headers, body: { sku: 'A1', quantity: 1 } });
  assert.equal(late.status, 403);
  assert.match(String(checkOf(late)['reason']), /^run_ended/);
}
