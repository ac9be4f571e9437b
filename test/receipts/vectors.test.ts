import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { encodeBase64url } from '../../receipts/base64url.ts';
import { openConfirmation } from '../../receipts/confirmation.ts';
import { nodeCrypto } from '../../receipts/crypto-node.ts';
import { genesisLink } from '../../receipts/history-links.ts';
import { parseHistory } from '../../receipts/history-parse.ts';
import { type VerifyOptions, verifyHistory } from '../../receipts/history-verify.ts';
import { parseJson } from '../../receipts/json.ts';
import type { JsonArray, JsonObject, JsonValue } from '../../receipts/json-value.ts';
import { parsePublicKey } from '../../receipts/keys.ts';
import { makeVectors } from './make-vectors.ts';
import { h } from './oracle.ts';

const DIR = new URL('../vectors/receipts/v1/', import.meta.url);
const DOC = readFileSync(new URL('../../docs/formats.md', import.meta.url), 'utf8');

function frozen(name: string): JsonValue {
  return parseJson(readFileSync(new URL(name, DIR), 'utf8'));
}

const KEY = nodeCrypto.publicKey(parsePublicKey(String((frozen('key.json') as JsonObject)['public_key'])));
const OPTIONS: VerifyOptions = {
  crypto: nodeCrypto,
  now: 1_795_979_060_000,
  audience: 'shop-gateway',
  issuers: new Map([['gw-2026-11', { keys: [{ key: KEY }], limits: 'none' }]]),
};

function verified(value: JsonValue): ReturnType<typeof verifyHistory> {
  const carried = parseHistory(value);
  if (carried.kind === 'opening') throw new Error('an opening is no history');
  return verifyHistory(carried.history, OPTIONS);
}

test('what is written today is byte for byte what was frozen', () => {
  const made = makeVectors();
  assert.deepEqual([...made.keys()].sort(), readdirSync(DIR).sort());
  for (const [name, text] of made) assert.equal(readFileSync(new URL(name, DIR), 'utf8'), text, name);
});

test('the frozen history and its cuts verify, link by link', () => {
  const { history, steps, genesis } = frozen('history.json') as { [name: string]: JsonValue };
  const whole = verified(history ?? null);
  const links = (steps as JsonArray).map((step) => (step as JsonObject)['link']);
  assert.deepEqual(whole.links.map(encodeBase64url), links);
  assert.equal(encodeBase64url(genesisLink(nodeCrypto, whole.history)), genesis);
  const heads = (frozen('cut.json') as JsonArray).map((cut) => verified(cut).links.map(encodeBase64url)[0]);
  assert.deepEqual(heads, [links[0], links[3]]);
});

test('the frozen confirmation opens', () => {
  const { token, payload } = frozen('confirmation.json') as JsonObject;
  const opened = openConfirmation(String(token), [{ key: KEY }], OPTIONS.now);
  assert.deepEqual(opened, { state: 'open', confirmation: parseJson(String(payload)) });
});

test('the frozen digests are what the second implementation makes of their texts', () => {
  const { nonce, rows } = frozen('digests.json') as JsonObject;
  for (const row of rows as JsonArray) {
    const { domain, json, bytes, digest, without_nonce } = row as JsonObject;
    const part = json === undefined ? Buffer.from(String(bytes), 'base64url') : String(json);
    const parts = without_nonce === true ? [part] : [Buffer.from(String(nonce), 'base64url'), part];
    assert.equal(h(String(domain), ...parts).toString('base64url'), digest);
  }
});

test('the values printed in docs/formats.md are the frozen ones', () => {
  const { steps, genesis } = frozen('history.json') as JsonObject;
  const { payload, token } = frozen('confirmation.json') as JsonObject;
  const { rows } = frozen('digests.json') as JsonObject;
  const [first, , , last] = steps as readonly JsonObject[];
  const wanted: (JsonValue | undefined)[] = [
    genesis,
    ...(steps as readonly JsonObject[]).flatMap((step) => [step['link'], step['report_before']]),
    first?.['body'],
    first?.['token'],
    last?.['body'],
    last?.['token'],
    payload,
    String(token).split('.')[1],
    ...(rows as readonly JsonObject[]).map((row) => row['digest']),
    (frozen('key.json') as JsonObject)['public_key'],
  ];
  for (const value of wanted) assert.ok(DOC.includes(String(value)), String(value));
});
