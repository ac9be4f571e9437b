import type { LoadOptions } from './load.ts';
import { ReceiptSource } from './receipt-source.ts';

/** One kind of request, and to whom it goes. */
export interface Case {
  readonly name: string;
  readonly goal: string;
  /** What p99 may be longer by at half of what the case can do; not looked at where absent. */
  readonly addedGoal?: string;
  readonly target: 'bare' | 'gateway';
  readonly request: LoadOptions['request'];
  readonly expect: string;
}

function http(method: string, path: string, headers: readonly string[], body?: string): string {
  const length =
    body === undefined ? [] : ['content-type: application/json', `content-length: ${Buffer.byteLength(body)}`];
  return [`${method} ${path} HTTP/1.1`, 'host: 127.0.0.1', ...headers, ...length, '', body ?? ''].join('\r\n');
}

const SEARCH = JSON.stringify({ note: 'x'.repeat(560), order_id: '4411' });
const PUT_ARGUMENTS = { note: 'a note', order_id: '4411' };
const PUT = JSON.stringify(PUT_ARGUMENTS);

const sources = new Map<number, ReceiptSource>();

/** A receipt that was never sent, of the connection's own session. */
function nextReceipt(connection: number): string {
  const source = sources.get(connection) ?? new ReceiptSource(`c-${connection}`, PUT_ARGUMENTS);
  sources.set(connection, source);
  return Buffer.from(JSON.stringify(source.next())).toString('base64url');
}

/** What is measured in interleaved rounds; the first is what all others are compared with. */
export const CASES: readonly Case[] = [
  {
    name: 'bare forwarder, POST of 600 B',
    goal: '',
    target: 'bare',
    request: () => http('POST', '/search', [], SEARCH),
    expect: '200',
  },
  {
    name: 'checked read (POST of 600 B), held history',
    goal: '≥ 70 % of bare',
    addedGoal: '≤ 2 ms',
    target: 'gateway',
    request: (connection) => http('POST', '/shop/search', [`toolgate-session: r-${connection}`], SEARCH),
    expect: '200',
  },
  {
    name: 'checked read (GET), held history',
    goal: '',
    target: 'gateway',
    request: (connection) => http('GET', '/shop/orders/4411', [`toolgate-session: g-${connection}`]),
    expect: '200',
  },
  {
    name: 'checked write, typed by a host, claim durable (FULL)',
    goal: '≥ 40 % of bare',
    addedGoal: '≤ 15 ms',
    target: 'gateway',
    request: (connection) =>
      http(
        'POST',
        '/shop/orders',
        [`toolgate-session: w-${connection}`, 'toolgate-origins: order_id=context, note=context'],
        PUT,
      ),
    expect: '200',
  },
  {
    name: 'write with a receipt, claim durable (FULL)',
    goal: '≥ 35 % of bare',
    target: 'gateway',
    request: (connection) =>
      http('POST', '/shop/orders', ['toolgate-agent: desk', `toolgate-receipt: ${nextReceipt(connection)}`], PUT),
    expect: '200',
  },
];
