import assert from 'node:assert/strict';
import { test } from 'node:test';
import { matchesPass, mayCover, parsePassPattern, passPatternFault } from '../../policy/pass-pattern.ts';
import { parseTemplate } from '../../policy/route-template.ts';

test('what a path of `pass` may be written like', () => {
  for (const good of ['/', '/health', '/a/*/b', '/a/**', '/**', '/socket.io/', "/a!$&'()+,=:@-._~"]) {
    assert.equal(passPatternFault(good), undefined, good);
  }
  const bad = [
    'health',
    '//',
    '/a//b',
    '/a/./b',
    '/..',
    '/a*',
    '/**/a',
    '/***',
    '/%61',
    '/a;b',
    '/a?b',
    '/a#b',
    '/a\\b',
    '/é',
  ];
  for (const text of bad) assert.notEqual(passPatternFault(text), undefined, text);
});

const MATCHES: readonly (readonly [pattern: string, path: string, matches: boolean])[] = [
  ['/health', '/health', true],
  ['/health', '/Health', false],
  ['/health', '/health/', false],
  ['/health', '/health/x', false],
  ['/health', '/%68ealth', false],
  ['/', '/', true],
  ['/', '/x', false],
  ['/a/*', '/a/b', true],
  ['/a/*', '/a/%c3%a9', true],
  ['/a/*', '/a/', false],
  ['/a/*', '/a/b/', false],
  ['/a/*', '/a/b;c', false],
  ['/*/b', '/a/b', true],
  ['/a/**', '/a', false],
  ['/a/**', '/a/', false],
  ['/a/**', '/a/b', true],
  ['/a/**', '/a/b/', true],
  ['/a/**', '/a/b/c', true],
  ['/a/**', '/a/b;c', false],
  ['/a/**', '/ab/c', false],
  // What ends a path, or parts it, once it is decoded or what looks like it is taken for it.
  ['/a/**', '/a/%3fb', false],
  ['/a/**', '/a/%23', false],
  ['/a/*/c', '/a/7%3F/c', false],
  ['/a/**', '/a/b%EF%BC%8F..%EF%BC%8Fc', false],
  ['/a/**', '/a/b%EF%BC%BCc', false],
  ['/a/**', '/a/b%E2%88%95c', false],
  ['/a/**', '/a/b%E2%81%84c', false],
  ['/a/**', '/a/b%CD%BEc', false],
  ['/a/**', '/a/%EF%BC%852e', false],
  // What is nothing, or dots, once spaces and dots at its end are gone.
  ['/a/**', '/a/..%20/c', false],
  ['/a/**', '/a/.../c', false],
  ['/a/**', '/a/%EF%BD%A1%E3%80%82/c', false],
  ['/a/**', '/a/%20', false],
  ['/a/**', '/a/%E2%80%A5/c', false],
  ['/a/**', '/a/%E2%80%8B..%E3%80%80/c', false],
  ['/a/**', '/a/.well-known/b..c/d%20e', true],
  ['/a/', '/a/', true],
  ['/a/', '/a', false],
];

test('a path is let through letter by letter or not at all', () => {
  for (const [pattern, path, matches] of MATCHES) {
    assert.equal(matchesPass(parsePassPattern(pattern), path.slice(1).split('/')), matches, `${pattern} ${path}`);
  }
});

const COVERS: readonly (readonly [pattern: string, template: string, covers: boolean])[] = [
  ['/orders', '/orders', true],
  ['/Orders', '/orders', true],
  ['/orders/', '/orders', true],
  ['/orders', '/orders/', true],
  ['/orders', '/%6Frders', true],
  ['/orders', '/order', false],
  ['/aba', '/a', false],
  ['/orders/*', '/orders', false],
  ['/orders/**', '/orders', false],
  ['/orders/**', '/orders/{id}', true],
  ['/orders/**', '/orders/{id}/items', true],
  ['/**', '/orders', true],
  ['/*', '/orders', true],
  ['/orders/export', '/orders/{id}', true],
  ['/orders/export', '/orders/{id}.json', false],
  ['/orders/7.JSON', '/orders/{id}.json', true],
  ['/orders/7.json', '/orders/{id}.json/{x}', false],
  ['/orders/v1-x', '/orders/v{n}-{m}', true],
  ['/*/search', '/{kind}/Search', true],
  ['/*/search', '/{kind}/find', false],
  ['/', '/', true],
  ['/', '/{x}', false],
];

test('a pattern that might reach a tool says so, whatever a backend makes of case, encoding and closing slashes', () => {
  for (const [pattern, pathTemplate, covers] of COVERS) {
    const template = parseTemplate({ name: 'x', method: 'GET', pathTemplate });
    assert.equal(mayCover(parsePassPattern(pattern), template), covers, `${pattern} ${pathTemplate}`);
  }
});
