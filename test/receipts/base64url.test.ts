import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { decodeBase64url, encodeBase64url, isBase64url } from '../../receipts/base64url.ts';

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';

test('bytes are written as node:buffer writes them and come back', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 100 }), (bytes) => {
      const text = encodeBase64url(bytes);
      assert.equal(text, Buffer.from(bytes).toString('base64url'));
      assert.deepEqual(decodeBase64url(text), bytes);
      assert.deepEqual(decodeBase64url(text, bytes.length), bytes);
      assert.equal(decodeBase64url(text, bytes.length + 1), undefined);
      assert.ok(isBase64url(text, bytes.length));
      assert.ok(!isBase64url(text, bytes.length + 1));
    }),
  );
});

test('a text is taken only where it is what its bytes are written as', () => {
  const characters = fc.constantFrom(...ALPHABET, '=', '+', '/', ' ', '\n', '\u0141', '.');
  fc.assert(
    fc.property(fc.array(characters, { maxLength: 8 }), (parts) => {
      const text = parts.join('');
      const canonical = Buffer.from(text, 'base64url').toString('base64url') === text;
      const bytes = decodeBase64url(text);
      assert.equal(bytes !== undefined, canonical);
      if (bytes !== undefined) assert.ok(isBase64url(text, bytes.length));
      else for (let n = 0; n < 8; n++) assert.ok(!isBase64url(text, n));
    }),
    { numRuns: 5000 },
  );
});

test('of the sixteen last characters that decode a 64-byte text alike, one is taken', () => {
  const text = encodeBase64url(new Uint8Array(64).fill(0xfb));
  const group = ALPHABET.indexOf(text.slice(-1)) & ~15;
  const taken = Array.from({ length: 16 }, (_, i) => text.slice(0, -1) + ALPHABET.charAt(group + i)).filter(
    (spelling) => {
      assert.deepEqual(Buffer.from(spelling, 'base64url'), Buffer.from(text, 'base64url'));
      assert.equal(isBase64url(spelling, 64), decodeBase64url(spelling, 64) !== undefined);
      return decodeBase64url(spelling, 64) !== undefined;
    },
  );
  assert.deepEqual(taken, [text]);
});
