import assert from 'node:assert/strict';
import { existsSync, globSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';

test('the pinned runtime runs the tests', () => {
  assert.match(process.version, /^v24\./);
});

test('every folder with tests has the file by which `npm test` runs them', () => {
  const files = globSync('*/**/*.test.ts', { cwd: import.meta.dirname });
  assert.ok(files.length > 100, `${files.length}`);
  const left = files.filter((file) => !existsSync(join(import.meta.dirname, dirname(file), 'all.ts')));
  assert.deepEqual(left, []);
});
