import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { compileRulebook } from '../../policy/rulebook/compile.ts';
import { decideRulebook, loadRecord, RulebookRecordError } from '../../policy/rulebook/decide.ts';
import type { SheetRow } from '../../policy/rulebook/sheet.ts';
import { threadMs } from '../thread-time.ts';

const NOTHING = { facts: {}, arguments: {} };

function compiled(text: string): ReturnType<typeof loadRecord> {
  const { record, problems } = compileRulebook([{ file: 'p.co', text }]);
  assert.ok(record, JSON.stringify(problems));
  return loadRecord(record);
}

describe('what a decision costs', () => {
  test('only the flows that concern a tool are looked at, of two thousand', () => {
    const flows = Array.from(
      { length: 2000 },
      (_none, at) => `define flow f${at}\n  if $a${at}\n    execute t${at}\n  else\n    bot refuse\n`,
    );
    const prepared = compiled(flows.join(''));
    const plan = prepared.plan('shop/t1234');
    assert.deepEqual(plan?.flows, [1234]);
    assert.partialDeepStrictEqual(decideRulebook(prepared, 'shop/t1234', { facts: { a1234: true }, arguments: {} }), {
      kind: 'allow',
      flow: 'f1234',
    });
  });

  test('tools of names that no rule gives as a pair share one plan', () => {
    const prepared = compiled('define flow f\n  execute t\n');
    assert.equal(prepared.plan('a/t'), prepared.plan('b/t'));
  });

  test('a ladder of ten thousand branches is one node and overflows nothing', () => {
    const rows = Array.from({ length: 10_000 }, (_none, at): SheetRow => {
      const place = { file: 's.csv', line: at + 2, column: 1 };
      return {
        at: place,
        tool: { ...place, text: 't' },
        when: { ...place, text: `$call.n == ${at}` },
        decision: { ...place, text: at % 2 === 0 ? 'allow' : 'refuse' },
      };
    });
    const { record } = compileRulebook([], { sheets: [{ file: 's.csv', name: 's', rows }] });
    assert.ok(record);
    const prepared = loadRecord(record);
    const decide = (n: number): unknown => decideRulebook(prepared, 't', { facts: {}, arguments: { n } });
    assert.deepEqual(decide(9998), { kind: 'allow', flow: 's', line: 10_000 });
    assert.partialDeepStrictEqual(decide(9999), { kind: 'refuse', code: 'rulebook_refused', reason: 'refuse' });
    assert.partialDeepStrictEqual(decide(10_000), { kind: 'refuse', code: 'no_rule' });
    assert.partialDeepStrictEqual(decideRulebook(prepared, 't', NOTHING), {
      kind: 'refuse',
      code: 'rulebook_undecided',
    });
  });

  test('a flow of ten thousand lines overflows nothing', () => {
    const prepared = compiled(`define flow f\n${'  bot inform a\n'.repeat(9997)}  execute t\n`);
    assert.equal(decideRulebook(prepared, 't', NOTHING).kind, 'allow');
  });

  test('subflows that call the next one twice, thirty deep, are walked once each', () => {
    const links = Array.from(
      { length: 29 },
      (_none, at) => `define subflow s${at}\n  if $call.x${at}\n    bot inform a\n  do s${at + 1}\n  do s${at + 1}\n`,
    );
    const last = 'define subflow s29\n  if $bad\n    bot refuse it\n    stop\n';
    const prepared = compiled(`define flow f\n  do s0\n  execute t\n${links.join('')}${last}`);
    assert.equal(decideRulebook(prepared, 't', NOTHING).kind, 'allow');
    assert.partialDeepStrictEqual(decideRulebook(prepared, 't', { facts: { bad: true }, arguments: {} }), {
      kind: 'refuse',
      reason: 'refuse it',
      flow: 's29',
    });
  });
});

describe('what compiling costs', () => {
  // CPU time, with room for a busy machine: before these were bounded they took from two seconds to minutes.
  function compiledWithin(ms: number, text: string): ReturnType<typeof compileRulebook> {
    const before = threadMs();
    const compiled = compileRulebook([{ file: 'p.co', text }]);
    assert.ok(threadMs() - before < ms, `it took ${threadMs() - before} ms`);
    return compiled;
  }
  const lines = (count: number, line: (at: number) => string): string =>
    Array.from({ length: count }, (_none, at) => line(at)).join('');

  test('many tools in one long flow are looked at for warnings so far, and where that ends is told', () => {
    const text = `define flow f\n${lines(1600, (at) => `  if not $a${at}\n    execute t${at}\n`)}`;
    const { record, problems } = compiledWithin(5000, text);
    assert.ok(record);
    const last = problems.filter(({ code }) => code === 'too_large');
    assert.deepEqual(
      last.map(({ severity }) => severity),
      ['warning'],
    );
    assert.ok(problems.some(({ code, line }) => code === 'hangs_on_missing' && line === 2));
  });

  test('jumps that all lead backwards', () => {
    const jump = (at: number): string => `  label l${3000 - at}\n  bot inform a\n  goto l${3001 - at}\n`;
    const { record } = compiledWithin(
      1500,
      `define flow f\n  goto l1\n${lines(3000, jump).replace('l3001', 'end')}  label end\n  execute t\n`,
    );
    assert.ok(record);
  });

  test('names that nothing defines, among as many others', () => {
    const { problems } = compiledWithin(
      2000,
      lines(4900, (at) => `flow abc${at}\n  abd${at}x\n`),
    );
    assert.equal(problems.length, 201);
  });
});

test("the shop's rulebook decides a refund by whether the order is paid", () => {
  const shop: { rulebook: string } = JSON.parse(readFileSync(new URL('../vectors/shop.json', import.meta.url), 'utf8'));
  const prepared = compiled(shop.rulebook);
  const decide = (paid: boolean): unknown =>
    decideRulebook(prepared, 'shop/refund_card', {
      facts: { order_paid: paid },
      arguments: { order_id: '4411', amount: 40 },
    });
  assert.deepEqual(decide(false), {
    kind: 'refuse',
    code: 'rulebook_refused',
    reason: 'refuse',
    flow: 'refunds',
    line: 9,
  });
  assert.deepEqual(decide(true), { kind: 'allow', flow: 'refunds', line: 7 });
  assert.deepEqual(decideRulebook(prepared, 'shop/get_order', NOTHING), { kind: 'ungoverned' });
});

test('a record of another format is not loaded', () => {
  const record = JSON.parse('{"format":"toolgate-rulebook/2","strict":false,"flows":[]}');
  assert.throws(() => loadRecord(record), RulebookRecordError);
});
