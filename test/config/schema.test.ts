import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Ajv2020 } from 'ajv/dist/2020.js';
import type { Config } from '../../gateway/config/config.ts';
import { loadConfig } from '../../gateway/config/load.ts';
import { renderConfigReference } from '../../gateway/config/reference.ts';
import { GATEWAY_SCHEMA } from '../../gateway/config/schema.ts';
import { parseDurationMs, parseSizeBytes } from '../../gateway/config/units.ts';
import type { JsonObject, JsonValue } from '../../receipts/json-value.ts';
import { vector } from './places.ts';

type Visit = (node: JsonObject, pointer: string) => void;

function walk(value: JsonValue, visit: Visit, pointer = ''): void {
  if (Array.isArray(value)) {
    value.forEach((item: JsonValue, index) => {
      walk(item, visit, `${pointer}/${index}`);
    });
  } else if (value !== null && typeof value === 'object') {
    visit(value as JsonObject, pointer);
    for (const [key, member] of Object.entries(value)) walk(member, visit, `${pointer}/${key}`);
  }
}

test('every word of the schema says what it means', () => {
  let words = 0;
  walk(GATEWAY_SCHEMA, (node, pointer) => {
    if (pointer.endsWith('/properties')) {
      for (const [word, member] of Object.entries(node)) {
        words += 1;
        const { description } = member as { description?: string };
        assert.ok((description ?? '').length > 3, `${pointer}/${word} has no description`);
      }
    }
  });
  assert.ok(words > 150, `only ${words} words`);
});

test('the schema is one of its dialect, which a start does not ask again', () => {
  const ajv = new Ajv2020({ allErrors: true });
  assert.equal(ajv.validateSchema(GATEWAY_SCHEMA), true, ajv.errorsText());
  assert.equal(ajv.validateSchema({ ...GATEWAY_SCHEMA, required: 'routes' }), false);
});

test('every branch of a union is a definition with a type, so that faults can tell which was meant', () => {
  const defs = GATEWAY_SCHEMA['$defs'] as Record<string, JsonObject>;
  walk(GATEWAY_SCHEMA, (node, pointer) => {
    for (const branch of (node['anyOf'] ?? []) as readonly JsonObject[]) {
      const name = String(branch['$ref']).replace('#/$defs/', '');
      assert.ok(defs[name]?.['type'] !== undefined, `${pointer}: ${JSON.stringify(branch)}`);
    }
  });
});

const DEFAULTS: readonly (readonly [pointer: string, of: (config: Config) => unknown])[] = [
  ['/properties/tenant', (c) => c.tenant],
  ['/properties/audience', (c) => c.audience],
  ['/properties/language', (c) => c.language],
  ['/properties/timezone', (c) => c.timezone],
  ['/properties/taint_policy', (c) => c.taintPolicy],
  ['/properties/listen', (c) => `${c.listen.host}:${c.listen.port}`],
  ['/properties/workers', (c) => c.workers],
  ['/properties/trusted_proxies', (c) => c.trustedProxies],
  ['/properties/approvers', (c) => c.approvers],
  ['/properties/console', (c) => c.console.enabled],
  ['/$defs/store/properties/unavailable', (c) => c.store.unavailable],
  ['/$defs/audit/properties/values', (c) => c.audit.values],
  ['/$defs/sessions/properties/max', (c) => c.sessions.max],
  ['/$defs/sessions/properties/carry', (c) => c.sessions.carryMs],
  ['/$defs/store/properties/max_answer', (c) => c.store.maxAnswerBytes],
  ['/$defs/confirmations/properties/ttl', (c) => c.confirmations.ttlMs],
  ['/$defs/runs/properties/idle', (c) => c.runs.idleMs],
  ['/$defs/runs/properties/on_refuse', (c) => c.runs.onRefuse],
  ['/$defs/runs/properties/on_failure', (c) => c.runs.onFailure],
  ['/$defs/receipts/properties/max_age', (c) => c.receipts.maxAgeMs],
  ['/$defs/receipts/properties/enforce', (c) => [...c.receipts.enforce]],
  ['/$defs/retry/properties/attempts', (c) => c.retry.attempts],
  ['/$defs/idempotencySettings/properties/keep', (c) => c.idempotency.keepMs],
  ['/$defs/idempotencySettings/properties/required', (c) => c.idempotency.required],
  ['/$defs/route/properties/verify', (c) => c.routes[0]?.verify],
  ['/$defs/route/properties/timeout', (c) => c.routes[0]?.timeoutMs],
  ['/$defs/route/properties/limit', (c) => c.routes[0]?.limitBytes],
  ['/$defs/route/properties/pins', (c) => c.routes[0]?.pins],
  ['/$defs/route/properties/annotations', (c) => c.routes[0]?.annotations],
  ['/$defs/route/properties/pass_authorization', (c) => c.routes[0]?.passAuthorization],
];

