import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { matchesGlob, wordsFor } from '../../gateway/catalogue/words.ts';
import { draftConfigText } from '../../gateway/config/load.ts';
import { ProblemLog } from '../../gateway/config/problem.ts';

const TEXT = `agents: {desk: {}}
routes:
  - name: shop
    upstream: http://127.0.0.1:9100
    http: [{name: get_order, method: GET, path: /x}]
    tools:
      - {name: get_order, timeout: 1s}
      - {name: "get_*", timeout: 2s, sends_out: true, after: [a]}
      - {name: "*", timeout: 3s, sends_out: false, confidential: true, after: [b]}
`;

test('the most specific entry wins, word by word, wherever it stands', () => {
  const { draft } = draftConfigText('words.yaml', TEXT, { env: {} });
  const route = draft?.routes[0];
  assert.ok(draft !== undefined && route !== undefined);
  const log = new ProblemLog(draft.positionOf);
  const words = wordsFor(route, 'get_order', ['routes', 0, 'http', 0], log);
  assert.deepEqual(words.said, { timeout: '1s', sends_out: true, after: ['a'], confidential: true });
  assert.deepEqual(words.pathOf('timeout'), ['routes', 0, 'tools', 0, 'timeout']);
  assert.deepEqual(words.pathOf('confidential'), ['routes', 0, 'tools', 2, 'confidential']);
  assert.deepEqual(words.pathOf('undo'), ['routes', 0, 'http', 0]);
  assert.equal(words.isExact('timeout'), true);
  assert.equal(words.isExact('sends_out'), false);
  assert.deepEqual(wordsFor(route, 'other', [], log).said, {
    timeout: '3s',
    sends_out: false,
    confidential: true,
    after: ['b'],
  });
  assert.deepEqual(log.problems, []);
});

test('a glob matches exactly what the regular expression of the same meaning matches', () => {
  const letters = fc.array(fc.constantFrom('a', 'b', '.'), { maxLength: 8 }).map((parts) => parts.join(''));
  const globs = fc.array(fc.constantFrom('a', 'b', '.', '*', '?'), { maxLength: 6 }).map((parts) => parts.join(''));
  fc.assert(
    fc.property(globs, letters, (glob, name) => {
      const pattern = glob.replaceAll('.', '\\.').replace(/\*+/g, '.*').replaceAll('?', '.').replaceAll('\\\\.', '\\.');
      assert.equal(matchesGlob(glob, name), new RegExp(`^${pattern}$`).test(name));
    }),
    { numRuns: 2000 },
  );
});

test('a glob of many stars takes no longer than the lengths multiplied', () => {
  assert.equal(matchesGlob('*a'.repeat(60), 'b'.repeat(10_000)), false);
});
