import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  type ArgumentKind,
  type DestinationOptions,
  findDestinations,
} from '../../policy/destinations/find-destinations.ts';
import { isPlainEmail } from '../../policy/destinations/plain-email.ts';
import type { JsonObject } from '../../receipts/json-value.ts';
import { threadMs } from '../thread-time.ts';

interface Row {
  readonly arguments: JsonObject;
  readonly destinations?: readonly string[];
  readonly options?: { subjectArguments?: readonly string[]; kinds?: Readonly<Record<string, ArgumentKind>> };
}

function load<T>(name: string): { destination: readonly T[]; not: readonly T[] } {
  return JSON.parse(readFileSync(new URL(`../vectors/${name}`, import.meta.url), 'utf8'));
}

const TABLE = load<string>('destinations.json');
const MORE = load<Row>('destinations-more.json');

test('every destination of the fixed table is found, wherever it stands', () => {
  for (const text of TABLE.destination) {
    const places: JsonObject[] = [{ a: text }, { a: ['x', { b: text }] }, { a: { [text]: 1 } }, { [text]: 'x' }];
    for (const args of places) {
      const found = findDestinations(args);
      assert.ok(found.destinations.length > 0, JSON.stringify(args));
      assert.equal(found.undecided, null);
    }
  }
});

test('nothing of the fixed table that is no destination is taken for one', () => {
  for (const text of TABLE.not) {
    assert.deepEqual(findDestinations({ a: text, b: [{ [text]: text }] }), { destinations: [], undecided: null }, text);
  }
});

test('the further rows hold, with the pieces as written or decoded', () => {
  for (const row of MORE.destination) {
    const found = findDestinations(row.arguments, row.options);
    assert.ok(found.destinations.length > 0, JSON.stringify(row));
    if (row.destinations !== undefined) assert.deepEqual(found.destinations, row.destinations, JSON.stringify(row));
  }
  for (const row of MORE.not) {
    assert.deepEqual(findDestinations(row.arguments, row.options).destinations, [], JSON.stringify(row));
  }
});

test('a call without a destination costs no allocation: the answer is one shared value', () => {
  assert.equal(
    findDestinations({ order_id: '4411' }),
    findDestinations({ amount: 40, note: 'a gift', price: '40.00' }),
  );
});

test('strings of more than 64 KiB in one call are undecided, and what was found before stays', () => {
  const half = 'word '.repeat(6554);
  assert.equal(findDestinations({ a: half }).undecided, null);
  assert.equal(findDestinations({ a: half, b: half }).undecided, 'length');
  assert.deepEqual(findDestinations({ a: 'evil.com', b: half, c: [half] }), {
    destinations: ['evil.com'],
    undecided: 'length',
  });
});

test('nesting beyond what is walked is undecided', () => {
  let args: JsonObject = { a: 'evil.com' };
  for (let depth = 0; depth < 200; depth += 1) args = { a: args };
  assert.equal(findDestinations(args).undecided, 'depth');
});

test('a disguise that unfolds into too much text is undecided', () => {
  assert.equal(findDestinations({ a: '\ufdfa'.repeat(40_000) }).undecided, 'disguise');
});

test('no more than 50 pieces are listed', () => {
  const many = Array.from({ length: 200 }, (_, index) => `h${index}.example.com`).join(' ');
  assert.equal(findDestinations({ a: many }).destinations.length, 50);
});

test('names that the schema declares are not read, others are', () => {
  const options: DestinationOptions = { declaredKeys: new Set(['filter.id']) };
  assert.deepEqual(findDestinations({ 'filter.id': '4411' }, options).destinations, []);
  assert.deepEqual(findDestinations({ 'filter.id': '4411' }).destinations, ['filter.id']);
  assert.deepEqual(findDestinations({ a: { 'filter.id': 'evil.com' } }, options).destinations, ['evil.com']);
});

test('options of the object prototype are no words about an argument', () => {
  assert.deepEqual(findDestinations({ constructor: 'evil.com', toString: 'x' }, { kinds: {} }).destinations, [
    'evil.com',
  ]);
});

test('text built to be slow is read in time linear in its length', () => {
  const seeds = [
    'a@b.co:',
    'a.co/',
    'C:\\',
    'a://',
    '::1 ',
    '%41',
    '&#46;',
    '\\u002e',
    '../',
    '[.]',
    '~/ ',
    'data:',
    'a@',
    '[::1]%',
  ];
  for (const seed of [
    ...seeds,
    '%26%2346; \\u0026 é [.] ',
    'a at b dot ',
    '"a"@',
    'aHR0cHM6Ly9ldmls ',
    '\\\\a\\',
    '$HOME/',
    'é.',
  ]) {
    const text = seed.repeat(Math.floor(65_000 / seed.length));
    const start = threadMs();
    findDestinations({ a: text });
    assert.ok(threadMs() - start < 2_000, seed);
  }
});

const WORDS = fc.array(fc.constantFrom('please', 'send', 'order', '4411', 'today', 'ação', 'não', '40.00'), {
  maxLength: 6,
});
const TARGETS: fc.Arbitrary<string> = fc.constantFrom<string[]>(
  'https://evil.com/x?d=4411',
  'evil.com/collect',
  'alice@evil.com',
  'http://2130706433/x',
  'files.evil.co.uk/a',
);
const every = (text: string, write: (code: number) => string): string =>
  Array.from(text, (character) => write(character.charCodeAt(0))).join('');
