import { flushCompileCache } from 'node:module';
import { createInterface } from 'node:readline';
import { armFaultPoint } from '../../gateway/fault-points.ts';
import { createLog } from '../../gateway/log.ts';
import { runGateway } from '../../gateway/serve/run-gateway.ts';

// A gateway in a process of its own, for tests that kill it: the config is argv[2], the lease in milliseconds argv[3]. It
// prints its address once it takes calls, arms the fault point that a line on standard input names, and ends cleanly on
// SIGTERM.

const [, , configFile = '', leaseMs = '30000'] = process.argv;
const log = createLog({ level: 'silent' });
const running = await runGateway({ configFile, env: process.env, log, leaseMs: Number(leaseMs) });
process.once('SIGTERM', () => {
  running.close().then(
    () => process.exit(0),
    () => process.exit(1),
  );
});
process.stdout.write(`${running.url}\n`);
// One that is killed keeps nothing of what it compiled, where it is not told to now.
flushCompileCache();
for await (const line of createInterface({ input: process.stdin })) {
  armFaultPoint(line);
  process.stdout.write('armed\n');
}
