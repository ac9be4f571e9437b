import { strict as assert } from 'node:assert';
import { Client } from '../../gateway/client/client.ts';
import type { TestAnswer, TestGateway } from '../harness/gateway.ts';
import { APP, inHeader, type ReceiptAnswer } from './world.ts';

/** A call that a receipt is sent with. */
export interface Sent {
  readonly tool?: string;
  readonly args?: Record<string, unknown>;
  readonly agent?: string;
  readonly key?: string;
}

const USUAL = { amount: 40, order_id: 'A1' };

/** Sends a call with its receipt on the route of its tool. */
export function sendOnRoute(
  gateway: Pick<TestGateway, 'request'>,
  receipt: unknown,
  sent: Sent = {},
): Promise<TestAnswer> {
  const { tool = 'shop/charge', args = USUAL, agent = 'desk', key = APP.key } = sent;
  const [server, name = ''] = tool.split('/');
  const headers = { 'toolgate-agent': agent, 'toolgate-receipt': inHeader(receipt) };
  if (name === 'get_order')
    return gateway.request('GET', `/${server}/orders/${String(args['order_id'])}`, { key, headers });
  return gateway.request('POST', `/${server}/${name}`, { key, headers, body: args });
}

/** The answer of `/v1/receipts`. */
export async function askReceipt(
  gateway: Pick<TestGateway, 'request'>,
  receipt: unknown,
  sent: Sent & { readonly spend?: boolean } = {},
): Promise<ReceiptAnswer> {
  const { tool = 'shop/charge', args = USUAL, agent = 'desk', key = APP.key, spend } = sent;
  const body = { tool, arguments: args, agent, history: receipt, ...(spend === undefined ? {} : { spend }) };
  const answer = await gateway.request('POST', '/v1/receipts', { key, body });
  assert.equal(answer.status, 200, answer.text);
  return answer.json as ReceiptAnswer;
}

/** The receipt answer that a refusal on a route carries. */
export function receiptIn(answer: TestAnswer): ReceiptAnswer {
  assert.equal(answer.status, 403, `${answer.status}: ${answer.text}`);
  return (answer.json as { receipt: ReceiptAnswer }).receipt;
}

/** A client of a gateway, as the host `app`. */
export function appClient({ gateway }: { readonly gateway: Pick<TestGateway, 'url'> }, publicKey?: string): Client {
  return new Client({ url: gateway.url, key: APP.key, ...(publicKey === undefined ? {} : { publicKey }) });
}

/** What a host says of arguments that are its own: writes then need no person. */
export const OWN_WORDS = { origins: { order_id: 'context', amount: 'context' } } as const;
