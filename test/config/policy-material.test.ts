import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { finishDraft } from '../../gateway/catalogue/load-gateway.ts';
import { policyMaterial } from '../../gateway/catalogue/policy-material.ts';
import { draftConfigText } from '../../gateway/config/load.ts';
import { renderProblems } from '../../gateway/config/problem.ts';
import { catalogueDeps } from '../../gateway/load/catalogue-deps.ts';
import { canonicalize } from '../../receipts/canonical.ts';

const TEXT = `listen: 127.0.0.1:8080
keys: {signing: ./a.pem}
store: ./a.db
agents: {desk: {privilege: low, defaults: {x: 1}}, billing: {privilege: high}}
routes:
  - name: shop
    upstream: http://127.0.0.1:9100
    agents: [desk]
    upstream_headers: {Authorization: "\${TOKEN}"}
    timeout: 30s
    http:
      - {name: get_order, method: GET, path: "/orders/{order_id}"}
      - {name: charge, method: POST, path: /charges, writes: true, input: {type: object, properties: {a: {type: number}}}}
    tools:
      - {name: charge, undo: none, idempotent: true, at_most: 3, after: [get_order]}
`;

async function material(text: string, token = 'swordfish', file = 'gateway.yaml'): Promise<string> {
  const draft = draftConfigText(file, text, { env: { TOKEN: token } });
  const { loaded, problems } = await finishDraft(draft, catalogueDeps());
  assert.ok(loaded !== undefined, renderProblems(problems));
  return canonicalize(policyMaterial(loaded.config, loaded.built));
}

test('replicas that differ in folder, address, key and store have the same policy', async () => {
  const here = await material(TEXT);
  const there = TEXT.replace('8080', '9090').replace('a.pem', 'b.pem').replace('a.db', 'b.db');
  assert.equal(await material(there, 'swordfish', '/elsewhere/gateway.yaml'), here);
  // The order of words and lists that mean sets decides nothing.
  assert.equal(await material(TEXT.replace('idempotent: true, at_most: 3', 'at_most: 3, idempotent: true')), here);
});

test('a secret stands in the policy by its digest alone', async () => {
  const text = await material(TEXT);
  assert.ok(!text.includes('swordfish'));
  assert.ok(text.includes(createHash('sha256').update('swordfish').digest('hex')));
  assert.notEqual(await material(TEXT, 'other'), text);
});

const CHANGES: readonly (readonly [from: string, to: string])[] = [
  ['privilege: low', 'privilege: high'],
  ['{x: 1}', '{x: 2}'],
  ['9100', '9101'],
  ['agents: [desk]', 'agents: [desk, billing]'],
  ['timeout: 30s', 'timeout: 31s'],
  ['/orders/{order_id}', '/order/{order_id}'],
  ['type: number', 'type: integer'],
  ['at_most: 3', 'at_most: 4'],
  ['idempotent: true', 'idempotency: {header: Idempotency-Key}'],
  ['after: [get_order]', 'not_after: [get_order]'],
  ['listen:', 'taint_policy: refuse\nlisten:'],
  ['listen:', 'language: pt-BR\nlisten:'],
  ['listen:', 'runs: {on_refuse: leave}\nlisten:'],
  ['timeout: 30s', 'headers: [Accept-Language]'],
  ['at_most: 3', 'at_most: 3, timeout: 3s'],
  ['at_most: 3', 'at_most: 3, failed_when: [500]'],
  ['at_most: 3', 'at_most: 3, description: Charges a card.'],
];

for (const [from, to] of CHANGES) {
  test(`the policy changes with ${JSON.stringify(to)}`, async () => {
    assert.ok(TEXT.includes(from));
    assert.notEqual(await material(TEXT.replace(from, to)), await material(TEXT));
  });
}

test('the rulebook is part of the policy', async () => {
  const draft = draftConfigText('gateway.yaml', TEXT, { env: { TOKEN: 'x' } });
  const { loaded } = await finishDraft(draft, catalogueDeps());
  assert.ok(loaded !== undefined);
  const bare = canonicalize(policyMaterial(loaded.config, loaded.built));
  assert.notEqual(canonicalize(policyMaterial(loaded.config, loaded.built, { flows: [] })), bare);
});
