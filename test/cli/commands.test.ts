import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { startShop } from '../../deploy/examples/shop/backend.ts';
import { credentialDigest } from '../../gateway/config/credential.ts';
import { startTestGateway, type TestGateway } from '../harness/gateway.ts';
import { start } from '../http/backends.ts';
import { toolgate } from './run.ts';

const SHOP = join(import.meta.dirname, '../../deploy/examples/shop/gateway.yaml');
const dir = mkdtempSync(join(tmpdir(), 'commands-'));
let gateway: TestGateway;
let shop: BreakableShop;

interface BreakableShop {
  readonly url: string;
  /** The next write's connection breaks after the request was taken. */
  breakNext(): void;
  close(): Promise<void>;
}

/** The shop behind a server that can lose an answer. */
async function startBreakable(): Promise<BreakableShop> {
  const behind = await startShop();
  let breaks = false;
  const server = createServer(async (request, response) => {
    if (breaks && request.method === 'POST') {
      breaks = false;
      request.socket.destroy();
      return;
    }
    const answer = await fetch(`${behind.url}${request.url}`, { method: request.method ?? 'GET' });
    response.writeHead(answer.status, { 'content-type': 'application/json' }).end(await answer.text());
  });
  const front = await start(server);
  return {
    url: front.origin,
    breakNext: () => {
      breaks = true;
    },
    close: async () => {
      await front.close();
      await behind.close();
    },
  };
}

before(async () => {
  shop = await startBreakable();
  gateway = await startTestGateway({
    agents: {
      desk: { credentials: [credentialDigest('desk-key')] },
      app: { credentials: [{ key: credentialDigest('app-key'), host: true }] },
    },
    approvers: [{ name: 'ana', credentials: [credentialDigest('ana-key')] }],
    routes: [
      {
        name: 'shop',
        upstream: shop.url,
        http: [
          { name: 'get_order', method: 'GET', path: '/orders/{order_id}' },
          { name: 'send_receipt', method: 'POST', path: '/orders/{order_id}/receipt', writes: true },
        ],
        tools: [{ name: 'get_order', at_most: [{ count: 10, per: 'day' }] }],
      },
    ],
  });
  process.env['TOOLGATE_APPROVER_KEY'] = 'ana-key';
});

after(async () => {
  delete process.env['TOOLGATE_APPROVER_KEY'];
  await gateway.close();
  await shop.close();
  rmSync(dir, { recursive: true, force: true });
});

test('a config is validated, and its tools listed', async () => {
  const valid = await toolgate('validate', SHOP);
  assert.equal(valid.status, 0);
  assert.match(valid.stdout, /valid: 8 tools on 1 route/);
  const faulty = join(dir, 'faulty.yaml');
  writeFileSync(faulty, 'agents: { desk: {} }\nrulebook: ./none.co\nroutes: [{ name: shop }]\n');
  const told = await toolgate('validate', faulty);
  assert.equal(told.status, 1);
  assert.match(told.stdout, /faulty\.yaml:3:\d+: error: /);
  assert.equal((JSON.parse((await toolgate('validate', faulty, '--json')).stdout) as { valid: boolean }).valid, false);
  assert.match((await toolgate('tools', SHOP)).stdout, /shop\/get_order +GET \/orders\/\{order_id\} +reads/);
  assert.equal((await toolgate('tools', faulty)).status, 1);
});

test('a rulebook with a fault makes a config invalid', async () => {
  const config = readFileSync(SHOP, 'utf8');
  writeFileSync(join(dir, 'shop.yaml'), `${config}\nrulebook: ./policy.co\n`);
  writeFileSync(join(dir, 'policy.co'), 'define flow\n  execute shop/nothing(\n');
  const { status, stdout } = await toolgate('validate', join(dir, 'shop.yaml'));
  assert.equal(status, 1);
  assert.match(stdout, /policy\.co:\d+:\d+: error: /);
});

test('one call is asked about offline, as a host or as an agent', async () => {
  const ask = (...args: string[]): ReturnType<typeof toolgate> => toolgate('check', '-c', SHOP, ...args);
  const read = await ask('--tool', 'get_order', '--args', '{"order_id":"4411"}', '--agent', 'desk');
  assert.deepEqual([read.status, read.stdout.split('\n')[0]], [0, 'allow: allow']);
  const refund = ['--tool', 'refund_card', '--args', '{"order_id":"4412","amount":15.5}', '--agent', 'billing'];
  const typed = [
    ...refund,
    '--origins',
    '{"order_id":"typed","amount":"typed"}',
    '--turn',
    'refund 15.50 on order 4412, please',
  ];
  assert.match((await ask(...typed)).stdout, /^confirm: write\n/);
  assert.match((await ask(...typed, '--as-agent')).stdout, /^confirm: argument_origin: /);
  const json = JSON.parse((await ask(...refund, '--json')).stdout) as { format: string; decision: string };
  assert.deepEqual([json.format, json.decision], ['qls-tool-check/1', 'confirm']);
  assert.equal((await ask('--tool', 'get_order', '--agent', 'nobody')).status, 2);
  assert.equal((await ask('--tool', 'get_order', '--args', '[]')).status, 2);
});

