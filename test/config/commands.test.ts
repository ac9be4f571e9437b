import assert from 'node:assert/strict';
import { test } from 'node:test';
import { loadGateway } from '../../gateway/catalogue/load-gateway.ts';
import { renderTools } from '../../gateway/catalogue/render-tools.ts';
import { validateConfig } from '../../gateway/catalogue/validate.ts';
import { credentialDigest, newCredential } from '../../gateway/config/credential.ts';
import { catalogueDeps } from '../../gateway/load/catalogue-deps.ts';
import { ENV, vector } from './places.ts';

test('validate ends 0 and sums up where the configuration is good', async () => {
  const path = vector('good/small.yaml');
  const { text, exitCode } = await validateConfig(path, { env: {} }, catalogueDeps());
  assert.equal(exitCode, 0);
  assert.equal(text, `${path}: valid: 1 tool on 1 route, 0 warnings\n`);
});

test('validate ends 1 and tells every fault by file, line and column', async () => {
  const path = vector('faulty/names.yaml');
  const { text, exitCode } = await validateConfig(path, { env: {} }, catalogueDeps());
  assert.equal(exitCode, 1);
  assert.ok(
    text.startsWith(
      `${path}:9:30: error: several servers offer \`both\`; write \`b/both\` or \`c/both\` [ambiguous_tool_name]\n`,
    ),
  );
  assert.ok(text.endsWith(`${path}: not valid: 7 errors, 1 warning\n`));
  const json = await validateConfig(path, { env: {}, json: true }, catalogueDeps());
  const parsed: unknown = JSON.parse(json.text);
  assert.equal((parsed as { problems: unknown[] }).problems.length, 8);
});

test('the table of tools shows what was said of each, the waived question too', async () => {
  const { loaded } = await loadGateway(vector('good/every-word.yaml'), { env: ENV, notYet: {} }, catalogueDeps());
  assert.ok(loaded !== undefined);
  const lines = renderTools(loaded.built, { json: false }).split('\n');
  assert.match(lines[0] ?? '', /^tool +request +effect +arguments +agents +notes$/);
  const charge = lines.find((line) => line.startsWith('shop/charge_card')) ?? '';
  assert.match(charge, /POST \/charges +writes +order_id amount market\? file\? email\? +desk billing/);
  assert.match(charge, /waived: write, undo: shop\/refund_card, key: request_id, key required/);
  const parsed: unknown = JSON.parse(renderTools(loaded.built, { json: true }));
  const { tools } = parsed as { tools: { tool: string; effect: string; request: string }[] };
  assert.deepEqual(
    tools.map(({ tool, effect }) => `${effect} ${tool}`),
    [
      'reads shop/get_order',
      'reads shop/search',
      'reads shop/read_inbox',
      'writes shop/charge_card',
      'writes shop/refund_card',
      'reads docs/read_page',
    ],
  );
});

test('a new credential is 256 random bits and the digest that the configuration takes', () => {
  const { key, digest } = newCredential();
  assert.match(key, /^tg_[A-Za-z0-9_-]{43}$/);
  assert.equal(digest, credentialDigest(key));
  assert.match(digest, /^sha256:[0-9a-f]{64}$/);
  assert.notEqual(newCredential().key, key);
  assert.equal(credentialDigest('abc'), 'sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad');
});
