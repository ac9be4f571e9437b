import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import type { Client } from '@modelcontextprotocol/client';
import { newCredential } from '../../gateway/config/credential.ts';
import { encodeBase64url } from '../../receipts/base64url.ts';
import { nodeCrypto } from '../../receipts/crypto-node.ts';
import { cutHistory } from '../../receipts/history-cut.ts';
import type { TestGateway } from '../harness/gateway.ts';
import { APP, issuerHistory, OTHER, type ReceiptAnswer, RUNTIME_KEY, type Said } from '../proofs/world.ts';
import { checkOf, textOf } from './clients.ts';
import { connect, raw, start } from './proxy-stage.ts';
import { type RawServer, said, tool } from './raw-server.ts';

const NAMES = ['get_order', 'charge', 'keyed', 'idem'] as const;
const CLERK = newCredential();
const USUAL = { amount: 40, order_id: 'A1' };

let server: RawServer;
let gateway: TestGateway;
let clients: Readonly<Record<'legacy' | 'modern' | 'other', Readonly<Record<'shop' | 'mixed' | 'plain', Client>>>>;
/** What becomes of the calls to come, in place of an answer. */
const next: ('drop' | Promise<void>)[] = [];

before(async () => {
  const properties = { amount: { type: 'number' }, order_id: { type: 'string' }, once: { type: 'string' } };
  const inputSchema = { type: 'object', properties, required: ['order_id'] };
  let answered = 0;
  server = await raw({
    pages: () => [{ tools: NAMES.map((name) => tool(name, { inputSchema })) }],
    handle: async ({ response, result }) => {
      const fate = next.shift();
      if (fate === 'drop') return void response.destroy();
      await fate;
      answered += 1;
      result(said(`answer ${answered}`));
    },
  });
  const waived = { confirm: 'reasons', undo: 'none' };
  const route = (name: string, verify: string): object => ({
    name,
    mcp: server.url,
    verify,
    agents: ['desk'],
    tools: [
      { name: 'get_order', writes: false, sends_out: true },
      { name: 'charge', ...waived },
      { name: 'keyed', ...waived, idempotency: { argument: 'once' } },
      { name: 'idem', ...waived, idempotent: true },
    ],
  });
  const tools = NAMES.flatMap((name) => [`shop/${name}`, `mixed/${name}`]);
  const issuer = { public_key: encodeBase64url(RUNTIME_KEY.publicBytes), agents: ['desk'], tools };
  const bare = (name: string, verify: string, agents: readonly string[], tools: readonly string[]): object => ({
    name,
    path: `/${name}`,
    upstream: new URL(server.url).origin,
    verify,
    agents,
    http: tools.map((tool) => ({ name: tool, method: 'GET', path: `/${tool}` })),
  });
  gateway = await start({
    audience: 'shop-gateway',
    keys: { signing: './gateway.pem', issuers: [{ id: 'desk-runtime', ...issuer }] },
    agents: {
      desk: {
        credentials: [
          { key: APP.digest, host: true, name: 'app' },
          { key: OTHER.digest, host: true, name: 'other' },
        ],
      },
      clerk: { credentials: [CLERK.digest] },
    },
    routes: [
      route('shop', 'receipt'),
      route('mixed', 'either'),
      route('plain', 'check'),
      bare('sole', 'receipt', ['desk', 'clerk'], ['peek', 'look']),
      bare('open', 'check', ['desk'], ['look']),
    ],
  });
  // Where the processor is shared a list may come later than the first call.
  while (
    ((await (await fetch(`${gateway.url}/readyz`)).json()) as { checks: { ok: boolean }[] }).checks.some(
      ({ ok }) => !ok,
    )
  )
    await pause(50);
  const open = async (era: 'legacy' | 'modern', key: string): Promise<(typeof clients)['legacy']> => {
    const [shop, mixed, plain] = await Promise.all(
      ['shop', 'mixed', 'plain'].map((name) => connect(`${gateway.url}/mcp/${name}`, { era, key })),
    );
    if (shop === undefined || mixed === undefined || plain === undefined) throw new Error('a client is missing');
    return { shop, mixed, plain };
  };
  clients = {
    legacy: await open('legacy', APP.key),
    modern: await open('modern', APP.key),
    other: await open('legacy', OTHER.key),
  };
});

type Result = Awaited<ReturnType<Client['callTool']>>;

/** Calls a tool with a receipt in `_meta["toolgate/receipt"]`. */
function send(client: Client, receipt: unknown, name = 'charge', args: object = USUAL): Promise<Result> {
  const meta = receipt === undefined ? {} : { 'toolgate/receipt': receipt };
  return client.callTool({ name, arguments: { ...args }, _meta: meta });
}

function receiptOf(result: Result): ReceiptAnswer {
  return (result._meta?.['toolgate/receipt'] ?? {}) as ReceiptAnswer;
}

/** How many calls reached the server while `work` ran. */
async function reaching(work: () => Promise<void>): Promise<number> {
  const calls = (): number => server.received.filter(({ method }) => method === 'tools/call').length;
  const earlier = calls();
  await work();
  return calls() - earlier;
}

