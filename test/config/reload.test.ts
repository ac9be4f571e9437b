import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { loadGateway } from '../../gateway/catalogue/load-gateway.ts';
import { reload } from '../../gateway/catalogue/reload.ts';
import { digestOf, watchConfig } from '../../gateway/config/watch.ts';
import { catalogueDeps } from '../../gateway/load/catalogue-deps.ts';
import { lookAtServers } from '../../gateway/mcp/look-at-servers.ts';
import { filesOf, readWhole } from '../../gateway/serve/whole-config.ts';

const TEXT = `listen: 127.0.0.1:8080
agents: {desk: {}}
routes:
  - name: shop
    upstream: http://127.0.0.1:9100
    upstream_headers: {Authorization: "file:token"}
    http: [{name: get_order, method: GET, path: "/orders/{order_id}"}]
`;

test('a reload gives the whole next configuration, or nothing', async (context) => {
  const path = mkdtempSync(join(tmpdir(), 'toolgate-config-'));
  context.after(() => rmSync(path, { recursive: true }));
  const file = join(path, 'gateway.yaml');
  const deps = catalogueDeps();
  writeFileSync(join(path, 'token'), 'one\n');
  writeFileSync(file, TEXT);
  const first = (await loadGateway(file, { env: {} }, deps)).loaded;
  assert.ok(first !== undefined);

  writeFileSync(join(path, 'token'), 'two\n');
  writeFileSync(file, TEXT.replace('/orders/{order_id}', '/order/{order_id}'));
  const { next, problems } = await reload(first, { env: {} }, deps);
  assert.deepEqual(problems, []);
  assert.equal(next?.built.routes[0]?.operations[0]?.pathTemplate, '/order/{order_id}');
  assert.equal(next?.config.routes[0]?.upstreamHeaders[0]?.value.reveal(), 'two');
  assert.equal(first.built.routes[0]?.operations[0]?.pathTemplate, '/orders/{order_id}');

  writeFileSync(file, TEXT.replace('method: GET', 'method: POST'));
  const faulty = await reload(first, { env: {} }, deps);
  assert.equal(faulty.next, undefined);
  assert.ok(
    faulty.problems.some(({ code, line, column }) => code === 'writes_not_said' && line === 7 && column === 12),
  );

  writeFileSync(file, TEXT.replace('8080', '8081'));
  const moved = await reload(first, { env: {} }, deps);
  assert.equal(moved.next, undefined);
  assert.deepEqual(
    moved.problems.map(({ code, line, column }) => [code, line, column]),
    [['needs_restart', 1, 9]],
  );

  rmSync(file);
  assert.equal((await reload(first, { env: {} }, deps)).next, undefined);
});

test('a watch tells a change of content once, also of a file that is replaced or that the configuration refers to', async (context) => {
  const path = mkdtempSync(join(tmpdir(), 'toolgate-config-'));
  context.after(() => rmSync(path, { recursive: true }));
  const [file, token] = [join(path, 'gateway.yaml'), join(path, 'token')];
  writeFileSync(file, TEXT);
  writeFileSync(token, 'one');
  let told = 0;
  const watch = watchConfig([file, token], () => (told += 1), { debounceMs: 20, pollMs: 50 });
  context.after(() => watch.close());
  const until = async (count: number): Promise<void> => {
    for (let waited = 0; told < count && waited < 60_000; waited += 20) await sleep(20);
    await sleep(120);
    assert.equal(told, count);
  };
  await watch.ready;
  writeFileSync(file, TEXT);
  await until(0);
  writeFileSync(join(path, 'new'), `${TEXT}# changed\n`);
  renameSync(join(path, 'new'), file);
  await until(1);
  writeFileSync(token, 'two');
  await until(2);
  writeFileSync(join(path, 'other'), 'of no concern');
  await until(2);
  watch.follow([file, join(path, 'other')]);
  await watch.ready;
  writeFileSync(join(path, 'other'), 'of concern now');
  await until(3);
});

test('a watch tells a change of any rule file of a folder: further in, and linked as Kubernetes links a mounted one', async (context) => {
  const path = mkdtempSync(join(tmpdir(), 'toolgate-config-'));
  context.after(() => rmSync(path, { recursive: true }));
  const rules = join(path, 'rules');
  mkdirSync(join(rules, 'parts'), { recursive: true });
  for (const version of ['..one', '..two']) mkdirSync(join(rules, version));
  writeFileSync(join(rules, 'parts', 'gate.co'), 'define flow a\n  execute t\n');
  writeFileSync(join(rules, '..one', 'policy.co'), 'define flow b\n  execute t\n');
  writeFileSync(join(rules, '..two', 'policy.co'), 'define flow c\n  execute t\n');
  symlinkSync('..one', join(rules, '..data'));
  symlinkSync('..data/policy.co', join(rules, 'policy.co'));
  writeFileSync(join(rules, 'notes.md'), 'one');
  const before = await digestOf([rules]);
  writeFileSync(join(rules, 'notes.md'), 'two');
  assert.equal(await digestOf([rules]), before);
  symlinkSync('..two', join(rules, 'next'));
  renameSync(join(rules, 'next'), join(rules, '..data'));
  const linked = await digestOf([rules]);
  assert.notEqual(linked, before);
  writeFileSync(join(rules, 'parts', 'gate.co'), 'define flow a\n  execute u\n');
  assert.notEqual(await digestOf([rules]), linked);
});

test('what a rulebook imports is a file of the configuration', async (context) => {
  const path = mkdtempSync(join(tmpdir(), 'toolgate-config-'));
  context.after(() => rmSync(path, { recursive: true }));
  const file = join(path, 'gateway.yaml');
  writeFileSync(file, `${TEXT}rulebook: ./policy.co\n`);
  writeFileSync(join(path, 'token'), 'one');
  writeFileSync(join(path, 'policy.co'), 'import parts.gate\n\nflow main\n  await gate\n  await GetOrderAction()\n');
  mkdirSync(join(path, 'parts'));
  writeFileSync(join(path, 'parts', 'gate.co'), 'flow gate\n  if not $ok\n    abort\n');
  const whole = await lookAtServers((provider) => readWhole(file, {}, provider));
  assert.ok(filesOf(whole).includes(join(path, 'parts', 'gate.co')));
});
