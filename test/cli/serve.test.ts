import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { childEnv } from '../child-env.ts';
import { programFile } from '../programs.ts';

const MAIN = programFile('gateway/cli/main.ts');
const dir = mkdtempSync(join(tmpdir(), 'serve-'));
const children = new Set<ChildProcess>();
/** Answers when `release` is called; until then a call is under way. */
let backend: Server;
let port = 0;
const waiting: (() => void)[] = [];

before(async () => {
  backend = createServer((request, response) => {
    const answer = (): void => void response.end('{"order_id":"1"}');
    response.setHeader('content-type', 'application/json');
    if (request.url?.startsWith('/slow') === true) waiting.push(answer);
    else answer();
  }).listen(0, '127.0.0.1');
  await once(backend, 'listening');
  port = (backend.address() as AddressInfo).port;
});

after(() => {
  for (const child of children) child.kill('SIGKILL');
  backend.close();
  backend.closeAllConnections();
  rmSync(dir, { recursive: true, force: true });
});

interface Serving {
  readonly child: ChildProcess;
  readonly url: string;
  readonly file: string;
  readonly said: { text: string };
  readonly until: (pattern: RegExp) => Promise<void>;
  readonly ended: Promise<number | null>;
}

function configText(name: string, more = ''): string {
  return `listen: 127.0.0.1:0
keys: { signing: ./${name}.pem }
store: ./${name}.db
audit: { file: ./${name}.jsonl }
agents: { desk: {} }
routes:
  - name: shop
    upstream: http://127.0.0.1:${port}
    http:
      - { name: get_order, method: GET, path: "/orders/{order_id}" }
      - { name: slow, method: GET, path: "/slow/{order_id}" }
${more}`;
}

const MORE = '      - { name: check_stock, method: GET, path: "/stock/{sku}" }\n';

async function serve(name: string, ...args: string[]): Promise<Serving> {
  const file = join(dir, `${name}.yaml`);
  writeFileSync(file, configText(name));
  const child = spawn(process.execPath, [MAIN, 'serve', '-c', file, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: childEnv(),
  });
  children.add(child);
  const said = { text: '' };
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (chunk) => (said.text += String(chunk)));
  const ended = new Promise<number | null>((resolve) => {
    child.once('exit', (code) => {
      children.delete(child);
      resolve(code);
    });
  });
  const until = async (pattern: RegExp): Promise<void> => {
    for (let waited = 0; !pattern.test(said.text); waited += 20) {
      if (waited > 60_000 || child.exitCode !== null) assert.match(said.text, pattern);
      await sleep(20);
    }
  };
  await until(/toolgate listens on \S+/);
  const url = /toolgate listens on (\S+)/.exec(said.text)?.[1] ?? '';
  return { child, url, file, said, until, ended };
}

async function toolNames(url: string): Promise<string[]> {
  const { tools } = (await (await fetch(`${url}/v1/tools`)).json()) as { tools: { name: string }[] };
  return tools.map(({ name }) => name);
}

test('serve says where it listens, reloads on SIGHUP as a whole or not at all, and ends with 0', async () => {
  const { child, url, file, said, until, ended } = await serve('hup');
  assert.match(said.text, /no credentials are configured/);
  assert.match(said.text, /2 tools on 1 route/);
  writeFileSync(file, configText('hup', MORE));
  child.kill('SIGHUP');
  await until(/the configuration was reloaded \(3 tools\)/);
  assert.deepEqual(await toolNames(url), ['shop/get_order', 'shop/slow', 'shop/check_stock']);

  writeFileSync(file, configText('hup', '      - { name: broken, method: POST, path: /x }\n'));
  child.kill('SIGHUP');
  await until(/hup\.yaml:\d+:\d+: error: .*\[writes_not_said\]\n(.*\n)*.*the old one stays in force/);
  writeFileSync(file, configText('hup').replace('./hup.db', './other.db'));
  child.kill('SIGHUP');
  await until(/\[needs_restart\]/);
  assert.equal((await toolNames(url)).length, 3);
  assert.equal((await fetch(`${url}/shop/orders/1`)).status, 200);
  const metrics = await (await fetch(`${url}/metrics`)).text();
  assert.match(metrics, /\ntoolgate_config_reloads_total\{result="taken"\} 2\n/);
  assert.match(metrics, /\ntoolgate_config_reloads_total\{result="refused"\} 2\n/);

  child.kill('SIGTERM');
  assert.equal(await ended, 0);
});

