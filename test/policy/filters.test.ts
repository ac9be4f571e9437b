import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import type { FieldSource, ToolAnswer } from '../../policy/conditions/condition.ts';
import { type CompiledFilter, compileFilter, type FilterSource } from '../../policy/conditions/filter.ts';
import { filterToolResult } from '../../policy/conditions/filter-mcp.ts';
import { compileFollowed } from '../../policy/conditions/followed.ts';
import { canonicalize } from '../../receipts/canonical.ts';
import { parseJson } from '../../receipts/json.ts';
import type { JsonObject, JsonValue } from '../../receipts/json-value.ts';

interface Case {
  readonly title: string;
  readonly filter: FilterSource;
  readonly value: JsonValue;
  readonly arguments?: JsonObject;
  readonly answers?: readonly ToolAnswer[];
  readonly expect?: JsonValue;
  readonly held_back?: number;
  readonly unreadable?: true;
}

const file = new URL('../vectors/conditions/filters.json', import.meta.url);
const { cases } = parseJson(readFileSync(file)) as unknown as { readonly cases: readonly Case[] };
const NOTHING = { arguments: {}, answers: [] };

function resolve(from: string): FieldSource {
  const dot = from.indexOf('.');
  return { tool: `shop/${from.slice(0, dot)}`, field: from.slice(dot + 1) };
}

function lookupsOf(one: Case): { arguments: JsonObject; answers: readonly ToolAnswer[] } {
  return { arguments: one.arguments ?? {}, answers: one.answers ?? [] };
}

test('every filter of the table passes on what it says', async (t) => {
  for (const one of cases) {
    await t.test(one.title, () => {
      const filtered = compileFilter(one.filter, resolve)(one.value, lookupsOf(one));
      if (one.unreadable) assert.equal(filtered, undefined);
      else assert.deepEqual(filtered, { value: one.expect, heldBack: one.held_back });
    });
  }
});

test('the same records are held back of an MCP result, in structured content and in text alike', async (t) => {
  for (const one of cases.filter(({ value }) => typeof value === 'object' && value !== null)) {
    await t.test(one.title, () => {
      const filter = compileFilter(one.filter, resolve);
      const text = canonicalize(one.value);
      const both = { structuredContent: one.value, content: [{ type: 'text', text }], _meta: { trace: 'x' } };
      const alone = { content: [{ type: 'text', text, annotations: { priority: 1 } }] };
      for (const result of [both, alone]) {
        const filtered = filterToolResult(filter, result, lookupsOf(one), canonicalize);
        if (one.unreadable) {
          assert.equal(filtered, undefined);
          continue;
        }
        assert.equal(filtered?.heldBack, one.held_back);
        const value = filtered?.value as { structuredContent?: JsonValue; content: { text: string }[] };
        assert.deepEqual(parseJson(value.content[0]?.text ?? ''), one.expect);
        if ('structuredContent' in result) assert.deepEqual(value.structuredContent, one.expect);
      }
    });
  }
});

const filter: CompiledFilter = compileFilter({ each: 'jobs[]', keep: [{ field: 'pay', at_least: 5 }] }, resolve);
const rows = { jobs: [{ pay: 9 }, { pay: 1 }] };

test('content beside structured content that could show a record is left out', () => {
  const content = [
    { type: 'text', text: 'jobs: 9, 1' },
    { type: 'text', text: canonicalize(rows) },
    { type: 'resource', resource: { uri: 'file:///jobs', text: 'pay 1' } },
    { type: 'image', data: 'AA==', mimeType: 'image/png' },
  ];
  const filtered = filterToolResult(filter, { structuredContent: rows, content }, NOTHING, canonicalize);
  assert.deepEqual(filtered?.value, {
    structuredContent: { jobs: [{ pay: 9 }] },
    content: [{ type: 'text', text: '{"jobs":[{"pay":9}]}' }],
  });
});

test('an MCP result that cannot be read as records is not passed on', () => {
  const json = { type: 'text', text: canonicalize(rows) };
  const unreadable: readonly JsonValue[] = [
    { content: [{ type: 'text', text: 'pay 9, pay 1' }] },
    { content: [json, { type: 'text', text: 'and pay 1' }] },
    { content: [json, { type: 'resource', resource: { uri: 'file:///jobs', text: 'pay 1' } }] },
    { content: [{ type: 'text', text: '{"jobs":[{"pay":9}],"jobs":[]}' }] },
    { structuredContent: { rows: [] }, content: [json] },
    { content: { type: 'text', text: '{"jobs":[]}' } },
    {},
    [],
    null,
  ];
  for (const result of unreadable) {
    assert.equal(filterToolResult(filter, result, NOTHING, canonicalize), undefined, canonicalize(result));
  }
});

test('a followed write is judged by what its read answers', () => {
  const judge = compileFollowed(
    {
      done_when: [{ field: 'status', is: 'filled' }],
      failed_when: [{ field: 'status', one_of: ['rejected', 'cancelled'] }],
    },
    resolve,
  );
  const table: readonly (readonly [JsonValue, string])[] = [
    [{ status: 'filled' }, 'done'],
    [{ status: 'rejected' }, 'failed'],
    [{ status: 'pending' }, 'pending'],
    [{ status: null }, 'unknown'],
    [{ status: 7 }, 'unknown'],
    [{}, 'unknown'],
    ['filled', 'unknown'],
  ];
  for (const [answer, expected] of table) assert.equal(judge(answer, NOTHING), expected, canonicalize(answer));
});

test('an answer that says done and failed at once settles nothing', () => {
  const done = [{ field: 'filled', at_least: 1 }];
  const failed = [{ field: 'status', is: 'rejected' }];
  const judge = compileFollowed({ done_when: done, failed_when: failed }, resolve);
  assert.equal(judge({ filled: 1, status: 'rejected' }, NOTHING), 'unknown');
  assert.equal(judge({ filled: 1 }, NOTHING), 'unknown');
  assert.equal(compileFollowed({ done_when: done }, resolve)({ filled: 1 }, NOTHING), 'done');
  assert.equal(compileFollowed({ done_when: done }, resolve)({ filled: 0 }, NOTHING), 'pending');
});