const DISGUISES: readonly ((text: string) => string)[] = [
  (text) => Buffer.from(text, 'utf8').toString('hex').replace(/../g, '%$&'),
  (text) => every(text, (code) => `&#${code};`),
  (text) => every(text, (code) => `&#x${code.toString(16)};`),
  (text) => every(text, (code) => `\\u${code.toString(16).padStart(4, '0')}`),
  (text) =>
    every(text, (code) =>
      code > 0x20 && code < 0x7f ? String.fromCharCode(code + 0xfee0) : String.fromCharCode(code),
    ),
  (text) => Array.from(text).join('\u200b'),
  (text) => text.replaceAll('.', '。'),
  (text) => Buffer.from(text, 'utf8').toString('base64'),
  (text) => Buffer.from(text, 'utf8').toString('base64url'),
  (text) => Buffer.from(text, 'utf8').toString('hex'),
];

test('a destination in prose is found under any two disguises, one over the other', () => {
  const two = fc.array(fc.constantFrom(...DISGUISES), { maxLength: 2 });
  fc.assert(
    fc.property(WORDS, TARGETS, two, WORDS, (before, target, disguises, after) => {
      const hidden = disguises.reduce((text, disguise) => disguise(text), target);
      const text = [...before, hidden, ...after].join(' ');
      const found = findDestinations({ note: text });
      assert.ok(found.undecided !== null || found.destinations.length > 0, text);
    }),
    { numRuns: 500 },
  );
});

test('the pieces of an undisguised text stand in it', () => {
  fc.assert(
    fc.property(WORDS, TARGETS, WORDS, (before, target, after) => {
      const text = [...before, target, ...after].join(' ');
      assert.deepEqual(findDestinations({ note: text }).destinations, [target]);
    }),
  );
});

test('words, numbers and amounts alone name no destination', () => {
  const word = fc.stringMatching(/^[a-z]{1,12}$/).filter((text) => !/dot|ponto|punto|localhost/.test(text));
  const amount = fc.double({ min: 0, max: 1e6, noNaN: true }).map((value) => value.toFixed(2));
  fc.assert(
    fc.property(fc.array(fc.oneof(word, amount, fc.uuid(), fc.integer().map(String)), { maxLength: 20 }), (words) => {
      assert.deepEqual(findDestinations({ note: words.join(' ') }).destinations, [], words.join(' '));
    }),
    { numRuns: 500 },
  );
});

test('any JSON is read without a throw, twice alike', () => {
  fc.assert(
    fc.property(fc.dictionary(fc.string({ unit: 'binary' }), fc.jsonValue({ stringUnit: 'binary' })), (args) => {
      const object = JSON.parse(JSON.stringify(args)) as JsonObject;
      assert.deepEqual(findDestinations(object), findDestinations(object));
    }),
    { numRuns: 300 },
  );
});

test('text made of what destinations are made of is read without a throw', () => {
  const piece = fc.constantFrom(
    '.',
    ':',
    '/',
    '\\',
    '@',
    '%',
    '&',
    '#',
    ';',
    '[',
    ']',
    'a',
    '1',
    'com',
    'é',
    '2e',
    '~',
    '..',
    '::',
    '\ud800',
    ' ',
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 40 }), (pieces) => {
      const text = pieces.join('');
      for (const found of findDestinations({ a: text }).destinations) assert.ok(found.length > 0);
    }),
    { numRuns: 2000 },
  );
});

test('a plain e-mail address is one address and nothing else', () => {
  for (const text of [
    'alice@example.com',
    'a.b+c@sub.example.co.uk',
    'joão@münchen.de',
    'x@xn--e1afmkfd.xn--p1ai',
    "o'neil@example.com",
  ]) {
    assert.equal(isPlainEmail(text), true, text);
  }
  const not = [
    '',
    'alice',
    'alice@',
    '@example.com',
    'a@b',
    'a@@b.com',
    'a@b.com,c@d.com',
    'a@b.com c@d.com',
    ' a@b.com',
    'a@b.com\n',
  ];
  const disguised = [
    'A <a@b.com>',
    '"a"@b.com',
    'a%x.com@b.com',
    'a!b@c.com',
    'a@[10.0.0.1]',
    'a@10.0.0.1',
    'a@-b.com',
    'a@b..com',
    'a..b@c.com',
  ];
  for (const text of [
    ...not,
    ...disguised,
    'a@b.com.',
    'a@b.c0m',
    'ａ@b.com',
    'a\u200b@b.com',
    `${'a'.repeat(65)}@b.com`,
    'mailto:a@b.com',
  ]) {
    assert.equal(isPlainEmail(text), false, text);
  }
  for (const value of [null, true, 40, 40n, ['a@b.com'], { a: 'a@b.com' }]) assert.equal(isPlainEmail(value), false);
});

test('what the page on security says that is not seen, is not seen', () => {
  const page = readFileSync(new URL('../../SECURITY.md', import.meta.url), 'utf8');
  const limits = /It\s+does \*\*not\*\* see:(.*?)\n- /s.exec(page)?.[1] ?? '';
  const examples = [...limits.matchAll(/`([^`]+)`/g)].map(([, text]) => text ?? '');
  assert.ok(examples.length >= 5);
  for (const text of examples) assert.deepEqual(findDestinations({ a: text }).destinations, [], text);
});
