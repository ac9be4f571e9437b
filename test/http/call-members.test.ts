import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { type CallHeaders, readCallHeaders } from '../../gateway/http/call-headers.ts';
import { CALL_MEMBER_LIMITS, CALL_MEMBER_NAMES, parseCallMembers } from '../../gateway/http/call-members.ts';
import { createEdgeServer } from '../../gateway/http/server.ts';
import type { JsonObject } from '../../receipts/json-value.ts';
import { sendRaw } from './raw.ts';

interface Row {
  readonly id: string;
  readonly value: JsonObject;
  readonly members?: unknown;
  readonly code?: string;
  readonly pointer?: string;
}

const rows: readonly Row[] = JSON.parse(
  readFileSync(new URL('../vectors/http/call-members.json', import.meta.url), 'utf8'),
);

for (const { id, value, members, code, pointer } of rows) {
  test(`members of a call: ${id}`, () => {
    const parsed = parseCallMembers(value, CALL_MEMBER_NAMES);
    if ('members' in parsed) assert.deepEqual(parsed.members, members);
    else assert.deepEqual({ code: parsed.problem.code, pointer: parsed.problem.pointer }, { code, pointer });
  });
}

test('members are bounded', () => {
  const long = (length: number): string => 'x'.repeat(length);
  const many = (count: number): JsonObject =>
    Object.fromEntries(Array.from({ length: count }, (_, n) => [`a${n}`, 'typed']));
  const limits = CALL_MEMBER_LIMITS;
  const fits: readonly JsonObject[] = [
    { session: long(limits.name) },
    { idempotency_key: long(limits.idempotencyKey) },
    { origins: many(limits.entries) },
    { turns: [long(limits.turnsText)] },
    { turns: Array.from({ length: limits.turns }, () => 'x') },
    { confirmation: long(limits.confirmation) },
  ];
  const tooMuch: readonly JsonObject[] = [
    { session: long(limits.name + 1) },
    { idempotency_key: long(limits.idempotencyKey + 1) },
    { origins: many(limits.entries + 1) },
    { origins: { [long(limits.name + 1)]: 'typed' } },
    { turns: [long(limits.turnsText), 'x'] },
    { turns: Array.from({ length: limits.turns + 1 }, () => 'x') },
    { confirmation: long(limits.confirmation + 1) },
    { labels: { call: Array.from({ length: limits.entries + 1 }, () => 'x') } },
  ];
  for (const value of fits) assert.ok('members' in parseCallMembers(value, CALL_MEMBER_NAMES));
  for (const value of tooMuch) assert.ok('problem' in parseCallMembers(value, CALL_MEMBER_NAMES));
});

test('a name that would set a prototype is refused, wherever the value was read', () => {
  const value: JsonObject = JSON.parse('{"origins": {"__proto__": "typed"}}');
  const parsed = parseCallMembers(value, CALL_MEMBER_NAMES);
  assert.ok('problem' in parsed);
  assert.equal(parsed.problem.pointer, '/origins/__proto__');
});

test("a reader's own members are passed over, and only those that it names", () => {
  const value = { tool: 'shop/get_order', arguments: {}, session: 's' };
  assert.ok('problem' in parseCallMembers(value, CALL_MEMBER_NAMES));
  const parsed = parseCallMembers(value, new Set([...CALL_MEMBER_NAMES, 'tool', 'arguments']));
  assert.ok('members' in parsed);
  assert.equal(parsed.members.session, 's');
  assert.ok(!('tool' in parsed.members));
});

/** What a request with these header lines says of its call. */
async function headersSay(lines: readonly string[]): Promise<CallHeaders> {
  let said: CallHeaders | undefined;
  const server = createEdgeServer({
    listen: { host: '127.0.0.1', port: 0 },
    handle: (exchange) => {
      const call = readCallHeaders(exchange);
      if ('problem' in call) return exchange.problem(call.problem);
      said = call;
      exchange.json(200, '{}');
    },
  });
  const { port } = await server.listen();
  const answer = await sendRaw(port, `GET / HTTP/1.1\r\n${['Host: a', ...lines].join('\r\n')}\r\n\r\n`);
  await server.close({ graceMs: 0 });
  assert.ok(said !== undefined, answer.text);
  return said;
}

function base64url(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}

test('a request without such headers says nothing of its call', async () => {
  assert.deepEqual(await headersSay([]), {
    members: { origins: {}, turns: [], labels: {}, context: {} },
    wantEntry: false,
  });
});

test('the short forms say what the JSON says', async () => {
  const call = {
    session: 'chat-17',
    agent: 'desk',
    run: 'r-9',
    undoes: 3,
    confirmation: 'abc.def',
    origins: { order_id: 'typed', amount: 'result:3.total', note: 'a "quoted", origin' },
    context: { order_paid: true, express: false },
    idempotency_key: 'k 1',
  };
  const short = [
    'Toolgate-Session: chat-17',
    'Toolgate-Agent: desk',
    'Toolgate-Run: r-9',
    'Toolgate-Undoes: 3',
    'Toolgate-Confirmation: abc.def',
    'Toolgate-Origins: order_id=typed, amount=result:3.total, note="a \\"quoted\\", origin"',
    'Toolgate-Context: order_paid, express=?0',
    'Idempotency-Key: "k 1"',
  ];
  const said = await headersSay(short);
  assert.deepEqual(said, await headersSay([`Toolgate-Call: ${base64url(call)}`]));
  assert.equal(said.members.idempotencyKey, 'k 1');
  assert.deepEqual(said.members.origins, call.origins);
});

test('short forms add to the JSON, and a key may come without quotes', async () => {
  const said = await headersSay([
    `Toolgate-Call: ${base64url({ turns: ['refund it'] })}`,
    'Toolgate-Session: s',
    'Idempotency-Key: 8e03978e-40d5-43dd-bc93-6894a57f9324',
    `Toolgate-Receipt: ${base64url({ format: 'qls-history/1' })}`,
    'Toolgate-Want: entry',
  ]);
  assert.deepEqual(said, {
    members: {
      origins: {},
      turns: ['refund it'],
      labels: {},
      context: {},
      session: 's',
      idempotencyKey: '8e03978e-40d5-43dd-bc93-6894a57f9324',
    },
    receipt: { format: 'qls-history/1' },
    wantEntry: true,
  });
});