test('the defaults that the schema names are those that loading applies', async () => {
  const { config } = await loadConfig(vector('good/small.yaml'), { env: {} });
  assert.ok(config !== undefined);
  for (const [pointer, of] of DEFAULTS) {
    const node = pointer
      .split('/')
      .slice(1)
      .reduce<JsonValue>((at, key) => (at as Record<string, JsonValue>)[key] ?? null, GATEWAY_SCHEMA);
    const said = (node as JsonObject)['default'];
    const applied = of(config);
    if (typeof said === 'string' && typeof applied === 'number') {
      const parsed = /B$/.test(said) ? parseSizeBytes(said) : parseDurationMs(said);
      assert.equal(applied, parsed, pointer);
    } else {
      assert.deepEqual(applied, said, pointer);
    }
  }
});

test('every word of the documented tools, routes and top level is in the schema', () => {
  const wordsOf = (node: JsonValue | undefined): string[] =>
    Object.keys((node as Record<string, JsonObject>)['properties'] ?? {});
  const defs = GATEWAY_SCHEMA['$defs'] as JsonObject;
  const tool = wordsOf(defs['tool']);
  for (const word of 'name writes undo irreversible idempotent idempotency sends_out reads_outside subject_argument confidential privilege agents confirm after not_after at_most checks filter spend currency outcome failed_when retry safe_if_nothing_happened restores arguments defaults result description pin timeout'.split(
    ' ',
  )) {
    assert.ok(tool.includes(word), word);
  }
  const route = wordsOf(defs['route']);
  for (const word of 'name path upstream verify agents http openapi mcp tools timeout limit upstream_headers methods annotations pass include exclude pins headers pass_authorization'.split(
    ' ',
  )) {
    assert.ok(route.includes(word), word);
  }
  const top = wordsOf(GATEWAY_SCHEMA);
  for (const word of 'listen tenant audience language timezone taint_policy keys store audit confirmations sessions runs receipts agents approvers routes rulebook facts licence trusted_proxies workers console retry idempotency'.split(
    ' ',
  )) {
    assert.ok(top.includes(word), word);
  }
});

test('the reference names every word once in its section, with its default', () => {
  const reference = renderConfigReference(GATEWAY_SCHEMA);
  const defs = GATEWAY_SCHEMA['$defs'] as Record<string, JsonObject>;
  for (const [name, definition] of Object.entries(defs)) {
    for (const word of Object.keys((definition['properties'] ?? {}) as JsonObject)) {
      const section = reference.split(`### \`${name}\``)[1]?.split('\n### ')[0] ?? '';
      assert.equal(section.split(`\n| \`${word}\` |`).length, 2, `${name}.${word}`);
    }
  }
  assert.match(reference, /\| `timezone` \| text \| `"UTC"` \|/);
  assert.match(reference, /\| `timeout` \| duration \| `"30s"` \|/);
});
