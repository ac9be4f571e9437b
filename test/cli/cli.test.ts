import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { hash } from 'node:crypto';
import { copyFileSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import type { Command } from 'commander';
import { createProgram } from '../../gateway/cli/program.ts';
import { decision, openLog } from '../audit/support.ts';
import { childEnv } from '../child-env.ts';
import { type Ran, toolgate } from './run.ts';

/** The source: what the first sentence to an old Node is. */
const MAIN = join(import.meta.dirname, '../../gateway/cli/main.ts');
const dir = mkdtempSync(join(tmpdir(), 'cli-'));
const cwd = process.cwd();
process.chdir(dir);
after(() => {
  process.chdir(cwd);
  rmSync(dir, { recursive: true, force: true });
});

/** A process of its own: what a shell sees. */
function spawnToolgate(...args: string[]): Ran {
  return spawnSync(process.execPath, [MAIN, ...args], { encoding: 'utf8', cwd: dir, env: childEnv() });
}

function everyCommand(command: Command): Command[] {
  return [command, ...command.commands.flatMap(everyCommand)];
}

test('every command says what it does, and every one that runs shows an example', async () => {
  for (const command of everyCommand(createProgram())) {
    let help = '';
    command.configureOutput({ writeOut: (text) => (help += text) });
    command.outputHelp();
    assert.notEqual(command.description(), '', command.name());
    if (command.commands.length === 0) assert.match(help, /Examples:\n {2}toolgate /, command.name());
  }
});

test('help and version end with 0', async () => {
  assert.equal(spawnToolgate('--help').status, 0);
  assert.equal((await toolgate('audit', 'verify', '--help')).status, 0);
  const { status, stdout } = await toolgate('--version');
  assert.equal(status, 0);
  assert.match(stdout, /^\d+\.\d+\.\d+\n$/);
});

test('an unknown command is an error that suggests the nearest', async () => {
  const { status, stderr } = await toolgate('audti');
  assert.equal(status, 2);
  assert.match(stderr, /unknown command 'audti'/);
  assert.match(stderr, /Did you mean audit\?/);
  assert.equal((await toolgate('audit', 'verfy')).status, 2);
  assert.equal((await toolgate()).status, 2);
});

test('an unknown option is an error that suggests the nearest', async () => {
  const { status, stderr } = await toolgate('audit', 'verify', 'x', '--public-kee', 'y');
  assert.equal(status, 2);
  assert.match(stderr, /--public-key/);
});

test('a wrong Node gives one clear sentence', async () => {
  // As an old Node would see it: plain JavaScript, and the version read before anything is imported.
  const plain = join(dir, 'main.mjs');
  copyFileSync(MAIN, plain);
  const older = `data:text/javascript,Object.defineProperty(process,"versions",{value:{...process.versions,node:"20.1.0"}})`;
  const child = spawnSync(process.execPath, ['--import', older, plain, '--help'], { encoding: 'utf8' });
  assert.equal(child.status, 2);
  assert.match(child.stderr, /^toolgate needs Node 24\.9 or newer, and this is Node 20\.1\.0[^\n]*\n$/);
  assert.equal(child.stdout, '');
});

test('a new pair of keys is for its owner alone, and is never written over', async () => {
  const made = await toolgate('keys', 'new', 'gateway', '--json');
  assert.equal(made.status, 0, made.stderr);
  const files = JSON.parse(made.stdout) as { signing_key: string; public_key: string; key_id: string };
  assert.equal(statSync(join(dir, files.signing_key)).mode & 0o777, 0o600);
  const text = readFileSync(join(dir, files.signing_key), 'utf8');
  const again = await toolgate('keys', 'new', 'gateway');
  assert.equal(again.status, 1);
  assert.match(again.stderr, /is there already/);
  assert.equal(readFileSync(join(dir, files.signing_key), 'utf8'), text);
  for (const file of [files.signing_key, files.public_key]) {
    const shown = JSON.parse((await toolgate('keys', 'show', file, '--json')).stdout) as {
      key_id: string;
      pem: string;
    };
    assert.equal(shown.key_id, files.key_id);
    assert.equal(shown.pem, readFileSync(join(dir, files.public_key), 'utf8'));
  }
  assert.ok(!(await toolgate('keys', 'show', files.signing_key)).stdout.includes('PRIVATE'));
});

test('a name that leads out of the folder is no name for keys', async () => {
  for (const name of ['../gateway', 'a/b', '.hidden', 'a\\b', ''])
    assert.equal((await toolgate('keys', 'new', name)).status, 2, name);
});

test('what is no key is told by what is wrong with it', async () => {
  writeFileSync(join(dir, 'no.pem'), 'no key');
  const { status, stderr } = await toolgate('keys', 'show', 'no.pem');
  assert.equal(status, 2);
  assert.match(stderr, /error: `no\.pem`: /);
});

test('a new credential is printed with the digest of itself', async () => {
  const { key, digest } = JSON.parse((await toolgate('credential', 'new', '--json')).stdout) as {
    key: string;
    digest: string;
  };
  assert.equal(digest, `sha256:${hash('sha256', key, 'hex')}`);
  const text = (await toolgate('credential', 'new', '--host', '--name', 'shop-app')).stdout;
  assert.match(text, /credentials: \[\{key: "sha256:[0-9a-f]{64}", host: true, name: shop-app\}\]/);
});

test('a log is verified and looked through from the command line', async () => {
  const file = join(dir, 'audit.jsonl');
  const made = JSON.parse((await toolgate('keys', 'new', 'log', '--json')).stdout) as {
    signing_key: string;
    public_key: string;
  };
  const { nodeCrypto } = await import('../../receipts/crypto-node.ts');
  const { parseSigningKey } = await import('../../receipts/keys.ts');
  const signer = nodeCrypto.signingKey(parseSigningKey(readFileSync(join(dir, made.signing_key), 'utf8')));
  const log = await openLog(file, { signer });
  await log.append(decision(0));
  await log.append(decision(1, { session: 'chat\u001b[31m', decision: 'refuse', reasons: ['order_rule'] }));
  await log.close();

  const intact = await toolgate('audit', 'verify', file, '--public-key', made.public_key);
  assert.equal(intact.status, 0, intact.stdout);
  const beside = await toolgate('audit', 'verify', file, `${file}.state`, '--public-key', made.public_key);
  assert.equal(beside.status, 0, beside.stdout);
  const anchor = /anchor +(\S+)/.exec(intact.stdout)?.[1] ?? '';
  assert.equal((await toolgate('audit', 'verify', file, '--anchor', anchor)).status, 0);
  assert.equal((await toolgate('audit', 'verify', file)).status, 2);
  assert.equal((await toolgate('audit', 'verify', join(dir, 'absent'), '--public-key', made.public_key)).status, 2);
  assert.equal((await toolgate('audit', 'verify', file, '--anchor', 'nonsense')).status, 2);

  const refused = await toolgate('audit', 'query', file, '--decision', 'refuse');
  assert.match(refused.stdout, /refuse .*shop\/get_order .*order_rule/);
  assert.ok(!refused.stdout.includes('\u001b'));
  assert.equal(
    (await toolgate('audit', 'query', file, '--event', 'decision', '--limit', '1', '--json')).stdout.split('\n').length,
    2,
  );
  assert.equal((await toolgate('audit', 'query', file, '--since', '1h')).stdout.split('\n').length, 5);
  assert.equal((await toolgate('audit', 'query', file, '--until', '1h')).stdout, '');
  assert.equal((await toolgate('audit', 'query', file, '--since', 'soon')).status, 2);
  assert.equal((await toolgate('audit', 'query', file, '--decision', 'maybe')).status, 2);

  writeFileSync(file, readFileSync(file, 'utf8').replace('"refuse"', '"allow"'));
  const tampered = spawnToolgate('audit', 'verify', file, '--public-key', made.public_key, '--json');
  assert.equal(tampered.status, 1);
  const report = JSON.parse(tampered.stdout) as { verdict: string; fault: { line: number; seq: number } };
  assert.equal(report.verdict, 'tampered');
  assert.deepEqual([report.fault.line, report.fault.seq], [3, 2]);
});

test('a reader that has seen enough ends a query', async () => {
  const file = join(dir, 'long.jsonl');
  const log = await openLog(file);
  for (let i = 0; i < 200; i++) await Promise.all(Array.from({ length: 100 }, (_, step) => log.append(decision(step))));
  await log.close();
  const run = `"$0" "$1" audit query "$2" | head -n 1; echo "$\{PIPESTATUS[0]}"`;
  const child = spawnSync('bash', ['-c', run, process.execPath, MAIN, file], { encoding: 'utf8', env: childEnv() });
  assert.match(child.stdout, /^\S+ open\n0\n$/);
  assert.equal(child.stderr, '');
});
