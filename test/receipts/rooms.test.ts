import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';

const DIR = new URL('../../receipts/', import.meta.url);

test('the room runs in any runtime: one file alone knows Node', () => {
  const users = readdirSync(DIR).filter((name) => {
    const text = readFileSync(new URL(name, DIR), 'utf8');
    return /from '(?!\.\/|@noble\/)|\bBuffer\.|\bprocess\.|\brequire\(/.test(text);
  });
  assert.deepEqual(users, ['crypto-node.ts']);
});

test('nothing but the server imports that file', () => {
  const users = readdirSync(DIR).filter((name) =>
    readFileSync(new URL(name, DIR), 'utf8').includes("'./crypto-node.ts'"),
  );
  assert.deepEqual(users, []);
});
