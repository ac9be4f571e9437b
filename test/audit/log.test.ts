import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { test } from 'node:test';
import { createLog } from '../../gateway/log.ts';

function logged(write: (log: ReturnType<typeof createLog>) => void): string {
  let text = '';
  write(createLog({ level: 'info', to: { write: (line) => (text += line) } }));
  return text;
}

test('credentials and values are hidden wherever they stand', () => {
  const secret = 'S3CRET';
  const text = logged((log) => {
    log.info({ token: secret, headers: { authorization: secret, 'set-cookie': secret } }, 'a request');
    log.warn({ call: { arguments: { order_id: secret }, caller: { credential: secret } }, turns: [secret] }, 'a call');
    log.error({ err: Object.assign(new Error('it broke'), { request: { body: secret } }) }, 'an error');
  });
  assert.ok(!text.includes(secret), text);
  assert.equal(text.match(/\[hidden\]/g)?.length, 6);
  assert.match(text, /"message":"it broke"/);
});

test('names stay readable, and lower levels are left out', () => {
  const text = logged((log) => {
    log.debug('nothing');
    log.info({ session: 'chat-17', tool: 'shop/get_order' }, 'a call');
  });
  const line = JSON.parse(text) as Record<string, unknown>;
  assert.equal(line['session'], 'chat-17');
  assert.equal(line['tool'], 'shop/get_order');
});

test('what was logged just before the end of the process is written', () => {
  const module = JSON.stringify(join(import.meta.dirname, '../../gateway/log.ts'));
  const code = `const { createLog } = await import(${module}); createLog({ level: 'info' }).info('the last word'); process.exit(3);`;
  const child = spawnSync(process.execPath, ['--input-type=module', '-e', code], { encoding: 'utf8' });
  assert.equal(child.status, 3);
  assert.match(child.stderr, /the last word/);
  assert.equal(child.stdout, '');
});
