import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { KEYS, shopWorld, startWorld, type World } from '../e2e/world.ts';

let world: World;
before(async () => {
  world = await startWorld();
});
after(() => world.close());

const get = (path: string): ReturnType<World['gateway']['request']> => world.gateway.request('GET', path);

describe('the files of the approvers page', () => {
  test('are served to anyone, with nothing in them that a browser could be led astray by', async () => {
    const page = await get('/console');
    assert.equal(page.status, 200);
    const files = [...page.text.matchAll(/(?:src|href)="(\/console\/[^"]+\.(?:js|css))"/g)].map(
      ([, path]) => path ?? '',
    );
    assert.deepEqual(files, ['/console/console.css', '/console/console.js']);
    const all = new Set(files);
    // The scripts' own imports too, and what those import.
    for (const path of all) {
      const { text } = await get(path);
      for (const [, name] of text.matchAll(/from '\.\/([^']+)'/g)) all.add(`/console/${name}`);
    }
    assert.ok(all.size > 5);
    for (const path of ['/console', '/console/', '/console/decided', '/console/confirmations/abc', ...all]) {
      const { status, headers, text } = await get(path);
      assert.equal(status, 200, path);
      const policy = headers.get('content-security-policy')?.split('; ') ?? [];
      for (const directive of [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "connect-src 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
        "form-action 'none'",
      ]) {
        assert.ok(policy.includes(directive), `${path}: ${directive}`);
      }
      assert.equal(headers.get('x-content-type-options'), 'nosniff');
      assert.equal(headers.get('cache-control'), 'no-store');
      assert.equal(headers.get('referrer-policy'), 'no-referrer');
      const type = path.endsWith('.js') ? 'text/javascript' : path.endsWith('.css') ? 'text/css' : 'text/html';
      assert.equal(headers.get('content-type'), `${type}; charset=utf-8`);
      if (type === 'text/html') {
        assert.doesNotMatch(text, /<script(?![^>]* src=)|<style|\sstyle=|\son[a-z]+=/i);
        assert.equal(text, page.text);
      }
      assert.doesNotMatch(text, /innerHTML|outerHTML|insertAdjacentHTML|document\.write|https?:\/\//);
    }
  });

  test('are those alone: no other path, no other method, nothing of the code beside them', async () => {
    for (const path of [
      '/console/app.ts',
      '/console/index.html',
      '/console/x/y',
      '/console/confirmations',
      '/console/confirmations/',
      '/console/confirmations/a/b',
      '/consoles',
    ]) {
      assert.equal((await get(path)).status, 404, path);
    }
    const posted = await world.gateway.request('POST', '/console', { body: {} });
    assert.deepEqual([posted.status, posted.headers.get('allow')], [405, 'GET']);
  });
});

/** Where a held write says that it is decided. */
async function approveAt(): Promise<string> {
  const { check } = await world.call({ tool: 'shop/note', arguments: { text: 'x' } }, KEYS.desk);
  const { id, approve_at: at = '' } = { id: '', ...check.confirmation };
  assert.ok(at.endsWith(`/${id}`), at);
  return at.slice(0, -id.length - 1);
}

test('a held call points at the page, at the address that the config says, and at the API where the page is off', async () => {
  const own = world.gateway.url;
  const reconfigured = async (change: object): Promise<string> => {
    const problems = await world.gateway.reconfigure(shopWorld(world.shop.url, { ...change }));
    assert.deepEqual(
      problems.filter(({ severity }) => severity === 'error'),
      [],
    );
    return approveAt();
  };
  assert.equal(await reconfigured({}), `${own}/console/confirmations`);
  assert.equal(
    await reconfigured({ console: { url: 'https://gate.example/' } }),
    'https://gate.example/console/confirmations',
  );
  assert.equal(await reconfigured({ console: false }), `${own}/v1/confirmations`);
  for (const path of ['/console', '/console/console.js', '/console/confirmations/abc']) {
    const { status, json } = await get(path);
    assert.deepEqual([status, (json as { type: string }).type], [404, 'urn:toolgate:no_route']);
  }
  assert.equal(await reconfigured({ console: true }), `${own}/console/confirmations`);
  assert.equal((await get('/console')).status, 200);
});