const keysSent = (): unknown[] =>
  server.received
    .filter(({ method, params }) => method === 'tools/call' && params?.['name'] === 'keyed')
    .map(({ params }) => (params?.['arguments'] as { once?: unknown } | undefined)?.once);

for (const era of ['legacy', 'modern'] as const) {
  for (const form of ['whole', 'cut'] as const) {
    test(`a ${form} receipt of an issuer admits its call once (${era} era)`, async () => {
      const whole = issuerHistory();
      const receipt = form === 'cut' ? cutHistory(nodeCrypto, whole) : whole;
      const reached = await reaching(async () => {
        const first = await send(clients[era].shop, receipt);
        assert.match(textOf(first), /^answer/);
        const { decision, reason, resend, session, step } = receiptOf(first);
        assert.deepEqual([decision, reason, resend, session, step], ['allow', 'receipt', false, whole.session, 1]);
        const second = await send(clients[era].shop, receipt);
        assert.equal(second.isError, true);
        assert.deepEqual([receiptOf(second).decision, receiptOf(second).reason], ['refuse', 'receipt_spent']);
      });
      assert.equal(reached, 1);
      const sent = server.received.findLast(({ method }) => method === 'tools/call');
      assert.equal(sent?.params?.['_meta'], undefined, 'the receipt is nothing to the server');
    });
  }
}

test('where a route takes nothing else, a history among the members is the receipt', async () => {
  const members = { history: issuerHistory(), agent: 'desk' };
  const result = await clients.legacy.shop.callTool({
    name: 'charge',
    arguments: USUAL,
    _meta: { 'toolgate/call': members },
  });
  assert.equal(receiptOf(result).reason, 'receipt', textOf(result));
});

test('a route that takes receipts alone takes nothing else, however a call names its tool', async () => {
  // The first is offered by one server; of the second this agent reaches one of two.
  for (const tool of ['peek', 'look', 'sole/peek', 'sole/look']) {
    const answer = await gateway.request('POST', '/v1/call', { key: CLERK.key, body: { tool, arguments: {} } });
    const { receipt } = answer.json as { receipt?: ReceiptAnswer };
    assert.equal(receipt?.reason, 'receipt_missing', answer.text);
  }
  const all = await connect(`${gateway.url}/mcp`, { key: CLERK.key });
  for (const name of ['peek', 'look', 'sole/peek', '__peek', 'sole__peek']) {
    const result = await all.callTool({ name, arguments: {} });
    const said = [checkOf(result).reason, receiptOf(result).reason];
    assert.deepEqual(said, name === 'sole__peek' ? [undefined, 'receipt_missing'] : ['unknown_tool', undefined], name);
  }
});

interface Refused {
  readonly title: string;
  readonly receipt: () => unknown;
  readonly args?: object;
  readonly reason: string;
  readonly detail?: object;
}

const of = (what: Said) => (): unknown => issuerHistory(what);

const REFUSED: readonly Refused[] = [
  { title: 'none', receipt: () => undefined, reason: 'receipt_missing' },
  { title: 'one without entries', receipt: () => ({ ...issuerHistory(), entries: [] }), reason: 'receipt_missing' },
  {
    title: 'one that was edited',
    receipt: () => ({ ...issuerHistory(), session: 'another' }),
    reason: 'history_invalid',
    detail: { fault: 'signature', entry: 0 },
  },
  {
    title: 'one for another audience',
    receipt: of({ header: { audience: 'elsewhere' } }),
    reason: 'history_invalid',
    detail: { fault: 'audience', entry: 0 },
  },
  {
    title: 'one of a call that was refused',
    receipt: of({ body: { decision: 'refuse', reasons: ['write'] } }),
    reason: 'receipt_not_allowed',
    detail: { decision: 'refuse' },
  },
  {
    title: 'one for other arguments',
    receipt: of({}),
    args: { amount: 41, order_id: 'A1' },
    reason: 'receipt_mismatch',
    detail: { differs: ['arguments'] },
  },
  {
    title: 'one for another tool',
    receipt: of({ tool: 'shop/idem' }),
    reason: 'receipt_mismatch',
    detail: { differs: ['tool'] },
  },
  { title: 'one of a call that was run', receipt: of({ report: { outcome: 'ran' } }), reason: 'receipt_spent' },
];

for (const { title, receipt, args = USUAL, reason, detail } of REFUSED) {
  test(`a receipt that admits nothing: ${title} is ${reason}`, async () => {
    const given = receipt();
    const reached = await reaching(async () => {
      for (const era of ['legacy', 'modern'] as const) {
        const result = await send(clients[era].shop, given, 'charge', args);
        assert.equal(result.isError, true);
        assert.match(textOf(result), new RegExp(`does not admit this call: ${reason}`));
        const said = receiptOf(result);
        assert.deepEqual([said.decision, said.reason, said.resend], ['refuse', reason, false]);
        if (detail !== undefined) assert.deepEqual(said.detail, detail);
      }
    });
    assert.equal(reached, 0);
  });
}

