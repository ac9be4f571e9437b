import { AuditLog } from '../../gateway/audit/audit-log.ts';
import { AuditFault } from '../../gateway/audit/fault.ts';
import { decision, SIGNER } from './support.ts';

// A process of its own that writes so many lines and says which it was told are written: `writer.ts FILE|stdout COUNT`.
const [target = '', count = '0'] = process.argv.slice(2);
const digestKey = Buffer.alloc(32, 3);
const say = (text: string): void => {
  if (target !== 'stdout') process.stdout.write(`${text}\n`);
};

try {
  const log = await AuditLog.open({
    target: target === 'stdout' ? 'stdout' : { file: target },
    signer: SIGNER,
    digestKey,
    checkpointLines: 50,
    probeMs: 60_000,
  });
  for (let step = 0; step < Number(count); step++) {
    await log.append(decision(step));
    say(`written ${step}`);
  }
  await log.close();
} catch (error) {
  if (!(error instanceof AuditFault)) throw error;
  say(`refused: ${error.code} ${error.message}`);
  process.stderr.write(`${error.code} ${error.message}\n`);
  process.exitCode = 1;
}
