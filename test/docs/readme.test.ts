import assert from 'node:assert/strict';
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Command } from 'commander';
import { createProgram } from '../../gateway/cli/program.ts';
import { childEnv } from '../child-env.ts';

const ROOT = join(import.meta.dirname, '../..');
const README = readFileSync(join(ROOT, 'README.md'), 'utf8');
/** What installs, runs without end or is this very run: only that such a script exists is looked at. */
const NOT_RUN = /^npm (?:ci|start|test|run check)$/;

interface Block {
  readonly language: string;
  readonly text: string;
}

const BLOCKS: readonly Block[] = [...README.matchAll(/^```(\w*)\n([^`]*?)^```$/gm)].map(([, language, text]) => ({
  language: language ?? '',
  text: text ?? '',
}));

const folder = mkdtempSync(join(tmpdir(), 'readme-'));
let shop: ChildProcess;
let url = '';

before(async () => {
  const command = `exec ${scriptOf('start')} --port 0 --shop-port 0 --folder '${folder}'`;
  shop = spawn('bash', ['-c', command], {
    cwd: ROOT,
    stdio: ['ignore', 'pipe', 'inherit'],
    env: childEnv(),
  });
  let said = '';
  shop.stdout?.on('data', (chunk) => (said += String(chunk)));
  for (let waited = 0; url === '' && waited < 60_000; waited += 20) {
    await sleep(20);
    url = /Toolgate at (\S+) in front/.exec(said)?.[1] ?? '';
  }
  assert.notEqual(url, '', said);
});

after(async () => {
  const ended = once(shop, 'exit');
  shop.kill('SIGTERM');
  assert.deepEqual(await ended, [0, null]);
  rmSync(folder, { recursive: true, force: true });
});

/** What npm would run, with the Node that runs this. */
function scriptOf(name: string): string {
  const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
    scripts: Record<string, string>;
  };
  const script = scripts[name] ?? '';
  assert.match(script, /^node /);
  return script.replace(/^node/, `'${process.execPath}'`);
}

/** Runs a block as a person would paste it, against the shop that was started for this test. */
function run(text: string): Promise<string> {
  const here = text
    .replaceAll('http://127.0.0.1:8080', url)
    .replaceAll('deploy/examples/shop/data/gateway.pem', join(folder, 'gateway.pem'))
    // What the script is, without npm's own start for each of them.
    .replaceAll('npm run -s toolgate --', scriptOf('toolgate'));
  return new Promise((resolve, reject) => {
    execFile('bash', ['-euo', 'pipefail', '-c', here], { cwd: ROOT, env: childEnv() }, (error, stdout, stderr) => {
      if (error === null) resolve(stdout);
      else reject(new Error(`${here}\nended with ${error.code}:\n${stdout}${stderr}`));
    });
  });
}

test('every command of the README runs, and the answers that it shows are the real ones', async () => {
  let ran = 0;
  let said = '';
  for (const { language, text } of BLOCKS) {
    if (language === 'json') assert.deepEqual(JSON.parse(said), JSON.parse(text));
    if (language !== 'sh') continue;
    const lines = text.trim().split('\n');
    const kept = lines.filter((line) => !NOT_RUN.test(line));
    if (kept.length === 0) continue;
    said = await run(kept.join('\n'));
    assert.notEqual(said, '', text);
    ran += 1;
  }
  assert.ok(ran >= 5);
  const history = await run('curl -s http://127.0.0.1:8080/v1/sessions/readme');
  const { entries } = JSON.parse(history) as { entries: { decision: string; outcome?: string }[] };
  assert.deepEqual(
    entries.map(({ decision, outcome }) => [decision, outcome]),
    [
      ['allow', 'ran'],
      ['refuse', undefined],
      ['confirm', undefined],
      ['allow', 'ran'],
    ],
  );
});

test('the scripts that the README names are there', () => {
  const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { scripts: object };
  for (const [, name] of README.matchAll(/npm run (?:-s )?([a-z:]+)/g))
    assert.ok(name !== undefined && name in scripts, name);
  assert.ok('start' in scripts && 'test' in scripts);
});

test('every command and option of the command line that a page names exists', () => {
  const pages = ['README.md', 'SECURITY.md', 'docs/api.md', 'docs/security-model.md'];
  for (const page of pages) {
    const text = readFileSync(join(ROOT, page), 'utf8');
    for (const [line] of text.matchAll(/^toolgate [^\n]+$|(?<=run -s toolgate -- )[^\n`]+|(?<=`toolgate )[^\n`]+/gm)) {
      const words = line.replace(/^toolgate /, '').split(' ');
      let command: Command = createProgram();
      for (const word of words) {
        const next = command.commands.find((each) => each.name() === word);
        if (next === undefined) break;
        command = next;
      }
      if (!words[0]?.startsWith('-')) assert.notEqual(command.name(), 'toolgate', `${page}: ${line}`);
      for (const option of words.filter((word) => word.startsWith('--') && word !== '--help')) {
        assert.ok(
          command.options.some(({ long }) => long === option),
          `${page}: ${line}: ${option}`,
        );
      }
    }
  }
});