test('a read is sent again each time; a settled write that may be repeated is answered from the store', async () => {
  const read = issuerHistory({ tool: 'shop/get_order' });
  const reads = await reaching(async () => {
    for (const resend of [false, true, true])
      assert.equal(receiptOf(await send(clients.legacy.shop, read, 'get_order')).resend, resend);
  });
  assert.equal(reads, 3);
  for (const name of ['keyed', 'idem']) {
    const receipt = issuerHistory({ tool: `shop/${name}` });
    const writes = await reaching(async () => {
      const first = await send(clients.legacy.shop, receipt, name);
      assert.equal(first._meta?.['toolgate/replayed'], undefined);
      const again = await send(clients.modern.shop, receipt, name);
      assert.deepEqual([again._meta?.['toolgate/replayed'], receiptOf(again).resend], [true, true]);
      assert.equal(textOf(again), textOf(first));
    });
    assert.equal(writes, 1, name);
  }
});

test('a write of unknown outcome goes again under its key, and one without is never sent again', async () => {
  const keyed = issuerHistory({ tool: 'shop/keyed' });
  const earlier = keysSent().length;
  // The gateway itself sends a keyed write again before it gives up.
  next.push('drop', 'drop', 'drop', 'drop');
  const lost = await send(clients.legacy.shop, keyed, 'keyed');
  next.length = 0;
  assert.equal(lost._meta?.['toolgate/outcome'], 'outcome_unknown');
  const again = await send(clients.legacy.shop, keyed, 'keyed');
  assert.match(textOf(again), /^answer/);
  assert.equal(receiptOf(again).resend, true);
  const keys = new Set(keysSent().slice(earlier));
  assert.equal(keys.size, 1);
  assert.match(String([...keys][0]), /^[\w-]{43}$/);
  const plain = issuerHistory();
  const reached = await reaching(async () => {
    next.push('drop');
    const first = await send(clients.legacy.shop, plain);
    assert.equal(first._meta?.['toolgate/outcome'], 'outcome_unknown');
    assert.equal(receiptOf(await send(clients.legacy.shop, plain)).reason, 'receipt_spent');
  });
  assert.equal(reached, 1);
});

test('while the first send is under way a keyed write is told to wait, and another caller comes too late', async () => {
  const receipt = issuerHistory({ tool: 'shop/keyed' });
  const release = Promise.withResolvers<void>();
  next.push(release.promise);
  const earlier = keysSent().length;
  const first = send(clients.legacy.shop, receipt, 'keyed');
  while (keysSent().length === earlier) await pause(10);
  await assert.rejects(send(clients.modern.shop, receipt, 'keyed'), (error: { code?: number; data?: unknown }) => {
    const { status, retryAfterSeconds } = error.data as { status?: number; retryAfterSeconds?: number };
    assert.deepEqual([status, typeof retryAfterSeconds], [409, 'number']);
    return true;
  });
  assert.equal(receiptOf(await send(clients.other.shop, receipt, 'keyed')).reason, 'receipt_spent');
  release.resolve();
  assert.match(textOf(await first), /^answer/);
});

test('32 sends of one receipt at once, over clients of both eras, run the call once', async () => {
  const receipt = issuerHistory();
  const reached = await reaching(async () => {
    const results = await Promise.all(
      Array.from({ length: 32 }, (_, i) => send(clients[i % 2 === 0 ? 'legacy' : 'modern'].shop, receipt)),
    );
    const reasons = results.map((result) => receiptOf(result).reason).sort();
    assert.deepEqual(reasons, ['receipt', ...Array.from({ length: 31 }, () => 'receipt_spent')]);
  });
  assert.equal(reached, 1);
});

test('`either` takes a receipt where one is given and checks the call where none is; `check` takes none', async () => {
  const args = { order_id: 'A1' };
  const admitted = await send(
    clients.legacy.mixed,
    issuerHistory({ tool: 'mixed/charge', args: USUAL, agent: 'desk' }),
    'charge',
  );
  assert.equal(receiptOf(admitted).reason, 'receipt', textOf(admitted));
  const spent = issuerHistory({ tool: 'mixed/idem', report: { outcome: 'ran' } });
  assert.equal(receiptOf(await send(clients.legacy.mixed, spent, 'idem')).reason, 'receipt_spent');
  const asked = await send(clients.legacy.mixed, undefined, 'charge', args);
  assert.equal(asked.isError, true);
  assert.equal(checkOf(asked).decision, 'confirm');
  await assert.rejects(send(clients.legacy.plain, issuerHistory(), 'charge', args), { code: -32602 });
  // A receipt under a name that nobody reads is no reason for a check.
  for (const name of ['toolgate/receipts', 'Toolgate/Receipt', 'toolgate/']) {
    const misnamed = { name: 'charge', arguments: args, _meta: { [name]: spent } };
    await assert.rejects(clients.modern.mixed.callTool(misnamed), { code: -32602 }, name);
  }
});