test('a rulebook is compiled and explained', async () => {
  const file = join(dir, 'rules.co');
  writeFileSync(
    file,
    'define subflow refunds\n  if $order_paid\n    execute refund_card\n  else\n    bot refuse refund\n    stop\n',
  );
  const compiled = await toolgate('rules', 'compile', file);
  assert.equal(compiled.status, compiled.stdout.includes('error') ? 1 : 0, compiled.stdout);
  const explained = await toolgate('rules', 'explain', file, '--tool', 'refund_card', '--fact', 'order_paid', '--json');
  assert.equal(explained.status, compiled.status);
  assert.equal((await toolgate('rules', 'explain', file, '--tool', 'x', '--fact', 'a=maybe')).status, 2);
});

test('a history is verified from a file, and one edit makes it invalid', async () => {
  await gateway.request('GET', '/shop/orders/4411', { key: 'app-key', headers: { 'toolgate-session': 'chat' } });
  const { text } = await gateway.request('GET', '/v1/sessions/chat', { key: 'app-key' });
  const file = join(dir, 'chat.json');
  writeFileSync(file, text);
  const key = join(gateway.folder, 'gateway.pem');
  const intact = await toolgate('history', 'verify', file, '--public-key', key);
  assert.equal(intact.status, 0, intact.stdout);
  assert.match(intact.stdout, /^intact: [^\n]*\n(.*\n)*0 +\S+ +allow +shop\/get_order +app +ran +allow\n/);
  assert.equal((await toolgate('history', 'verify', file)).status, 2);
  assert.equal((await toolgate('history', 'verify', file, '--public-key', key, '--audience', 'other')).status, 1);
  const edited = join(dir, 'edited.json');
  writeFileSync(edited, text.replace('"allow"', '"refuse"'));
  const told = await toolgate('history', 'verify', edited, '--public-key', key, '--json');
  assert.equal(told.status, 1);
  assert.deepEqual((JSON.parse(told.stdout) as { verdict: string }).verdict, 'invalid');
  writeFileSync(edited, '{"format":"qls-history/1","entries":[]}');
  assert.equal((await toolgate('history', 'verify', edited, '--public-key', key)).status, 2);
  assert.equal((await toolgate('history', 'verify', join(dir, 'absent.json'))).status, 2);
});

test('a receipt is compared with the call that it is to admit', async () => {
  const body = { tool: 'get_order', arguments: { order_id: '4412' }, session: 'receipt', history: undefined };
  const check = await gateway.request('POST', '/v1/check', {
    key: 'app-key',
    body: { ...body, history: { format: 'qls-history/1', session: 'receipt', entries: [] } },
  });
  const { history, entry } = check.json as { history: object; entry: object };
  const file = join(dir, 'receipt.json');
  writeFileSync(file, JSON.stringify({ ...history, entries: [entry] }));
  const verify = (...args: string[]): ReturnType<typeof toolgate> =>
    toolgate('receipt', 'verify', file, '--public-key', join(gateway.folder, 'gateway.pem'), ...args);
  const admits = await verify('--tool', 'shop/get_order', '--args', '{"order_id":"4412"}', '--agent', 'app');
  assert.equal(admits.status, 0, admits.stdout);
  assert.match(admits.stdout, /^admits: /);
  const other = await verify('--tool', 'shop/get_order', '--args', '{"order_id":"4413"}', '--agent', 'desk', '--json');
  assert.equal(other.status, 1);
  const { reason, why } = JSON.parse(other.stdout) as { reason: string; why: string };
  assert.deepEqual([reason, why], ['receipt_mismatch', 'it is for another call: arguments, agent']);
  assert.match((await verify()).stdout, /not compared +tool, args, agent/);
  assert.equal((await toolgate('receipt', 'verify', file)).status, 2);
});

