import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { FactSourceError, parseFactSource, readFact } from '../../policy/facts.ts';
import type { JsonObject } from '../../receipts/json-value.ts';

interface Vectors {
  readonly sources: readonly { readonly text: string; readonly expect?: unknown; readonly error?: string }[];
  readonly reads: readonly {
    readonly id: string;
    readonly fact: { readonly from: string; readonly same?: string };
    readonly answers: readonly {
      readonly tool?: string;
      readonly arguments?: JsonObject;
      readonly result: JsonObject;
      readonly step?: number;
    }[];
    readonly call: JsonObject;
    readonly expect: boolean;
  }[];
}

const vectors: Vectors = JSON.parse(readFileSync(new URL('../vectors/rulebook-facts.json', import.meta.url), 'utf8'));

describe('where a fact comes from', () => {
  for (const { text, expect, error } of vectors.sources) {
    test(`\`${text}\` ${error === undefined ? 'is read' : 'is refused'}`, () => {
      if (error === undefined) {
        assert.deepEqual(parseFactSource(text), expect);
        return;
      }
      assert.throws(
        () => parseFactSource(text),
        (thrown) =>
          thrown instanceof FactSourceError && thrown.code === 'fact_source' && thrown.message.includes(error),
      );
    });
  }
});

describe('whether a fact holds', () => {
  for (const { id, fact, answers, call, expect } of vectors.reads) {
    test(id, () => {
      const source = parseFactSource(fact.from);
      const told = answers.map((answer) => ({ tool: 'o', arguments: {}, step: 1, ...answer }));
      assert.equal(readFact(fact.same === undefined ? source : { ...source, same: fact.same }, told, call), expect);
    });
  }

  test('an id beyond 2^53 keeps every digit', () => {
    const source = { ...parseFactSource('o.paid'), same: 'id' };
    const answer = { tool: 'o', arguments: { id: 9007199254740993n }, result: { paid: true }, step: 1 };
    assert.equal(readFact(source, [answer], { id: 9007199254740993n }), true);
    assert.equal(readFact(source, [answer], { id: 9007199254740992n }), false);
  });
});
