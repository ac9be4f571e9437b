import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import fc from 'fast-check';
import { canonicalize } from '../../receipts/canonical.ts';
import { parseJson } from '../../receipts/json.ts';
import { JsonFault, renderPointer } from '../../receipts/json-fault.ts';
import { readStrictly } from '../../receipts/json-reader.ts';
import type { JsonValue } from '../../receipts/json-value.ts';
import { threadMs } from '../thread-time.ts';

interface Case {
  readonly id: string;
  readonly text?: string | { readonly repeat: string; readonly times: number };
  readonly hex?: string;
  readonly canonical?: string;
  readonly fault?: string;
  readonly pointer?: string;
}

const CASES: { readonly accepted: readonly Case[]; readonly refused: readonly Case[] } = JSON.parse(
  readFileSync(new URL('../vectors/receipts/json-profile.json', import.meta.url), 'utf8'),
);

function inputOf({ text, hex }: Case): string | Uint8Array {
  if (hex !== undefined) return new Uint8Array(Buffer.from(hex, 'hex'));
  if (text === undefined) throw new Error('a case has `text` or `hex`');
  return typeof text === 'string' ? text : text.repeat.repeat(text.times);
}

for (const vector of CASES.accepted) {
  test(`accepted: ${vector.id}`, () => {
    const input = inputOf(vector);
    const value = parseJson(input);
    assert.equal(canonicalize(value), vector.canonical);
    assert.deepEqual(parseJson(Buffer.from(String(input))), value);
    assert.deepEqual(parseJson(canonicalize(value)), value, 'the canonical text is read as the same value');
  });
}

for (const vector of CASES.refused) {
  test(`refused: ${vector.id}`, () => {
    const input = inputOf(vector);
    const fault = { name: 'JsonFault', code: vector.fault, pointer: vector.pointer };
    assert.throws(() => parseJson(input), fault);
    if (typeof input === 'string') assert.throws(() => parseJson(Buffer.from(input)), fault);
  });
}

test('integers are bigint only where a double does not hold them for certain', () => {
  const text = '[9007199254740991,9007199254740992,-9007199254740992,9007199254740994.0,1e20,1e21]';
  const values = [2 ** 53 - 1, 2n ** 53n, -(2n ** 53n), 9007199254740994n, 10n ** 20n, 1e21];
  assert.deepEqual(parseJson(text), values);
});

test('a byte order mark and a lone surrogate are refused in a string, too', () => {
  assert.throws(() => parseJson('\ufeff{}'), { code: 'bom' });
  assert.throws(() => parseJson('"\ud800"'), { code: 'lone_surrogate' });
});

test('the depth allowed may be set', () => {
  assert.equal(parseJson('1', { maxDepth: 0 }), 1);
  assert.throws(() => parseJson('[]', { maxDepth: 0 }), { code: 'depth' });
  assert.deepEqual(parseJson('{"a":1}', { maxDepth: 1 }), { a: 1 });
  assert.throws(() => parseJson('{"a":{}}', { maxDepth: 1 }), { code: 'depth', pointer: '/a' });
});

test('a pointer escapes tilde and solidus', () => {
  assert.equal(renderPointer(['a~b', 'c/d', 0, '']), '/a~0b/c~1d/0/');
});

/** JSON values as this room carries them: integers of any size, no lone surrogates, no `__proto__`. */
const jsonValues = fc.letrec<{ value: JsonValue }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 5 },
    fc.string({ unit: 'binary' }),
    fc.integer(),
    fc.double({ noNaN: true, noDefaultInfinity: true }).map(heldNumber),
    fc.bigInt({ min: -(2n ** 70n), max: 2n ** 70n }).map(heldInteger),
    fc.constantFrom(null, true, false),
    fc.array(tie('value'), { maxLength: 5 }),
    fc
      .dictionary(
        fc.string({ unit: 'binary' }).filter((k) => k !== '__proto__'),
        tie('value'),
        { maxKeys: 5 },
      )
      .map((d) => ({ ...d })),
  ),
})).value;

/** What reading the number's own text gives: `-0` has none. */
function heldNumber(n: number): JsonValue {
  return Object.is(n, -0) ? 0 : parseJson(String(n));
}

function heldInteger(n: bigint): JsonValue {
  return n >= Number.MIN_SAFE_INTEGER && n <= Number.MAX_SAFE_INTEGER ? Number(n) : n;
}

test('any value comes back from its canonical text, and that text is its own canonical form', () => {
  fc.assert(
    fc.property(jsonValues, (value) => {
      const text = canonicalize(value);
      const back = parseJson(text);
      assert.deepEqual(back, value);
      assert.equal(canonicalize(back), text);
    }),
  );
});

test('the quick and the slow reader agree on every text', () => {
  const soup = fc
    .array(
      fc.constantFrom(
        '{',
        '}',
        '[',
        ']',
        ',',
        ':',
        '"',
        '"a"',
        '\\',
        '\\u0061',
        '1',
        '0',
        '-',
        '.',
        'e',
        '5',
        'true',
        'null',
        ' ',
        '{"a":1}',
        '9007199254740993',
      ),
      { maxLength: 12 },
    )
    .map((parts) => parts.join(''));
  fc.assert(
    fc.property(fc.oneof(soup, fc.json(), jsonValues.map(canonicalize)), (text) => {
      assert.deepEqual(
        verdict(() => parseJson(text)),
        verdict(() => readStrictly(text, 64)),
      );
    }),
    { numRuns: 2000 },
  );
});

test('what is accepted is what JSON.parse reads, but for big integers', () => {
  fc.assert(
    fc.property(fc.json(), (text) => {
      const read = verdict(() => parseJson(text));
      if (!(read instanceof JsonFault)) assert.deepEqual(inDoubles(read), JSON.parse(text));
    }),
  );
});

function inDoubles(value: JsonValue): JsonValue {
  return JSON.parse(JSON.stringify(value, (_key, inner) => (typeof inner === 'bigint' ? Number(inner) : inner)));
}

function verdict(read: () => JsonValue): JsonValue | JsonFault {
  try {
    return read();
  } catch (error) {
    if (error instanceof JsonFault) return error;
    throw error;
  }
}

test('texts made to be slow take linear time', () => {
  const size = 300_000;
  const texts = [
    '1'.repeat(size),
    `0.${'0'.repeat(size)}1${'0'.repeat(size)}`,
    `"${'\\u0061'.repeat(size / 6)}"`,
    `${' '.repeat(size)}x`,
    '['.repeat(size),
    `[${'1 ,'.repeat(size / 3)}1]`,
    `{${Array.from({ length: size / 12 }, (_, i) => `"k${i}" :1`).join(',')}}`,
  ];
  const started = threadMs();
  for (const text of texts) verdict(() => parseJson(text));
  assert.ok(threadMs() - started < 5_000);
});
