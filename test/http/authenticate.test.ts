import assert from 'node:assert/strict';
import { hash } from 'node:crypto';
import { test } from 'node:test';
import { approverOf, callerOf, createAuthenticator } from '../../gateway/http/authenticate.ts';
import { createOriginCheck } from '../../gateway/http/origin.ts';

const AGENTS = new Set(['desk', 'billing']);

function digest(key: string): string {
  return `sha256:${hash('sha256', key, 'hex')}`;
}

const desk = { digest: digest('key-1'), name: 'desk', host: false, agents: new Set(['desk']) };
const app = {
  digest: digest('key-2').toUpperCase().replace('SHA256', 'sha256'),
  name: 'shop-app',
  host: true,
  agents: AGENTS,
};
const ana = { name: 'ana', digests: [digest('key-3'), digest('key-4')] };

test('each key is known by its digest, as who it belongs to', () => {
  const authenticate = createAuthenticator({ credentials: [desk, app], approvers: [ana], agents: AGENTS });
  const who = (key: string): unknown => authenticate(`Bearer ${key}`);
  assert.deepEqual(who('key-1'), { kind: 'caller', caller: { name: 'desk', host: false, agents: desk.agents } });
  assert.deepEqual(who('key-2'), { kind: 'caller', caller: { name: 'shop-app', host: true, agents: AGENTS } });
  assert.deepEqual(who('key-3'), { kind: 'approver', name: 'ana' });
  assert.deepEqual(who('key-4'), { kind: 'approver', name: 'ana' });
  assert.deepEqual(authenticate('bearer key-1'), who('key-1'));
});

test('anything else is 401', () => {
  const authenticate = createAuthenticator({ credentials: [desk], approvers: [ana], agents: AGENTS });
  for (const value of [
    undefined,
    '',
    'Bearer',
    'Bearer ',
    'Bearer key-2',
    'Bearer key-1,key-1',
    'Bearer key-1 key-1',
    'Basic key-1',
    'key-1',
    `Bearer ${'x'.repeat(5_000)}`,
    `Bearer ${desk.digest}`,
    `Bearer ${desk.digest.slice(7)}`,
  ]) {
    const identity = authenticate(value);
    assert.ok('problem' in identity, value);
    assert.deepEqual([identity.problem.status, identity.problem.code], [401, 'no_credential']);
    assert.doesNotMatch(identity.problem.detail, /key-/);
  }
});

test('what a connection showed last spares its digest, and lends nothing to another key or connection', () => {
  const authenticate = createAuthenticator({ credentials: [desk, app], approvers: [], agents: AGENTS });
  const connection = {};
  const first = authenticate('Bearer key-1', connection);
  assert.equal(authenticate('Bearer key-1', connection), first);
  assert.notEqual(authenticate('Bearer key-2', connection), first);
  assert.ok('problem' in authenticate('Bearer key-9', connection));
  assert.ok('problem' in authenticate(undefined, connection));
});

test('with no credentials the caller is a host of every agent, and an approver still is one', () => {
  const open = createAuthenticator({ credentials: [], approvers: [], agents: AGENTS });
  const local = { kind: 'caller', caller: { name: 'local', host: true, agents: AGENTS } };
  assert.deepEqual(open(undefined), local);
  assert.deepEqual(open('Bearer anything'), local);
  const withApprover = createAuthenticator({ credentials: [], approvers: [ana], agents: AGENTS });
  assert.deepEqual(withApprover(undefined), local);
  assert.deepEqual(withApprover('Bearer key-3'), { kind: 'approver', name: 'ana' });
  assert.ok('problem' in withApprover('Bearer other'));
});

test('approvers make no calls, and callers approve nothing', () => {
  const caller = { name: 'desk', host: false, agents: AGENTS };
  assert.equal(callerOf({ kind: 'caller', caller }), caller);
  assert.ok('problem' in callerOf({ kind: 'approver', name: 'ana' }));
  assert.equal(approverOf({ kind: 'approver', name: 'ana' }), 'ana');
  assert.notEqual(typeof approverOf({ kind: 'caller', caller }), 'string');
});

test('a digest that is malformed or stands twice is refused at loading', () => {
  const make = (credentials: readonly (typeof desk)[], approvers = [ana]): unknown =>
    createAuthenticator({ credentials, approvers, agents: AGENTS });
  assert.throws(() => make([{ ...desk, digest: 'key-1' }]), TypeError);
  assert.throws(() => make([{ ...desk, digest: `sha256:${'g'.repeat(64)}` }]), TypeError);
  assert.throws(() => make([{ ...desk, digest: digest('key-3') }]), /listed twice/);
});

test('on loopback the Host must name this machine', () => {
  const check = createOriginCheck({ loopback: true });
  for (const host of [
    'localhost',
    'LOCALHOST:8080',
    '127.0.0.1',
    '127.0.0.1:1',
    '127.9.9.9:80',
    '[::1]',
    '[::1]:8080',
  ]) {
    assert.equal(check(host, undefined), undefined, host);
  }
  for (const host of [
    'evil.example',
    'localhost.evil.example',
    '127.0.0.1.evil.example',
    'localhost:80:80',
    'localhost:x',
    'user@localhost',
    '0.0.0.0',
    '127.1',
    '127.0.0.256',
    '[::2]',
    '[::1',
    '::1',
    '192.168.0.1',
    '',
  ]) {
    assert.equal(check(host, undefined)?.code, 'foreign_host', host);
  }
});

test('an Origin must be of the gateway itself or listed', () => {
  const local = createOriginCheck({ loopback: true });
  const served = createOriginCheck({ loopback: false, origins: ['https://app.example'] });
  assert.equal(local('localhost:8080', 'http://localhost:8080'), undefined);
  assert.equal(local('localhost:8080', 'http://127.0.0.1:3000'), undefined);
  assert.equal(served('gw.example', 'https://gw.example'), undefined);
  assert.equal(served('gw.example', 'https://APP.example'), undefined);
  assert.equal(served('gw.example', undefined), undefined);
  for (const origin of [
    'null',
    '',
    'https://evil.example',
    'http://gw.example.evil.example',
    'https://gw.example:444',
    'https://gw.example/',
    'file://',
    'gw.example',
    'http://localhost:8080',
  ]) {
    assert.equal(served('gw.example', origin)?.code, 'foreign_origin', origin);
  }
  assert.equal(local('localhost:8080', 'http://localhost.evil.example')?.code, 'foreign_origin');
});
