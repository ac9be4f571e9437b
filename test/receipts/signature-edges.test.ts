import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { nodeCrypto } from '../../receipts/crypto-node.ts';
import { portableCrypto } from '../../receipts/crypto-portable.ts';

/** The order of the group and the prime of the field (RFC 8032 section 5.1). */
const L = 2n ** 252n + 27742317777372353535851937790883648493n;
const P = 2n ** 255n - 19n;

const both = [nodeCrypto, portableCrypto];
const KEY = nodeCrypto.signingKey(Uint8Array.from({ length: 32 }, (_, i) => 7 * i + 1));
const MESSAGE = Buffer.from('refund 40.00 of order A-1000');

function fromLittleEndian(bytes: Uint8Array): bigint {
  return bytes.reduceRight((n, byte) => n * 256n + BigInt(byte), 0n);
}

function toLittleEndian(n: bigint): Uint8Array {
  return Uint8Array.from({ length: 32 }, (_, i) => Number((n >> BigInt(8 * i)) & 255n));
}

const SIGNATURE = Uint8Array.from(KEY.sign(MESSAGE));
const R = SIGNATURE.slice(0, 32);
const S = SIGNATURE.slice(32);
const s = fromLittleEndian(S);

function flipped(bit: number): Uint8Array {
  const changed = SIGNATURE.slice();
  changed[bit >> 3] = (changed[bit >> 3] ?? 0) ^ (1 << (bit & 7));
  return changed;
}

const join = (...parts: readonly (Uint8Array | readonly number[])[]): Uint8Array =>
  Uint8Array.from(parts.flatMap((part) => [...part]));

/** Numbers that are special to the curve, the field or a 32-byte word, as `R` or as `S`. */
const SPECIAL: readonly (readonly [string, bigint])[] = [
  ['0', 0n],
  ['1', 1n],
  ['L - 1', L - 1n],
  ['L', L],
  ['L + 1', L + 1n],
  ['p - 1', P - 1n],
  ['p', P],
  ['p + 1', P + 1n],
  ['2^255 - 1', 2n ** 255n - 1n],
  ['2^256 - 1', 2n ** 256n - 1n],
  ['the y of 1 with the sign of x set', 1n + 2n ** 255n],
];

/** Kind of malformed signature → the signature. Every one of them must be refused by both implementations. */
const INVALID = new Map<string, Uint8Array>([
  ['empty', join()],
  ['S missing', R],
  ['one byte short', SIGNATURE.slice(0, 63)],
  ['one byte long', join(SIGNATURE, [0])],
  ['a byte before', join([0], SIGNATURE)],
  ['a byte before S', join(R, [0], S)],
  ['the key appended', join(SIGNATURE, KEY.publicBytes)],
  ['a byte dropped inside R', join(R.slice(0, 31), S)],
  [
    'every bit of R flipped',
    join(
      R.map((byte) => byte ^ 255),
      S,
    ),
  ],
  ['R and S exchanged', join(S, R)],
  ...SPECIAL.flatMap(([r, rn]) =>
    SPECIAL.map(([name, sn]) => [`R = ${r}, S = ${name}`, join(toLittleEndian(rn), toLittleEndian(sn))] as const),
  ),
  ...SPECIAL.map(([name, n]) => [`R kept, S = ${name}`, join(R, toLittleEndian(n))] as const),
  ...SPECIAL.map(([name, n]) => [`R = ${name}, S kept`, join(toLittleEndian(n), S)] as const),
  // S + mL is the same scalar: only the range check refuses it (RFC 8032 section 5.1.7).
  ...Array.from({ length: 14 }, (_, m) => [`S + ${m + 1} L`, join(R, toLittleEndian(s + BigInt(m + 1) * L))] as const),
  ...[253, 254, 255].map((bit) => [`S + 2^${bit}`, join(R, toLittleEndian(s + 2n ** BigInt(bit)))] as const),
  ['S + p', join(R, toLittleEndian(s + P))],
  ...Array.from({ length: 512 }, (_, bit) => [`bit ${bit} flipped`, flipped(bit)] as const),
]);

test('every malformed spelling of a signature is refused by both implementations', () => {
  const keys = both.map((crypto) => crypto.publicKey(KEY.publicBytes));
  for (const key of keys) assert.ok(key.verify(MESSAGE, SIGNATURE));
  assert.ok(INVALID.size > 680);
  // Each of the many is put to the fast one; the slow one is asked those that are not a flipped bit, and some of these.
  for (const [kind, signature] of INVALID) {
    const some = !kind.startsWith('bit ') || Number(kind.split(' ')[1]) % 16 === 0;
    for (const key of some ? keys : keys.slice(0, 1)) assert.ok(!key.verify(MESSAGE, signature), kind);
  }
});

/**
 * The published Ed25519 vectors of Project Wycheproof (`ed25519_test.json`, Apache-2.0) are no package and not part of this
 * repository: the variable names a copy.
 */
const published = process.env['TOOLGATE_WYCHEPROOF'];
const skip =
  published === undefined ? 'TOOLGATE_WYCHEPROOF does not name a copy of Wycheproof’s ed25519_test.json' : false;

interface Published {
  readonly numberOfTests: number;
  readonly testGroups: readonly {
    readonly publicKey: { readonly pk: string };
    readonly tests: readonly {
      readonly tcId: number;
      readonly comment: string;
      readonly msg: string;
      readonly sig: string;
      readonly result: 'valid' | 'invalid';
    }[];
  }[];
}

test('Wycheproof’s vectors are answered as they say by both implementations', { skip }, (t) => {
  const { numberOfTests, testGroups } = JSON.parse(readFileSync(published ?? '', 'utf8')) as Published;
  let run = 0;
  for (const { publicKey, tests } of testGroups) {
    const keys = both.map((crypto) => crypto.publicKey(Buffer.from(publicKey.pk, 'hex')));
    for (const { tcId, comment, msg, sig, result } of tests) {
      for (const key of keys) {
        const verified = key.verify(Buffer.from(msg, 'hex'), Buffer.from(sig, 'hex'));
        assert.equal(verified, result === 'valid', `${tcId} ${comment}`);
      }
      run += 1;
    }
  }
  t.diagnostic(`${run} vectors`);
  assert.equal(run, numberOfTests);
  assert.ok(run > 100);
});
