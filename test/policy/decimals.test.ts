import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { addTexts, compareDecimals, decimalText, isMore, sumDecimals } from '../../policy/conditions/decimals.ts';

/** Amounts of up to six places, as a number and as millionths. */
const amount: fc.Arbitrary<{ readonly number: number; readonly micros: bigint }> = fc
  .bigInt({ min: -(10n ** 14n), max: 10n ** 14n })
  .map((micros) => ({ number: Number(`${micros}e-6`), micros }));

function textOf(micros: bigint): string {
  const digits = (micros < 0n ? -micros : micros).toString().padStart(7, '0');
  const text = `${digits.slice(0, -6)}.${digits.slice(-6)}`.replace(/\.?0+$/, '');
  return micros < 0n ? `-${text}` : text;
}

test('a sum is exact, in whatever order it is made', () => {
  fc.assert(
    fc.property(fc.array(amount, { maxLength: 40 }), (amounts) => {
      const sum = sumDecimals(amounts.map(({ number }) => number));
      const exact = amounts.reduce((total, { micros }) => total + micros, 0n);
      assert.ok(sum !== undefined);
      assert.equal(String(sum), textOf(exact));
      const back = sumDecimals(amounts.map(({ number }) => number).reverse());
      assert.ok(back !== undefined && compareDecimals(back, sum) === 0);
    }),
  );
});

test('numbers are ordered as the decimals that they are written as', () => {
  const number = fc.oneof(
    fc.double({ noNaN: true, noDefaultInfinity: true }),
    fc.bigInt(),
    amount.map((one) => one.number),
  );
  fc.assert(
    fc.property(number, number, (a, b) => {
      const order = compareDecimals(a, b);
      assert.equal(Math.sign(order), -Math.sign(compareDecimals(b, a)) || 0);
      assert.equal(order === 0, compareDecimals(b, a) === 0);
      const [one, other] = [decimalText(a), decimalText(b)];
      if (one !== undefined && other !== undefined) assert.equal(order > 0, isMore(one, other));
    }),
  );
});

test('texts of amounts add up exactly', () => {
  fc.assert(
    fc.property(amount, amount, (a, b) => {
      assert.equal(addTexts(textOf(a.micros), textOf(b.micros)), textOf(a.micros + b.micros));
    }),
  );
});
