import assert from 'node:assert/strict';
import { test } from 'node:test';
import { inspect } from 'node:util';
import { loadGateway } from '../../gateway/catalogue/load-gateway.ts';
import { draftConfigText, loadConfig } from '../../gateway/config/load.ts';
import { renderProblems } from '../../gateway/config/problem.ts';
import { catalogueDeps } from '../../gateway/load/catalogue-deps.ts';
import { ENV, vector } from './places.ts';

test('a configuration with every word loads, typed and in the units that its names say', async () => {
  const { config, problems } = await loadConfig(vector('good/every-word.yaml'), { env: ENV, notYet: {} });
  assert.ok(config !== undefined, renderProblems(problems));
  assert.deepEqual(config.listen, {
    host: '127.0.0.1',
    port: 8443,
    loopback: true,
    tls: { certFile: vector('good/desk.pub'), keyFile: vector('good/desk.pub'), clientCaFile: vector('good/desk.pub') },
  });
  assert.equal(config.language, 'pt-BR');
  assert.equal(config.taintPolicy, 'refuse');
  assert.equal(config.keys.id, 'shop-2026');
  assert.equal(config.keys.signingFile, vector('good/gateway.pem'));
  assert.equal(config.keys.previous[0]?.notAfterMs, Date.UTC(2026, 11, 1));
  const [issuer] = config.keys.issuers;
  assert.equal(issuer?.publicKey.length, 32);
  assert.equal(issuer?.revokedAtMs, Date.UTC(2026, 5, 1, 10));
  assert.equal(config.store.target.kind, 'postgres');
  assert.equal(config.store.maxAnswerBytes, 2 * 1024 * 1024);
  assert.deepEqual(config.store.encryptionKey, new Uint8Array(32));
  assert.deepEqual(config.confirmations, { mode: 'held', ttlMs: 43_200_000, point: 'exact' });
  assert.deepEqual(config.sessions, { carryMs: 172_800_000, max: 10 });
  assert.deepEqual(config.runs, { onRefuse: 'leave', onFailure: 'leave', idleMs: 90_000 });
  assert.deepEqual(config.receipts, { maxAgeMs: 500, enforce: new Set(['schema']) });
  assert.deepEqual(config.agents.get('auditor'), { name: 'auditor', privilege: 40, defaults: {} });
  assert.deepEqual(
    config.credentials.map(({ name, host, agents }) => [name, host, [...agents]]),
    [
      ['key-0000000000000000', false, ['desk']],
      ['shop-app', true, ['billing']],
    ],
  );
  const [shop] = config.routes;
  assert.equal(shop?.upstream, 'http://127.0.0.1:9100/v2');
  assert.equal(shop?.limitBytes, 512 * 1024);
  assert.deepEqual(
    shop?.upstreamHeaders.map(({ name, value }) => [name, value.reveal()]),
    [
      ['authorization', 'Bearer swordfish'],
      ['x-literal', `$${'{NAME}'}`],
    ],
  );
  assert.equal(shop?.idempotencyRequired, true);
  assert.equal(config.routes[1]?.idempotencyRequired, false);
  assert.deepEqual(config.console, { enabled: true, url: 'https://gw.example' });
  assert.deepEqual(config.idempotency, { keepMs: 604_800_000, required: false });
  assert.equal(config.licence?.lapsed, 'refuse');
  assert.ok(config.files.includes(vector('good/desk.pub')));
  assert.ok(!config.files.includes(vector('good/logs/audit.jsonl')));
});

test('no way of printing a configuration shows a secret', async () => {
  const { config } = await loadConfig(vector('good/every-word.yaml'), { env: ENV, notYet: {} });
  assert.ok(config !== undefined);
  const printed =
    inspect(config.routes, { depth: 10 }) +
    JSON.stringify(config.routes) +
    `${config.routes[0]?.upstreamHeaders[0]?.value}`;
  assert.ok(printed.includes('[secret]'));
  assert.ok(!printed.includes('swordfish'));
});

test('a configuration with every word makes a catalogue', async () => {
  const { loaded, problems } = await loadGateway(
    vector('good/every-word.yaml'),
    { env: ENV, notYet: {} },
    catalogueDeps(),
  );
  assert.ok(loaded !== undefined, renderProblems(problems));
  const { catalogue, settings, facts, issuers } = loaded.built;
  const charge = catalogue.tools.get('shop/charge_card');
  assert.deepEqual(charge?.undo, {
    tool: 'shop/refund_card',
    with: { order: { from: 'arguments', path: 'order_id' }, charge: { from: 'result', path: 'charge_id' } },
    safeIfNothingHappened: true,
  });
  assert.deepEqual(charge?.after, [
    { tool: 'shop/get_order' },
    { tool: 'shop/get_order', bind: { order_id: 'order_id' } },
  ]);
  assert.deepEqual(charge?.notAfter, ['untrusted', 'shop/read_inbox']);
  assert.equal(charge?.atMost, undefined);
  assert.equal(charge?.privilege, 100);
  assert.equal(charge?.confirm, 'reasons');
  assert.deepEqual(charge?.idempotency, { argument: 'request_id' });
  assert.ok(!charge?.input.topLevel.includes('request_id'));
  assert.deepEqual(charge?.watched, ['charge_id']);
  assert.deepEqual(catalogue.tools.get('shop/get_order')?.watched, ['order_id', 'status']);
  assert.equal(catalogue.tools.get('shop/refund_card')?.atMost, 5);
  assert.equal(catalogue.tools.get('shop/refund_card')?.restores, true);
  const set = settings.get('shop/charge_card');
  assert.equal(set?.limits.length, 2);
  assert.equal(set?.outcome?.follow, 'shop/get_order');
  assert.equal(set?.retryAttempts, 1);
  assert.equal(set?.idempotencyRequired, true);
  assert.deepEqual(set?.references.get('get_order.order_id'), { tool: 'shop/get_order', field: 'order_id' });
  assert.equal(set?.timeoutMs, 10_000);
  assert.equal(settings.get('shop/get_order')?.timeoutMs, 1000);
  assert.deepEqual(facts.get('order_paid'), {
    name: 'order_paid',
    tool: 'shop/get_order',
    field: 'status',
    equals: 'paid',
    same: 'order_id',
  });
  assert.deepEqual(issuers[0]?.tools, ['shop/get_order']);
});

test('an integer that a double cannot hold keeps its digits', () => {
  const text = 'agents: {desk: {defaults: {id: 9007199254740993, hex: 0x10, half: 0.5}}}\nroutes: []\n';
  const { draft } = draftConfigText('numbers.yaml', text, { env: {} });
  assert.deepEqual(draft?.agents.get('desk')?.defaults, { id: 9_007_199_254_740_993n, hex: 16, half: 0.5 });
});

test('one key at two agents is one caller that must say which it is', () => {
  const key = `sha256:${'0'.repeat(64)}`;
  const text = `agents: {a: {credentials: [{key: "${key}", host: true}]}, b: {credentials: [{key: "${key}", host: true}]}}\nroutes: []\n`;
  const { draft, problems } = draftConfigText('one.yaml', text, { env: {} });
  assert.deepEqual(problems, []);
  assert.deepEqual(
    draft?.credentials.map(({ agents }) => [...agents]),
    [['a', 'b']],
  );
});
