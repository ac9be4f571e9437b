import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createLog } from '../../gateway/log.ts';
import { ServerRegistry } from '../../gateway/mcp/server-registry.ts';

test('a server that was not there is asked again, even where the gateway took longer to start than that may wait', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const servers = new ServerRegistry(createLog({ level: 'silent' }));
  servers.askAgainLater();
  t.mock.timers.tick(1_000);
  let told = 0;
  servers.onToolsChanged = () => {
    told += 1;
  };
  assert.equal(told, 1, 'what nobody was there for is told to the first who is');
  servers.onToolsChanged = () => {
    told += 10;
  };
  assert.equal(told, 1, 'and once');
  // The next time is twice as far away.
  servers.askAgainLater();
  t.mock.timers.tick(1_999);
  assert.equal(told, 1);
  t.mock.timers.tick(1);
  assert.equal(told, 11);
});
