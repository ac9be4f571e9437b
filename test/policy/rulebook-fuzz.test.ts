import assert from 'node:assert/strict';
import { test } from 'node:test';
import { threadMs } from '../thread-time.ts';
import { checkText, fuzzText, randomFrom, seedTexts } from './rulebook-fuzz.ts';

const BUDGET_MS = 2000;

test('texts that were never meant as rulebooks compile or are refused, and never crash or hang', () => {
  const seeds = seedTexts();
  assert.ok(seeds.length > 60);
  const started = threadMs();
  let tried = 0;
  for (let seed = 1; threadMs() - started < BUDGET_MS; seed += 1) {
    const random = randomFrom(seed);
    const text = fuzzText(random, seeds);
    const before = threadMs();
    try {
      checkText(text, random);
    } catch (error) {
      throw new Error(`seed ${seed}`, { cause: error });
    }
    assert.ok(threadMs() - before < 1000, `seed ${seed} took too long`);
    tried += 1;
  }
  assert.ok(tried > 50, `only ${tried} texts were tried`);
});
