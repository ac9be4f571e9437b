import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Big } from 'big.js';
import fc from 'fast-check';
import { addDecimals, fromMicros, isOver, microsOf, subtractDecimals } from '../../gateway/store/decimal.ts';

/** Decimal texts short and long, some with more digits than a double holds. */
const decimal = fc
  .tuple(fc.bigInt({ min: -(10n ** 20n), max: 10n ** 20n }), fc.integer({ min: 0, max: 12 }))
  .map(([digits, scale]) => new Big(String(digits)).div(new Big(10).pow(scale)).toFixed(scale));
const small = fc
  .tuple(fc.integer({ min: -1_000_000, max: 1_000_000 }), fc.integer({ min: 0, max: 6 }))
  .map(([digits, scale]) => new Big(digits).div(new Big(10).pow(scale)).toFixed(scale));
const amount = fc.oneof(decimal, small);

describe('amounts', () => {
  test('are added, subtracted and compared as decimals whatever their size', () => {
    fc.assert(
      fc.property(amount, amount, (one, other) => {
        assert.equal(addDecimals(one, other), new Big(one).plus(other).toFixed());
        assert.equal(subtractDecimals(one, other), new Big(one).minus(other).toFixed());
        assert.equal(isOver(one, other), new Big(one).gt(other));
      }),
    );
  });

  test('in millionths are the same amounts', () => {
    fc.assert(
      fc.property(small, (text) => {
        const micros = microsOf(text);
        assert.ok(micros !== undefined);
        assert.ok(new Big(fromMicros(BigInt(micros))).eq(text));
      }),
    );
    for (const text of ['1e3', '', ' 1', '1.', '.5', '0.0000001', '1234567890', 'NaN', '+1', '0x1']) {
      assert.equal(microsOf(text), undefined, text);
    }
  });

  test('that are no numbers are refused', () => {
    for (const text of ['', 'twelve', '1,5', '1.2.3']) {
      assert.throws(() => addDecimals(text, '1'), text);
      assert.throws(() => isOver('1', text), text);
    }
  });
});
