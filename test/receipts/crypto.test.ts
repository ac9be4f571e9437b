import assert from 'node:assert/strict';
import { createPrivateKey, createPublicKey, generateKeyPairSync } from 'node:crypto';
import { test } from 'node:test';
import { Point } from '@noble/ed25519';
import { sha512 } from '@noble/hashes/sha2.js';
import fc from 'fast-check';
import { encodeBase64url } from '../../receipts/base64url.ts';
import { nodeCrypto } from '../../receipts/crypto-node.ts';
import { portableCrypto } from '../../receipts/crypto-portable.ts';
import {
  checkPublicKey,
  KeyFault,
  parsePublicKey,
  parseSigningKey,
  renderPublicKeyPem,
  renderSigningKeyPem,
} from '../../receipts/keys.ts';

const ORDER = 2n ** 252n + 27742317777372353535851937790883648493n;
const hex = (text: string): Uint8Array => new Uint8Array(Buffer.from(text, 'hex'));
const both = [nodeCrypto, portableCrypto];

test('the first three test vectors of RFC 8032 section 7.1', () => {
  const rows = [
    [
      '9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60',
      'd75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a',
      '',
      'e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b',
    ],
    [
      '4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb',
      '3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c',
      '72',
      '92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00',
    ],
    [
      'c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7',
      'fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025',
      'af82',
      '6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a',
    ],
  ] as const;
  for (const [seed, publicKey, message, signature] of rows) {
    for (const crypto of both) {
      const key = crypto.signingKey(hex(seed));
      assert.deepEqual(Buffer.from(key.publicBytes).toString('hex'), publicKey);
      assert.deepEqual(Buffer.from(key.sign(hex(message))).toString('hex'), signature);
      assert.ok(crypto.publicKey(hex(publicKey)).verify(hex(message), hex(signature)));
      assert.ok(!crypto.publicKey(hex(publicKey)).verify(hex(`${message}00`), hex(signature)));
    }
  }
});

test('node and noble sign alike, accept each other and refuse every changed bit', () => {
  fc.assert(
    fc.property(
      fc.uint8Array({ minLength: 32, maxLength: 32 }),
      fc.uint8Array({ maxLength: 80 }),
      fc.nat(511),
      (seed, message, bit) => {
        const [a, b] = [nodeCrypto.signingKey(seed), portableCrypto.signingKey(seed)];
        const signature = a.sign(message);
        assert.deepEqual(new Uint8Array(signature), b.sign(message));
        assert.deepEqual(a.publicBytes, b.publicBytes);
        assert.deepEqual(new Uint8Array(nodeCrypto.sha256(message)), portableCrypto.sha256(message));
        const changed = Uint8Array.from(signature);
        changed[bit >> 3] = (changed[bit >> 3] ?? 0) ^ (1 << (bit & 7));
        for (const crypto of both) {
          const key = crypto.publicKey(a.publicBytes);
          assert.ok(key.verify(message, signature));
          assert.ok(!key.verify(message, changed));
          assert.ok(!key.verify(message, signature.subarray(0, 63)));
          assert.ok(!key.verify(message, new Uint8Array([...signature, 0])));
          assert.ok(!key.verify(message, new Uint8Array()));
        }
      },
    ),
    { numRuns: 15 },
  );
});

test('a signature with S and the group’s order added is refused (RFC 8032 section 5.1.7)', () => {
  const key = nodeCrypto.signingKey(new Uint8Array(32).fill(3));
  const message = hex('0102');
  const signature = Uint8Array.from(key.sign(message));
  const raised = fromLittleEndian(signature.subarray(32)) + ORDER;
  signature.set(toLittleEndian(raised), 32);
  for (const crypto of both) assert.ok(!crypto.publicKey(key.publicBytes).verify(message, signature));
});