test('a held call is listed and decided', async () => {
  const asked = await gateway.request('POST', '/shop/orders/4411/receipt', { key: 'desk-key' });
  assert.equal(asked.status, 428);
  const at = ['--url', gateway.url];
  const listed = await toolgate('approvals', 'list', ...at);
  assert.equal(listed.status, 0, listed.stderr);
  assert.match(
    listed.stdout,
    /shop\/send_receipt by desk \(credential \S+\)\n(.*\n)* {2}order_id = "4411" {2}\(model\)\n/,
  );
  const id = listed.stdout.split(' ')[0] ?? '';
  const approved = await toolgate('approvals', 'approve', id, ...at, '--note', 'asked');
  assert.equal(approved.stdout, `${id}: approved by ana\n`);
  assert.equal((await toolgate('approvals', 'deny', id, ...at)).status, 1);
  assert.equal((await toolgate('approvals', 'deny', 'none', ...at)).status, 1);
  const shown = JSON.parse((await toolgate('approvals', 'list', '--state', 'approved', '--json', ...at)).stdout) as {
    confirmations: { note: string }[];
  };
  assert.equal(shown.confirmations[0]?.note, 'asked');
  process.env['TOOLGATE_APPROVER_KEY'] = 'desk-key';
  assert.equal((await toolgate('approvals', 'list', ...at)).status, 2);
  process.env['TOOLGATE_APPROVER_KEY'] = 'ana-key';
  assert.match(
    (await toolgate('approvals', 'list', '--url', 'http://127.0.0.1:1')).stderr,
    /there is no answer of a gateway/,
  );
});

test('a call of which nobody knows is listed and settled', async () => {
  const at = ['--url', gateway.url];
  assert.match((await toolgate('outcomes', 'list', ...at)).stderr, /no outcome is unknown/);
  const asked = await gateway.request('POST', '/shop/orders/4413/receipt', { key: 'app-key' });
  const { check } = asked.json as { check: { confirmation: { token: string }; session: string } };
  const { session, confirmation } = check;
  const headers = { 'toolgate-session': session, 'toolgate-confirmation': confirmation.token };
  shop.breakNext();
  const sent = await gateway.request('POST', '/shop/orders/4413/receipt', { key: 'app-key', headers });
  assert.equal(sent.status, 504, sent.text);
  const listed = await toolgate('outcomes', 'list', '--json', ...at);
  const [unknown] = (JSON.parse(listed.stdout) as { outcomes: { id: string }[] }).outcomes;
  const id = unknown?.id ?? '';
  assert.match((await toolgate('outcomes', 'list', ...at)).stdout, new RegExp(`${id} +\\S+ +shop/send_receipt +app`));
  assert.equal((await toolgate('outcomes', 'settle', id, 'maybe', '--reason', 'x', ...at)).status, 2);
  const settled = await toolgate('outcomes', 'settle', id, 'ran', '--reason', 'seen', ...at);
  assert.equal(settled.stdout, `${id}: ran, says ana\n`);
  assert.equal((await toolgate('outcomes', 'settle', id, 'ran', '--reason', 'seen', ...at)).status, 1);
});

test('what is used of a limit is shown', async () => {
  const { status, stdout } = await toolgate('usage', '--url', gateway.url);
  assert.equal(status, 0);
  assert.match(stdout, /calls +day +10 +[1-9]\d* +\d+ +\S+ +shop\/get_order/);
});

test('a store is looked at while its gateway uses it', async () => {
  const sound = await toolgate('store', 'check', '-c', gateway.configFile);
  assert.equal(sound.status, 0, sound.stderr);
  assert.match(sound.stdout, /^sound: SQLite, schema \d+, not encrypted\nsessions +[1-9]/);
  const none = join(dir, 'none.yaml');
  writeFileSync(none, readFileSync(SHOP, 'utf8'));
  const { status, stderr } = await toolgate('store', 'check', '-c', none);
  assert.equal(status, 2);
  assert.match(stderr, /there is no store at/);
});

test('metrics are for approvers and hosts, and count what happened', async () => {
  assert.equal((await gateway.request('GET', '/metrics')).status, 401);
  assert.equal((await gateway.request('GET', '/metrics', { key: 'desk-key' })).status, 403);
  assert.equal((await gateway.request('GET', '/metrics', { key: 'app-key' })).status, 200);
  const { text } = await gateway.request('GET', '/metrics', { key: 'ana-key' });
  assert.match(
    text,
    /\ntoolgate_decisions_total\{tool="shop\/send_receipt",reason="argument_origin",decision="confirm"\} 2\n/,
  );
  assert.match(text, /\ntoolgate_outcomes_total\{tool="shop\/get_order",outcome="ran"\} [1-9]/);
  assert.match(text, /\ntoolgate_problems_total\{problem="no_credential"\} 1\n/);
  assert.match(text, /\ntoolgate_problems_total\{problem="wrong_role"\} [1-9]/);
});
