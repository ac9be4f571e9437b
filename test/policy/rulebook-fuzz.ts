import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { compileRulebook } from '../../policy/rulebook/compile.ts';
import { decideRulebook, loadRecord } from '../../policy/rulebook/decide.ts';
import { explainRulebook } from '../../policy/rulebook/explain.ts';

const WORDS =
  'define def flow subflow user bot if else elif when while do execute stop abort return break continue label goto await start match activate send import and or not in is as ask refuse confirm cannot a b c go execute_go True False None global pass log meta priority $a $b $call.x $call $call.x.y "t" "t?" \'s\' """ \'\'\' # \\ ( ) [ ] { } == != <= >= < > = += -> , . : ... @override @loop GoAction() StartGoAction UtteranceBotAction(script="x?") f g h 1 2.5 -3 ñ 漢 \u0000 \t | & * ** // $ " \''.split(
    ' ',
  );

/** Repeatable pseudo-random numbers (mulberry32), so that a failure can be run again by its seed. */
export function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

/** The texts of the vectors, which mutations start from. */
export function seedTexts(): readonly string[] {
  const folder = new URL('../vectors/rulebook/', import.meta.url);
  return readdirSync(folder)
    .filter((name) => name.endsWith('.json'))
    .flatMap((name) => {
      const { cases }: { cases: readonly { sources?: readonly { text: string }[] }[] } = JSON.parse(
        readFileSync(new URL(name, folder), 'utf8'),
      );
      return cases.flatMap((one) => (one.sources ?? []).map((source) => source.text));
    })
    .filter((text) => text.length < 4000);
}

/** A text that was never meant to be one: bytes, words in a heap, or a vector with pieces cut, doubled and swapped. */
export function fuzzText(random: () => number, seeds: readonly string[]): string {
  const pick = <Item>(items: readonly Item[], otherwise: Item): Item =>
    items[Math.floor(random() * items.length)] ?? otherwise;
  const kind = random();
  if (kind < 0.15) {
    const bytes = Uint8Array.from({ length: Math.floor(random() * 2000) }, () => Math.floor(random() * 256));
    return new TextDecoder().decode(bytes);
  }
  if (kind < 0.5) {
    const rows: string[] = [random() < 0.5 ? 'define flow f' : 'flow f'];
    const count = 1 + Math.floor(random() * 40);
    for (let row = 0; row < count; row += 1) {
      const words = Array.from({ length: Math.floor(random() * 8) }, () => pick(WORDS, 'a'));
      rows.push('  '.repeat(Math.floor(random() * 4)) + words.join(random() < 0.9 ? ' ' : ''));
    }
    return rows.join('\n');
  }
  let text = pick(seeds, '');
  const edits = 1 + Math.floor(random() * 6);
  for (let edit = 0; edit < edits; edit += 1) {
    const from = Math.floor(random() * text.length);
    const to = from + Math.floor(random() * 20);
    const how = random();
    if (how < 0.3) text = text.slice(0, from) + text.slice(to);
    else if (how < 0.5) text = text.slice(0, to) + text.slice(from);
    else if (how < 0.8) text = text.slice(0, from) + pick(WORDS, 'a') + text.slice(from);
    else text = text.slice(0, from) + pick(seeds, '').slice(from, to) + text.slice(from);
  }
  return text;
}

/** Compiles a text and decides every tool that it governs; what must hold of any text is asserted. */
export function checkText(text: string, random: () => number): void {
  const compiled = compileRulebook([{ file: 'fuzz.co', text }], { strict: random() < 0.2 });
  const rows = text.split('\n').length;
  for (const problem of compiled.problems) {
    assert.equal(problem.file, 'fuzz.co');
    assert.ok(problem.line >= 1 && problem.line <= rows, `line ${problem.line} of ${rows}`);
    assert.ok(problem.column >= 1, `column ${problem.column}`);
    assert.ok(problem.message.length < 600, problem.message);
  }
  const failed = compiled.problems.some((problem) => problem.severity === 'error');
  assert.equal(compiled.record === undefined, failed);
  if (compiled.record === undefined) return;
  const prepared = loadRecord(JSON.parse(JSON.stringify(compiled.record)));
  for (const tool of compiled.governed) {
    const inputs = { facts: { a: random() < 0.5, b: random() < 0.5 }, arguments: random() < 0.5 ? {} : { x: 3 } };
    const decision = decideRulebook(prepared, tool, inputs);
    assert.notEqual(decision.kind, 'ungoverned');
    assert.deepEqual(decideRulebook(prepared, tool, inputs), decision, 'the same input has the same answer');
    explainRulebook(prepared, tool, inputs);
  }
}
