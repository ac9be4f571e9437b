import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import type { ConditionSource } from '../../policy/conditions/condition.ts';
import { OPERATORS } from '../../policy/conditions/condition.ts';
import { literalFault } from '../../policy/conditions/literals.ts';
import { canonicalize } from '../../receipts/canonical.ts';
import { parseJson } from '../../receipts/json.ts';
import type { JsonObject, JsonValue } from '../../receipts/json-value.ts';
import { startTestGateway } from '../harness/gateway.ts';

interface Case {
  readonly title: string;
  readonly conditions: readonly ConditionSource[];
  readonly arguments: JsonObject;
  readonly answers?: JsonValue;
  readonly expect: 'holds' | 'failed' | 'unknown';
}

const file = new URL('../vectors/conditions/conditions.json', import.meta.url);
const { cases } = parseJson(readFileSync(file)) as unknown as { readonly cases: readonly Case[] };

/** What a configuration can say: no `from_row` outside a filter, nothing that no call could be compared with. */
function isConfigurable(condition: ConditionSource): boolean {
  if (condition.any !== undefined) return condition.any.every(isConfigurable);
  if (condition.unknown !== undefined) return false;
  const subject = condition.field !== undefined ? 'field' : condition.total !== undefined ? 'total' : 'count';
  return OPERATORS.every((operator) => {
    const operand = condition[operator];
    if (operand === undefined) return true;
    const isReference = typeof operand === 'object' && operand !== null && !Array.isArray(operand);
    return !isReference && literalFault(subject, operator, operand as JsonValue) === undefined;
  });
}

/** A schema that declares what a condition names and lets any value in. */
function schemaOf(one: Case): JsonObject {
  const members: Record<string, JsonValue> = Object.fromEntries(Object.keys(one.arguments).map((name) => [name, true]));
  for (const path of one.conditions.flatMap(pathsOf)) {
    const [head = '', ...rest] = (path.split('[]')[0] ?? '').split('.');
    const known = Object.hasOwn(members, head) ? (members[head] ?? true) : true;
    members[head] = rest.reduceRight<JsonValue>((inner, name) => openObject({ [name]: inner }), known);
  }
  return { type: 'object', properties: members };
}

function openObject(properties: JsonObject): JsonObject {
  return { properties, additionalProperties: true };
}

function pathsOf(condition: ConditionSource): readonly string[] {
  if (condition.any !== undefined) return condition.any.flatMap(pathsOf);
  return [condition.field ?? condition.total ?? condition.count ?? ''];
}

test('the table of conditions stands over HTTP as it does in process', async () => {
  const chosen = cases.filter(
    (one) => one.answers === undefined && one.conditions.length > 0 && one.conditions.every(isConfigurable),
  );
  assert.ok(chosen.length >= 250, `${chosen.length} cases`);
  const gateway = await startTestGateway({
    tenant: 'shop',
    audience: 'shop-gateway',
    agents: { desk: { privilege: 'high' } },
    routes: [
      {
        name: 'shop',
        path: '/shop',
        upstream: 'http://127.0.0.1:9',
        agents: ['desk'],
        http: chosen.map((one, index) => ({
          name: `tool_${index}`,
          method: 'POST',
          path: `/${index}`,
          writes: true,
          input: schemaOf(one),
        })),
        tools: chosen.map(({ conditions }, index) => ({ name: `tool_${index}`, checks: conditions })),
      },
    ],
  });
  try {
    const ask = async (one: Case, index: number): Promise<void> => {
      const body = canonicalize({ tool: `shop/tool_${index}`, arguments: one.arguments, session: `s-${index}` });
      const answer = await gateway.request('POST', '/v1/check', { body });
      assert.equal(answer.status, 200, `${one.title}: ${answer.text}`);
      const { decision, reason } = answer.json as { decision: string; reason: string };
      if (one.expect === 'holds') assert.equal(decision, 'confirm', `${one.title}: ${reason}`);
      else assert.equal(reason, `condition_${one.expect}`, one.title);
    };
    // Calls of different sessions share the store's commits.
    await Promise.all(chosen.map(ask));
  } finally {
    await gateway.close();
  }
});
