import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { startTestGateway } from '../harness/gateway.ts';
import { connectClient, textOf } from './clients.ts';

test('a server process that is killed in the middle of a write leaves it unknown, is started again, and takes the next call', async () => {
  const script = fileURLToPath(new URL('./stdio-server.ts', import.meta.url));
  const folder = await mkdtemp(join(tmpdir(), 'toolgate-stdio-'));
  // Written by the server when the call has come to it.
  const hangs = join(folder, 'hangs');
  const own = await startTestGateway({
    agents: { desk: {} },
    routes: [
      {
        name: 'proc',
        mcp: { command: [process.execPath, script], env: { HANGS: hangs } },
        agents: ['desk'],
        tools: [
          { name: 'hang', confirm: 'reasons' },
          { name: 'pid', writes: false },
        ],
      },
    ],
  });
  try {
    const client = await connectClient(`${own.url}/mcp/proc`);
    const pidOf = async (): Promise<number> => Number(textOf(await client.callTool({ name: 'pid', arguments: {} })));
    const pid = await pidOf();
    const hanging = client.callTool({ name: 'hang', arguments: {} });
    while (!existsSync(hangs)) await pause(20);
    process.kill(pid, 'SIGKILL');
    const result = await hanging;
    assert.equal(result.isError, true);
    assert.equal(result._meta?.['toolgate/outcome'], 'outcome_unknown');
    const next = await pidOf();
    assert.notEqual(next, pid);
    await client.close();
  } finally {
    await own.close();
    await rm(folder, { recursive: true, force: true });
  }
});
