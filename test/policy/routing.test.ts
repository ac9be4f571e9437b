import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Routable, RoutingError } from '../../policy/route-template.ts';
import { Router } from '../../policy/routing.ts';
import { normalisePath } from '../../policy/target.ts';
import { threadMs } from '../thread-time.ts';

function operation(method: string, pathTemplate: string): Routable {
  return { name: `${method} ${pathTemplate}`, method, pathTemplate };
}

function find(router: Router<Routable>, method: string, target: string): string {
  const path = normalisePath(target);
  if (!path.ok) return path.fault;
  const found = router.match(method, path.segments);
  if (found.kind !== 'match') return found.kind;
  const values = [...found.rawParameters].map(([name, value]) => `${name}=${value}`);
  return [found.operation.pathTemplate, ...values].join(' ');
}

test('targets that two readers could take for two paths are refused', () => {
  const cases: readonly [string, string][] = [
    ['http://other.invalid/users', 'form'],
    ['users', 'form'],
    ['*', 'form'],
    ['', 'form'],
    ['/users/%2e%2e/admin', 'dots'],
    ['/users/../admin', 'dots'],
    ['/users/./x', 'dots'],
    ['/users/.%2e', 'dots'],
    ['/users/..%2fadmin', 'slash'],
    ['/users%2Fadmin', 'slash'],
    ['/users//admin', 'slash'],
    ['//users', 'slash'],
    ['/users\\admin', 'slash'],
    ['/users%5cadmin', 'slash'],
    ['/users;x=1', 'parameters'],
    ['/users/..;/admin', 'parameters'],
    ['/users/%00', 'control'],
    ['/users/%0d%0ax', 'control'],
    ['/users/%25', 'percent'],
    ['/users/%252e%252e', 'percent'],
    ['/users/%', 'encoding'],
    ['/users/%zz', 'encoding'],
    ['/users/%ff', 'encoding'],
    ['/users/%c0%af', 'encoding'],
    ['/users#x', 'character'],
    ['/users?a=1#x', 'character'],
    ['/us ers', 'character'],
    ['/usérs', 'character'],
    ['/users?q=\u0000', 'character'],
    [`/${'a/'.repeat(70)}`, 'length'],
  ];
  for (const [target, fault] of cases) {
    const read = normalisePath(target);
    assert.equal(read.ok ? 'accepted' : read.fault, fault, target);
  }
  for (const target of ['/', '/users', '/users/', '/a%20b/c:d@e', '/x?y=%2F&z=a+b&p[x]=1']) {
    assert.equal(normalisePath(target).ok, true, target);
  }
});

test('paths match exactly, and the concrete template wins', () => {
  const router = new Router([
    operation('GET', '/users/{id}'),
    operation('GET', '/users/me'),
    operation('DELETE', '/users/{id}'),
    operation('GET', '/users/{id}/keys/{key}'),
    operation('GET', '/files/{name}.json'),
    operation('GET', '/files/{name}'),
    operation('GET', '/compare/{base}...{head}'),
    operation('GET', '/'),
  ]);
  assert.equal(find(router, 'GET', '/users/me'), '/users/me');
  assert.equal(find(router, 'GET', '/users/7'), '/users/{id} id=7');
  assert.equal(find(router, 'DELETE', '/users/me'), '/users/{id} id=me');
  assert.equal(find(router, 'GET', '/users/a%20b/keys/c'), '/users/{id}/keys/{key} id=a%20b key=c');
  assert.equal(find(router, 'GET', '/files/a.json'), '/files/{name}.json name=a');
  assert.equal(find(router, 'GET', '/files/a.xml'), '/files/{name} name=a.xml');
  assert.equal(find(router, 'GET', '/compare/a...b'), '/compare/{base}...{head} base=a head=b');
  assert.equal(find(router, 'GET', '/'), '/');
  for (const path of ['/Users/me', '/users/me/', '/%75sers/me', '/users', '/users/', '/nothing']) {
    assert.equal(find(router, 'GET', path), 'unknown', path);
  }
  assert.equal(find(router, 'POST', '/users/me'), 'method');
});

test('templates that could mean the same request are an error that names both', () => {
  for (const [a, b] of [
    ['/a/{x}', '/a/{y}'],
    ['/a/{x}', '/{y}/b'],
    ['/{x}/b/c', '/a/{y}/c'],
    ['/f/{a}.json', '/f/data.{b}'],
  ] as const) {
    assert.throws(
      () => new Router([operation('GET', a), operation('GET', b)]),
      (error) => error instanceof RoutingError && error.message.includes(a) && error.message.includes(b),
      `${a} ${b}`,
    );
    assert.doesNotThrow(() => new Router([operation('GET', a), operation('PUT', b)]));
  }
  assert.doesNotThrow(
    () => new Router([operation('GET', '/a/{x}'), operation('GET', '/{y}/b'), operation('GET', '/a/b')]),
  );
  assert.doesNotThrow(() => new Router([operation('GET', '/a/{x}/c'), operation('GET', '/{y}/b/d')]));
});

test('templates that cross may stand in a document; the requests that both match are refused', () => {
  const crossing = [operation('GET', '/a/{x}'), operation('GET', '/{y}/b')];
  const router = new Router(crossing, { crossing: 'refuse_request' });
  assert.equal(find(router, 'GET', '/a/b'), 'ambiguous');
  assert.equal(find(router, 'GET', '/a/c'), '/a/{x} x=c');
  assert.equal(find(router, 'GET', '/c/b'), '/{y}/b y=c');
  assert.throws(
    () => new Router([operation('GET', '/a/{x}'), operation('GET', '/a/{y}')], { crossing: 'refuse_request' }),
    RoutingError,
  );
});

test('broken templates are named', () => {
  for (const path of ['a', '/a//b', '/{', '/{}', '/a}', '/{x}{y}', '/{x}/{x}', '/a/../b', '/{a{b}}']) {
    assert.throws(() => new Router([operation('GET', path)]), RoutingError, path);
  }
});

test('the cost of a match does not grow with the number of operations', () => {
  const templates = (count: number): Routable[] =>
    Array.from({ length: count }, (_, i) => operation('GET', `/v1/things${i}/{id}/parts/{part}`));
  const time = (count: number): number => {
    const router = new Router(templates(count));
    const path = normalisePath(`/v1/things${count - 1}/5/parts/6`);
    assert.ok(path.ok);
    const rounds = Array.from({ length: 5 }, () => {
      const start = threadMs();
      for (let i = 0; i < 20_000; i++) router.match('GET', path.segments);
      return threadMs() - start;
    });
    return Math.min(...rounds);
  };
  time(10);
  const [few, many] = [time(10), time(10_000)];
  assert.ok(many < few * 5 + 20, `${few} ms against ${many} ms`);
});
