import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import fc from 'fast-check';
import { tokenize } from '../../policy/origins/tokens.ts';
import { type Language, readNumber } from '../../policy/origins/typed-numbers.ts';
import { indexTurns, isTyped, isTypedIn } from '../../policy/origins/typed-values.ts';
import type { JsonValue } from '../../receipts/json-value.ts';
import { threadMs } from '../thread-time.ts';

interface Case {
  readonly language: Language;
  readonly turns: readonly string[];
  readonly value: JsonValue;
  readonly typed: boolean;
}

const CASES: readonly Case[] = JSON.parse(readFileSync(new URL('../vectors/typed.json', import.meta.url), 'utf8'));
const LANGUAGES: readonly Language[] = ['en', 'pt-BR'];

test('every case of the table is decided as it says', () => {
  for (const { language, turns, value, typed } of CASES) {
    assert.equal(isTyped(value, turns, language), typed, JSON.stringify({ language, turns, value }));
  }
});

test('whole numbers beyond 2^53 are compared digit by digit', () => {
  assert.equal(isTyped(9007199254740993n, ['id 9007199254740993'], 'en'), true);
  assert.equal(isTyped(9007199254740993n, ['id 9007199254740992'], 'en'), false);
  assert.equal(isTyped(-12345678901234567890n, ['-12.345.678.901.234.567.890'], 'pt-BR'), true);
  assert.equal(isTyped(1e300, ['1e300'], 'en'), false);
  assert.equal(isTyped(5e-7, ['0.0000005'], 'en'), true);
  assert.equal(isTyped(-0, ['0'], 'en'), true);
  assert.equal(isTyped(Number.NaN, ['NaN'], 'en'), false);
});

const LOCALES: Readonly<Record<Language, Intl.NumberFormat>> = {
  en: new Intl.NumberFormat('en-US', { minimumFractionDigits: 2 }),
  'pt-BR': new Intl.NumberFormat('pt-BR', { minimumFractionDigits: 2 }),
};
const CENTS = fc.integer({ min: -1_000_000_000, max: 1_000_000_000 }).map((cents) => cents / 100);
const FRAMES = fc.constantFrom(['', ''], ['pay ', ' now'], ['(', ')'], ['total: ', '.'], ['$', ','], ['"', '"!']);

test('an amount written as the language writes it is typed, and is not in the other language', () => {
  fc.assert(
    fc.property(CENTS, FRAMES, fc.constantFrom(...LANGUAGES), (amount, [before = '', after = ''], language) => {
      const turn = before + LOCALES[language].format(amount) + after;
      const other = language === 'en' ? 'pt-BR' : 'en';
      assert.equal(isTyped(amount, [turn], language), true, turn);
      assert.equal(isTyped(amount, [turn], other), false, turn);
    }),
  );
});

test('a number inside a longer run of digits or letters is not typed', () => {
  const joint = fc.constantFrom('1', 'A', '-', '/', '.', ':', '_', '–');
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 99_999 }),
      joint,
      joint,
      fc.constantFrom(...LANGUAGES),
      (value, a, b, language) => {
        assert.equal(isTyped(value, [`x 7${a}${value}${b}7 y`], language), false);
        assert.equal(isTyped(String(value), [`x 7${a}${value}${b}7 y`], language), false);
      },
    ),
  );
});

test('any run of words out of a turn is typed, and only then', () => {
  const letters = fc.array(fc.constantFrom('a', 'b', 'cc'), { minLength: 1, maxLength: 12 });
  fc.assert(
    fc.property(letters, letters, (turn, value) => {
      const expected = ` ${turn.join(' ')} `.includes(` ${value.join(' ')} `);
      for (const language of LANGUAGES) assert.equal(isTyped(value.join(' '), [turn.join(' ')], language), expected);
    }),
    { numRuns: 500 },
  );
});

test('accents may be left out by the person, word by word, never by the value', () => {
  const words = fc.array(fc.constantFrom('ação', 'São', 'avó', 'João', 'mês', 'pão'), { minLength: 1, maxLength: 6 });
  const plain = (word: string): string => word.normalize('NFD').replace(/\p{M}/gu, '');
  fc.assert(
    fc.property(words, fc.infiniteStream(fc.boolean()), (value, drops) => {
      const typed = value.map((word) => (drops.next().value === true ? plain(word) : word));
      assert.equal(isTyped(value.join(' '), [`diga ${typed.join(' ')} hoje`], 'pt-BR'), true);
      assert.equal(isTyped(value.map(plain).join(' '), [`diga ${value.join(' ')} hoje`], 'pt-BR'), false);
      assert.equal(isTyped(value.join(' '), [`diga ${value.join(' ')} hoje`.normalize('NFD')], 'en'), true);
    }),
  );
});

test('a map or list is typed where each of its leaves is', () => {
  const leaf = fc.constantFrom<JsonValue>('a', 'b', 'zz', 1, 2, 99, true, null, '');
  const index = indexTurns(['a b 1 2'], 'en');
  fc.assert(
    fc.property(fc.array(leaf, { maxLength: 5 }), (leaves) => {
      const expected = leaves.length > 0 && leaves.every((value) => isTypedIn(value, index));
      assert.equal(isTypedIn(leaves, index), expected);
      assert.equal(isTypedIn({ x: leaves }, index), expected);
      assert.equal(isTypedIn(Object.fromEntries(leaves.map((value, at) => [`k${at}`, value])), index), expected);
    }),
  );
});

test('a value nested deeper than is looked at is not typed', () => {
  let value: JsonValue = 'a';
  for (let depth = 0; depth < 100; depth += 1) value = [value];
  assert.equal(isTyped(value, ['a'], 'en'), false);
});

test('tokens keep every character of a turn but spaces', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), (text) => {
      const squeeze = (part: string): string =>
        part
          .normalize('NFC')
          .replace(/[’‘ʼ]/g, "'")
          .replace(/[\s\u0085]+/gu, '');
      assert.equal([...squeeze(tokenize(text).join(''))].sort().join(''), [...squeeze(text)].sort().join(''));
    }),
    { numRuns: 1000 },
  );
});

test('a turn built to be slow is read in time linear in its length', () => {
  for (const seed of ['a ', '1,', ',', 'a=', '–', "'", '$', 'a-_=', '1%', '- ', 'ã ', '\u00a0']) {
    const turn = seed.repeat(Math.floor(64_000 / seed.length));
    const start = threadMs();
    isTyped(`${turn.slice(0, 30_000)}x`, [turn], 'pt-BR');
    isTyped(turn.slice(0, 30_000), [turn], 'pt-BR');
    assert.ok(threadMs() - start < 2_000, seed);
  }
});

test('numbers are read in one language and told from ids', () => {
  assert.equal(readNumber('1,234.50', 'en'), '1234.5');
  assert.equal(readNumber('1.234,50', 'pt-BR'), '1234.5');
  assert.equal(readNumber('−0,10', 'pt-BR'), '-0.1');
  for (const text of ['', '-', '+', '.', '007', '1,23', '1e3', '0x10', '١', '--1', '1.', '1,234,56']) {
    assert.equal(readNumber(text, 'en'), null, text);
  }
});
