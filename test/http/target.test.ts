import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { parseTarget } from '../../gateway/http/target.ts';

test('a plain target comes out as it came in', () => {
  assert.deepEqual(parseTarget('/', 100), { path: '/', query: '' });
  assert.deepEqual(parseTarget('/a/b?x=1&y=%2F%25?z', 100), { path: '/a/b', query: 'x=1&y=%2F%25?z' });
  assert.deepEqual(parseTarget('/a?', 100), { path: '/a', query: '' });
  assert.deepEqual(parseTarget('/caf%C3%A9/.well-known/a.b..c/~x:y@z', 100), {
    path: '/caf%C3%A9/.well-known/a.b..c/~x:y@z',
    query: '',
  });
});

test('a target that is let through means the same to a reader that decodes and tidies it', () => {
  const piece = fc.constantFrom(
    '/',
    '.',
    '..',
    '%2e',
    '%2F',
    '%5c',
    '\\',
    ';',
    '%3B',
    '%',
    '%25',
    'a',
    '%41',
    '%c3%a9',
    '%c0',
    '?',
    '#',
    '%00',
    ' ',
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 12 }), (pieces) => {
      const target = `/${pieces.join('')}`;
      const parsed = parseTarget(target, 1_000);
      if ('problem' in parsed) return;
      const url = new URL(target, 'http://host.invalid');
      assert.equal(url.pathname, parsed.path, 'a URL parser changes nothing');
      assert.equal(url.host, 'host.invalid');
      const segments = parsed.path.slice(1).split('/').map(decodeURIComponent);
      for (const segment of segments) assert.doesNotMatch(segment, /[/\\%;\p{Cc}]|^\.\.?$/u);
      assert.ok(segments.slice(0, -1).every((segment) => segment !== ''));
    }),
    { numRuns: 3_000 },
  );
});
