import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CanonicalFault, canonicalize, quoteJson } from '../../receipts/canonical.ts';
import { parseJson } from '../../receipts/json.ts';

test('the example of RFC 8785 section 3.2.2 to 3.2.4', () => {
  // The RFC's first number (333333333.33333329) is more digits than a double holds, so it comes in as its double here.
  const value = {
    numbers: [333333333.3333333, 1e30, 4.5, 2e-3, 0.000000000000000000000000001],
    string: '\u20ac$\u000F\u000aA\'\u0042\u0022\u005c\\"/',
    literals: [null, true, false],
  };
  assert.equal(
    canonicalize(value),
    '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}',
  );
});

test('the sorting example of RFC 8785 section 3.2.3', () => {
  const value = parseJson(
    '{"\\u20ac":"Euro Sign","\\r":"Carriage Return","\\ufb33":"Hebrew Letter Dalet With Dagesh","1":"One","\\ud83d\\ude00":"Emoji: Grinning Face","\\u0080":"Control","\\u00f6":"Latin Small Letter O With Diaeresis"}',
  );
  const order = [...canonicalize(value).matchAll(/:"([^"]*)"/g)].map((match) => match[1]);
  assert.deepEqual(order, [
    'Carriage Return',
    'One',
    'Control',
    'Latin Small Letter O With Diaeresis',
    'Euro Sign',
    'Emoji: Grinning Face',
    'Hebrew Letter Dalet With Dagesh',
  ]);
});

test('the numbers of RFC 8785 appendix B', () => {
  const rows: readonly [bigint, string][] = [
    [0x0000000000000000n, '0'],
    [0x8000000000000000n, '0'],
    [0x0000000000000001n, '5e-324'],
    [0x8000000000000001n, '-5e-324'],
    [0x7fefffffffffffffn, '1.7976931348623157e+308'],
    [0xffefffffffffffffn, '-1.7976931348623157e+308'],
    [0x4340000000000000n, '9007199254740992'],
    [0xc340000000000000n, '-9007199254740992'],
    [0x4430000000000000n, '295147905179352830000'],
    [0x44b52d02c7e14af5n, '9.999999999999997e+22'],
    [0x44b52d02c7e14af6n, '1e+23'],
    [0x44b52d02c7e14af7n, '1.0000000000000001e+23'],
    [0x444b1ae4d6e2ef4en, '999999999999999700000'],
    [0x444b1ae4d6e2ef4fn, '999999999999999900000'],
    [0x444b1ae4d6e2ef50n, '1e+21'],
    [0x3eb0c6f7a0b5ed8cn, '9.999999999999997e-7'],
    [0x3eb0c6f7a0b5ed8dn, '0.000001'],
    [0x41b3de4355555553n, '333333333.3333332'],
    [0x41b3de4355555554n, '333333333.33333325'],
    [0x41b3de4355555555n, '333333333.3333333'],
    [0x41b3de4355555556n, '333333333.3333334'],
    [0x41b3de4355555557n, '333333333.33333343'],
    [0xbecbf647612f3696n, '-0.0000033333333333333333'],
    [0x43143ff3c1cb0959n, '1424953923781206.2'],
  ];
  for (const [bits, text] of rows) {
    const view = new DataView(new ArrayBuffer(8));
    view.setBigUint64(0, bits);
    assert.equal(canonicalize(view.getFloat64(0)), text);
  }
});

test('what has no canonical form is refused', () => {
  for (const value of [
    Number.NaN,
    Infinity,
    -Infinity,
    '\ud800',
    ['\udc00'],
    { a: `${'x'.repeat(80)}\ud800` },
    { '\ud800': 1 },
  ]) {
    assert.throws(() => canonicalize(value), CanonicalFault);
  }
  const notJson: unknown = { a: undefined };
  assert.throws(() => canonicalize(notJson as null), CanonicalFault);
});

test('a string is quoted alike on the short and the long way', () => {
  for (let unit = 0; unit < 0xd800; unit += unit < 300 ? 1 : 997) {
    const text = String.fromCharCode(unit);
    assert.equal(quoteJson(text), JSON.stringify(text));
    assert.equal(quoteJson(text.padEnd(70, 'x')), JSON.stringify(text.padEnd(70, 'x')));
  }
});
