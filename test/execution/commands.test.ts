import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { toolgate } from '../cli/run.ts';
import { startTestGateway, type TestGateway } from '../harness/gateway.ts';
import { answerOnly, type RecordingBackend, startBackend } from './backend.ts';
import { call, untilRun, worldConfig } from './world.ts';

let backend: RecordingBackend;
let gateway: TestGateway;
const key = process.env['TOOLGATE_APPROVER_KEY'];

before(async () => {
  backend = await startBackend();
  gateway = await startTestGateway(worldConfig(backend.url));
  process.env['TOOLGATE_APPROVER_KEY'] = 'ana-key';
});

after(async () => {
  if (key === undefined) delete process.env['TOOLGATE_APPROVER_KEY'];
  else process.env['TOOLGATE_APPROVER_KEY'] = key;
  await gateway.close();
  await backend.close();
});

test('an approver lists unknown outcomes and settles one, once', async () => {
  const { url } = gateway;
  const nothing = await toolgate('outcomes', 'list', '--url', url);
  assert.deepEqual([nothing.status, nothing.stdout], [0, '']);
  backend.next('book', answerOnly(500));
  await call(url, 'book', { order: 'a' }, { session: 's-a' });
  const listed = await toolgate('outcomes', 'list', '--url', url);
  assert.match(listed.stdout, /shop\/book +desk +shop-app +s-a#0/);
  const { outcomes } = JSON.parse((await toolgate('outcomes', 'list', '--url', url, '--json')).stdout) as {
    outcomes: { id: string }[];
  };
  const settle = ['outcomes', 'settle', String(outcomes[0]?.id), 'ran', '--url', url];
  assert.equal((await toolgate(...settle)).status, 2, 'a reason is asked for');
  assert.match((await toolgate(...settle, '--reason', 'in the ledger')).stdout, /: ran, says ana/);
  assert.equal((await toolgate(...settle, '--reason', 'in the ledger')).status, 1);
});

test('an approver lists, shows, undoes, settles and ends runs', async () => {
  const { url } = gateway;
  const caller = ['--caller', 'shop-app', '--url', url];
  await call(url, 'book', { order: 'b' }, { session: 's-b', run: 'r-b' });
  await call(url, 'tell', { order: 'b' }, { session: 's-b', run: 'r-b' });
  assert.match((await toolgate('runs', 'list', '--state', 'open', '--url', url)).stdout, /r-b +shop-app +desk +open/);
  assert.equal((await toolgate('runs', 'undo', 'r-b', ...caller)).status, 0);
  await untilRun(url, 'r-b', 'needs_person');
  const shown = (await toolgate('runs', 'show', 'r-b', ...caller)).stdout;
  assert.match(shown, /r-b: needs_person \(step 1: its tool says nothing about undoing it\)/);
  assert.match(shown, /0 +shop\/book +compensated +compensated/);
  assert.match(shown, /stays: step 1, shop\/tell/);
  const settled = await toolgate('runs', 'settle', 'r-b', '--step', '1', '--as', 'left', '--reason', 'told', ...caller);
  assert.equal(settled.status, 0);
  await untilRun(url, 'r-b', 'compensated');
  assert.equal((await toolgate('runs', 'end', 'r-b', ...caller)).status, 1);
  assert.equal((await toolgate('runs', 'show', 'no-such', ...caller)).status, 1);
});
