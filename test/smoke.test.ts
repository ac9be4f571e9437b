import assert from 'node:assert/strict';
import { test } from 'node:test';

test('the pinned runtime runs the tests', () => {
  assert.match(process.version, /^v24\./);
});
