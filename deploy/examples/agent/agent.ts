import { createInterface } from 'node:readline/promises';
// Outside of this repository: from 'toolgate/client'.
import { type CallResult, Client, type Session } from '../../../gateway/client/entry.ts';

/**
 * An agent against the shop of `npm start`: it looks an order up by itself, asks before it charges a card, has the call made
 * with its receipt, and says at the end what became of everything.
 */
const [orderId = '4411', amount = '40'] = process.argv.slice(2);
const url = process.env['TOOLGATE_URL'] ?? 'http://127.0.0.1:8080';

/** Checks a read, runs it here, and reports what came of it: its answer is what later origins may name. */
async function lookUp(session: Session, shopUrl: string): Promise<number> {
  const check = await session.check('shop/get_order', { order_id: orderId }, SAID);
  if (check.decision !== 'allow') throw new Error(check.sentence);
  const answer = await fetch(`${shopUrl}/orders/${encodeURIComponent(orderId)}`);
  const order = (await answer.json()) as { readonly status: string; readonly amount: number };
  await session.ran(check, answer.ok ? 'ran' : 'failed', order);
  console.log(`order ${orderId} is ${order.status}, ${order.amount}`);
  return check.step;
}

/** Checks a write; where a person must see it, asks; then hands the receipt over, and the gateway makes the call once. */
async function charge(session: Session, read: number): Promise<CallResult> {
  const call = { order_id: orderId, amount: Number(amount) };
  const said = { ...SAID, origins: { order_id: 'typed', amount: `result:${read}.amount` } };
  let check = await session.check('shop/charge_card', call, said);
  if (check.decision === 'confirm') {
    const token = check.confirmation?.token;
    if (token === undefined || !(await approved(check.sentence))) throw new Error('nobody approved the charge');
    check = await session.check('shop/charge_card', call, { ...said, confirmation: token });
  }
  if (check.decision !== 'allow') throw new Error(check.sentence);
  const receipt = await session.receipt(check);
  return session.call('shop/charge_card', call, { receipt });
}

/** What the person typed, as evidence for what is `typed`. */
const SAID = { turns: [`charge ${amount} for order ${orderId}`], origins: { order_id: 'typed' } };

async function approved(question: string): Promise<boolean> {
  const terminal = createInterface({ input: process.stdin, output: process.stdout });
  try {
    return (await terminal.question(`${question} [y/N] `)).trim() === 'y';
  } finally {
    terminal.close();
  }
}

const publicKey = process.env['TOOLGATE_PUBLIC_KEY'];
const client = new Client({ url, ...(publicKey === undefined ? {} : { publicKey }) });
const session = client.session('billing', { carried: true });
const read = await lookUp(session, process.env['SHOP_URL'] ?? 'http://127.0.0.1:9100');
const result = await charge(session, read);
console.log(`charged: ${result.outcome}, ${JSON.stringify(result.result)}`);
for (const { step, tool, decision, outcome } of (await session.history()).entries) {
  console.log(`step ${step}: ${tool} ${decision}${outcome === undefined ? '' : `, ${outcome}`}`);
}
