import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { compileRulebook } from '../../policy/rulebook/compile.ts';
import { decideRulebook, loadRecord } from '../../policy/rulebook/decide.ts';
import type { JsonObject } from '../../receipts/json-value.ts';

interface Vector {
  readonly id: string;
  readonly sources: readonly { readonly file: string; readonly text: string; readonly version?: '1.0' | '2.x' }[];
  readonly strict?: boolean;
  readonly tools?: readonly string[];
  readonly governed?: readonly string[];
  /** Exactly these, in order; each compares the members that it names. */
  readonly problems?: readonly Readonly<Record<string, unknown>>[];
  readonly decides?: readonly {
    readonly tool: string;
    readonly facts?: Readonly<Record<string, boolean>>;
    readonly arguments?: JsonObject;
    readonly expect: Readonly<Record<string, unknown>>;
  }[];
}

const KNOWN = new Set(['id', 'sources', 'strict', 'tools', 'governed', 'problems', 'decides', 'why']);
const folder = new URL('../vectors/rulebook/', import.meta.url);

/** The members of `actual` that `expected` names. */
function named(actual: object, expected: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const all: Record<string, unknown> = { ...actual };
  return Object.fromEntries(Object.keys(expected).map((key) => [key, all[key]]));
}

for (const name of readdirSync(folder).filter((file) => file.endsWith('.json'))) {
  const { cases }: { cases: readonly Vector[] } = JSON.parse(readFileSync(new URL(name, folder), 'utf8'));
  describe(`rulebook vectors: ${name}`, () => {
    for (const vector of cases) {
      test(vector.id, () => {
        for (const key of Object.keys(vector)) assert.ok(KNOWN.has(key), `unknown member ${key}`);
        const compiled = compileRulebook(vector.sources, {
          strict: vector.strict ?? false,
          ...(vector.tools === undefined ? {} : { tools: vector.tools }),
        });
        const problems = vector.problems ?? [];
        assert.deepEqual(
          compiled.problems.map((problem, index) => named(problem, problems[index] ?? { ...problem })),
          problems,
        );
        if (problems.some((problem) => problem['severity'] === 'error')) {
          assert.equal(compiled.record, undefined);
          return;
        }
        assert.ok(compiled.record);
        if (vector.governed !== undefined) assert.deepEqual(compiled.governed, vector.governed);
        // The record is plain JSON: what is decided with must be what is digested.
        const prepared = loadRecord(JSON.parse(JSON.stringify(compiled.record)));
        assert.ok(vector.decides !== undefined && vector.decides.length > 0, 'a vector that compiles decides a call');
        for (const call of vector.decides) {
          const decision = decideRulebook(prepared, call.tool, {
            facts: call.facts ?? {},
            arguments: call.arguments ?? {},
          });
          assert.deepEqual(named(decision, call.expect), call.expect);
        }
      });
    }
  });
}