test('serve --watch takes a changed file by itself', async () => {
  const { child, url, file, until, ended } = await serve('watch', '--watch', '--log-level', 'silent');
  writeFileSync(file, configText('watch', MORE));
  await until(/the configuration was reloaded \(3 tools\)/);
  assert.equal((await toolNames(url)).length, 3);
  child.kill('SIGINT');
  assert.equal(await ended, 0);
});

test('SIGTERM lets an accepted call finish, and /readyz says 503 while the lame duck still serves', async () => {
  const { child, url, ended } = await serve('drain', '--lame-duck', '2s');
  const call = fetch(`${url}/shop/slow/1`);
  while (waiting.length === 0) await sleep(10);
  child.kill('SIGTERM');
  let status = 200;
  for (let i = 0; status !== 503 && i < 200; i++) {
    status = (await fetch(`${url}/readyz`)).status;
    await sleep(10);
  }
  assert.equal(status, 503);
  assert.equal((await fetch(`${url}/shop/orders/1`)).status, 200);
  // The lame duck is gone when nobody new is let in; who was accepted before still gets an answer.
  const open = (): Promise<boolean> =>
    fetch(`${url}/readyz`).then(
      () => true,
      () => false,
    );
  while (await open()) await sleep(20);
  waiting.pop()?.();
  assert.equal((await call).status, 200);
  assert.equal(await ended, 0);
});

test('a second signal ends at once', async () => {
  const { child, url, until, ended } = await serve('twice');
  const call = fetch(`${url}/shop/slow/1`);
  call.catch(() => undefined);
  while (waiting.length === 0) await sleep(10);
  child.kill('SIGTERM');
  await until(/a second signal ends at once/);
  child.kill('SIGTERM');
  assert.equal(await ended, 1);
  await assert.rejects(call);
  waiting.pop()?.();
});

test('SIGUSR2 goes on in a new audit file', async () => {
  const { child, url, until, ended } = await serve('log');
  await fetch(`${url}/shop/orders/1`);
  renameSync(join(dir, 'log.jsonl'), join(dir, 'log.jsonl.1'));
  child.kill('SIGUSR2');
  await until(/the audit log was reopened/);
  await fetch(`${url}/shop/orders/2`);
  child.kill('SIGTERM');
  assert.equal(await ended, 0);
  assert.match(readFileSync(join(dir, 'log.jsonl'), 'utf8'), /"act":"stop"/);
  assert.match(readFileSync(join(dir, 'log.jsonl.1'), 'utf8'), /"act":"start"/);
});

async function failing(text: string, name: string): Promise<{ readonly code: number | null; readonly said: string }> {
  const file = join(dir, `${name}.yaml`);
  writeFileSync(file, text);
  const child = spawn(process.execPath, [MAIN, 'serve', '-c', file], {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: childEnv(),
  });
  let said = '';
  child.stderr.on('data', (chunk) => (said += String(chunk)));
  const [code] = (await once(child, 'exit')) as [number | null];
  return { code, said };
}

test('a start that fails names the place in the file and what to do', async () => {
  const taken = await failing(configText('taken').replace('127.0.0.1:0', `127.0.0.1:${port}`), 'taken');
  assert.equal(taken.code, 1);
  assert.match(
    taken.said,
    /taken\.yaml:1:9: `127\.0\.0\.1:\d+` cannot be listened on: another process listens there; end it/,
  );
  writeFileSync(join(dir, 'text.db'), 'this is no database, and it is long enough to be looked at as one'.repeat(20));
  const store = await failing(configText('text'), 'text');
  assert.equal(store.code, 1);
  assert.match(store.said, /text\.yaml:3:8: the store `\S+text\.db` cannot be opened: /);
  const faulty = await failing(configText('faulty').replace('agents:', 'agent:'), 'faulty');
  assert.equal(faulty.code, 1);
  assert.match(faulty.said, /faulty\.yaml:5:1: error: /);
});
