import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { pathToFileURL } from 'node:url';

const ROOT = join(import.meta.dirname, '../..');
// Inside the checkout, so that the built program finds its packages.
mkdirSync(join(ROOT, '.tmp'), { recursive: true });
const out = mkdtempSync(join(ROOT, '.tmp/build-'));
after(() => rmSync(out, { recursive: true, force: true }));

test('the built program runs without the sources: its schema, its store worker and its page are in it', async () => {
  const tsc = join(ROOT, 'node_modules/typescript/bin/tsc');
  const built = spawnSync(process.execPath, [tsc, '-p', 'tsconfig.build.json', '--outDir', out], {
    cwd: ROOT,
    encoding: 'utf8',
  });
  assert.equal(built.status, 0, built.stdout);
  const { bin, exports, scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
    bin: { toolgate: string };
    exports: Record<string, string>;
    scripts: { build: string };
  };
  // What the compiler does not copy, the last step of the build does.
  const [, step = ''] = /node -e "([^"]*)"$/.exec(scripts.build) ?? [];
  const copied = spawnSync(process.execPath, ['-e', step.replace("'dist/", `'${out}/`)], {
    cwd: ROOT,
    encoding: 'utf8',
  });
  assert.equal(copied.status, 0, copied.stderr);
  const main = join(out, bin.toolgate.replace('./dist/', ''));
  assert.match(readFileSync(main, 'utf8'), /^#!\/usr\/bin\/env node\n/);
  assert.ok(existsSync(join(out, (exports['./gateway.schema.json'] ?? '').replace('./dist/', ''))));
  const config = join(ROOT, 'deploy/examples/shop/gateway.yaml');
  const args = [main, 'check', '-c', config, '--agent', 'desk', '--tool', 'get_order', '--args', '{"order_id":"1"}'];
  const asked = spawnSync(process.execPath, args, { encoding: 'utf8' });
  assert.equal(asked.stdout.split('\n')[0], 'allow: allow', asked.stderr);
  const { readConsole } = (await import(pathToFileURL(join(out, 'gateway/api/console.js')).href)) as {
    readConsole: () => ReadonlyMap<string, unknown>;
  };
  const sources = readdirSync(join(ROOT, 'gateway/console'));
  assert.deepEqual([...readConsole().keys()].sort(), sources.sort());
});