test('a signature that holds only up to the cofactor is refused by both', () => {
  // A key with a part of order 8: kA has such a part unless 8 divides k, and the equation with the cofactor hides it.
  const order8 = Point.fromHex('c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a');
  const secret = 12345678901234567890n;
  const key = Point.BASE.multiply(secret).add(order8).toBytes();
  const verdicts = [nodeCrypto.publicKey(key), portableCrypto.publicKey(key)];
  let disagreed = 0;
  for (let i = 0; i < 24; i++) {
    const r = BigInt(i + 2);
    const rBytes = Point.BASE.multiply(r).toBytes();
    const message = Uint8Array.of(i);
    const k = challenge(rBytes, key, message);
    const s = (r + k * secret) % ORDER;
    const signature = new Uint8Array([...rBytes, ...toLittleEndian(s)]);
    const expected = k % 8n === 0n;
    if (!expected) disagreed++;
    for (const verdict of verdicts) assert.equal(verdict.verify(message, signature), expected);
  }
  assert.ok(disagreed > 0);
});

function challenge(r: Uint8Array, key: Uint8Array, message: Uint8Array): bigint {
  return fromLittleEndian(sha512(new Uint8Array([...r, ...key, ...message]))) % ORDER;
}

function fromLittleEndian(bytes: Uint8Array): bigint {
  return bytes.reduceRight((n, byte) => n * 256n + BigInt(byte), 0n);
}

function toLittleEndian(n: bigint): Uint8Array {
  return Uint8Array.from({ length: 32 }, (_, i) => Number((n >> BigInt(8 * i)) & 255n));
}

test('the fourteen encodings of small order are refused as keys', () => {
  const encodings = [
    '0000000000000000000000000000000000000000000000000000000000000000',
    '0100000000000000000000000000000000000000000000000000000000000000',
    '26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05',
    'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a',
    'ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
    'edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
    'eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
  ].flatMap((low) => [
    low,
    low.slice(0, 62) + (Number.parseInt(low.slice(62), 16) | 0x80).toString(16).padStart(2, '0'),
  ]);
  assert.equal(new Set(encodings).size, 14);
  for (const encoding of encodings) {
    for (const crypto of both)
      assert.throws(() => crypto.publicKey(hex(encoding)), { name: 'KeyFault', code: 'small_order' });
  }
});

test('a key that is not 32 bytes, not canonical or not on the curve is refused', () => {
  assert.throws(() => checkPublicKey(new Uint8Array(31)), { code: 'length' });
  assert.throws(() => checkPublicKey(new Uint8Array(33)), { code: 'length' });
  // y = 2 is on no point; p + 3 and on are spellings of y = 3 and on that wrap around.
  assert.throws(() => checkPublicKey(hex(`02${'00'.repeat(31)}`)), { code: 'point' });
  assert.throws(() => checkPublicKey(hex(`f0${'ff'.repeat(30)}7f`)), { code: 'point' });
  for (const crypto of both) assert.throws(() => crypto.signingKey(new Uint8Array(31)), { code: 'length' });
});

test('key files are those that node:crypto writes, and are read again', () => {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519');
  const publicPem = String(publicKey.export({ type: 'spki', format: 'pem' }));
  const privatePem = String(privateKey.export({ type: 'pkcs8', format: 'pem' }));
  const bytes = parsePublicKey(publicPem);
  const seed = parseSigningKey(privatePem);
  assert.equal(renderPublicKeyPem(bytes), publicPem);
  assert.equal(renderSigningKeyPem(seed), privatePem);
  assert.deepEqual(nodeCrypto.signingKey(seed).publicBytes, bytes);
  assert.deepEqual(parsePublicKey(`  ${encodeBase64url(bytes)}\n`), bytes);
  assert.deepEqual(parsePublicKey(publicPem.replaceAll('\n', '\r\n')), bytes);
  assert.ok(createPublicKey(renderPublicKeyPem(bytes)).equals(publicKey));
  assert.ok(createPrivateKey(renderSigningKeyPem(seed)).equals(privateKey));
});

test('what is no Ed25519 key file is refused without a word of what it holds', () => {
  const { publicKey, privateKey } = generateKeyPairSync('x25519');
  const publicPem = String(publicKey.export({ type: 'spki', format: 'pem' }));
  const privatePem = String(privateKey.export({ type: 'pkcs8', format: 'pem' }));
  for (const text of [
    '',
    'AAAA',
    publicPem,
    privatePem,
    '-----BEGIN PUBLIC KEY-----',
    '-----BEGIN PUBLIC KEY-----\n!\n-----END PUBLIC KEY-----',
  ]) {
    assert.throws(() => parsePublicKey(text), KeyFault);
    assert.throws(() => parseSigningKey(text), KeyFault);
  }
});
