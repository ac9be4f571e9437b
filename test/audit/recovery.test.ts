import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  appendFileSync,
  copyFileSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import type { AuditLog } from '../../gateway/audit/audit-log.ts';
import type { AuditFault } from '../../gateway/audit/fault.ts';
import { childEnv } from '../child-env.ts';
import { programFile } from '../programs.ts';
import { decision, linesOf, membersOf, openLog, TempDir, verifyWithKey } from './support.ts';

const WRITER = programFile('test/audit/writer.ts');

async function untilUp(log: AuditLog): Promise<void> {
  for (let tries = 0; tries < 200 && log.lag().downSinceMs !== undefined; tries++)
    await new Promise((resolve) => setTimeout(resolve, 10));
  assert.equal(log.lag().downSinceMs, undefined, 'the log did not recover by itself');
}

function stepsOf(...files: string[]): unknown[] {
  return files.flatMap((file) =>
    membersOf(file).flatMap((line) => (line['event'] === 'decision' ? [line['step']] : [])),
  );
}

test('while the directory is gone lines are refused, and once it is back the log goes on by itself', async () => {
  using dir = new TempDir();
  const folder = dir.file('logs');
  mkdirSync(folder);
  const file = join(folder, 'audit.jsonl');
  const changes: (AuditFault | undefined)[] = [];
  const log = await openLog(file, { onChange: (fault) => changes.push(fault) });
  await log.append(decision(0));
  renameSync(folder, dir.file('away'));
  await assert.rejects(log.append(decision(1)), { code: 'audit_unavailable' });
  await assert.rejects(log.append(decision(2)), { code: 'audit_unavailable' });
  await assert.rejects(log.ready(), /cannot write the audit log `.*`: ENOENT/);
  assert.throws(() => log.prepare(decision(3)), { code: 'audit_unavailable' });
  mkdirSync(folder);
  await untilUp(log);
  await log.append(decision(4));
  await log.close();
  assert.deepEqual(
    changes.map((fault) => fault?.code),
    ['audit_unavailable', undefined],
  );
  const files = [dir.file('away/audit.jsonl'), file];
  assert.deepEqual(stepsOf(...files), [0, 4]);
  const { exit, report } = await verifyWithKey(...files);
  assert.equal(exit, 0, report.why);
});

test('on a full disk lines are refused whole, and with room again the chain goes on', async (t) => {
  using dir = new TempDir();
  const disk = dir.file('disk');
  mkdirSync(disk);
  const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'tmpfs', disk]);
  if (mounted.status !== 0) return t.skip('no small file system can be mounted here');
  try {
    const file = join(disk, 'audit.jsonl');
    const log = await openLog(file);
    writeFileSync(join(disk, 'filler'), 'x'.repeat(40_000));
    let written = 0;
    let fault: unknown;
    while (fault === undefined) {
      // Groups that do not fit a page, so that the disk takes a part of one.
      const group = Array.from({ length: 7 }, (_, i) => log.append(decision(written + i)));
      const results = await Promise.allSettled(group);
      fault = results.find((result) => result.status === 'rejected')?.reason;
      if (fault === undefined) written += 7;
      assert.ok(written < 2000);
    }
    assert.match(String(fault), /ENOSPC/);
    assert.equal(stepsOf(file).length, written);
    await assert.rejects(log.ready(), /ENOSPC/);
    rmSync(join(disk, 'filler'));
    await untilUp(log);
    await log.append(decision(written));
    await log.close();
    assert.deepEqual(
      stepsOf(file),
      Array.from({ length: written + 1 }, (_, step) => step),
    );
    const { exit, report } = await verifyWithKey(file);
    assert.equal(exit, 0, report.why);
  } finally {
    spawnSync('umount', [disk]);
  }
});

test('a limit on the size of files is met like a full disk', async () => {
  using dir = new TempDir();
  // RLIMIT_FSIZE in 1,024-byte blocks; with SIGXFSZ ignored the write fails with EFBIG after a short one.
  const run = `trap '' XFSZ; ulimit -f 4; exec "$0" "$@"`;
  const child = spawnSync('bash', ['-c', run, process.execPath, WRITER, dir.file(), '60'], {
    encoding: 'utf8',
    env: childEnv(),
  });
  assert.match(child.stdout, /refused: audit_unavailable .*EFBIG/);
  const acknowledged = child.stdout.split('\n').filter((line) => line.startsWith('written ')).length;
  assert.ok(acknowledged > 0 && acknowledged < 60, child.stderr);
  assert.equal(stepsOf(dir.file()).length, acknowledged);
  const log = await openLog(dir.file());
  await log.close();
  assert.equal((await verifyWithKey(dir.file())).exit, 0);
});

test('a process that is killed in the middle of writing loses no line that it was told of', async () => {
  using dir = new TempDir();
  for (let round = 0; round < 3; round++) {
    const child = spawn(process.execPath, [WRITER, dir.file(), '1000000'], {
      stdio: ['ignore', 'pipe', 'inherit'],
      env: childEnv(),
    });
    let told = -1;
    const lines = createInterface({ input: child.stdout });
    lines.on('line', (line) => {
      told = Number(line.split(' ')[1]);
      if (told >= 200) child.kill('SIGKILL');
    });
    await once(child, 'close');
    assert.ok(told >= 200);
    assert.ok(stepsOf(dir.file()).includes(told));
  }
  const log = await openLog(dir.file());
  await log.close();
  const { exit, report } = await verifyWithKey(dir.file());
  assert.equal(exit, 0, report.why);
});

test('a file that reaches its size is rotated away, and the chain goes over the files', async () => {
  using dir = new TempDir();
  const log = await openLog(dir.file(), { maxSizeBytes: 8192 });
  for (let step = 0; step < 100; step++) await log.append(decision(step));
  await log.close();
  const files = readdirSync(dir.path)
    .filter((name) => name.startsWith('audit.jsonl') && !name.endsWith('.state'))
    .map((name) => dir.file(name));
  assert.ok(files.length > 3);
  for (const file of files) {
    const [first] = membersOf(file);
    assert.equal(first?.['event'], 'open');
    assert.equal(first?.['replica'], log.replica);
    assert.equal((await verifyWithKey(file)).exit, 0);
  }
  const { exit, report } = await verifyWithKey(...files);
  assert.equal(exit, 0, report.why);
  assert.equal(report.first_seq, 0);
  const without = files.toSorted().filter((_, i) => i !== 2);
  assert.equal((await verifyWithKey(...without)).report.fault?.fault, 'missing');
});

test('a file that a log rotation renamed is left with a checkpoint, and a new one goes on', async () => {
  using dir = new TempDir();
  const log = await openLog(dir.file());
  await log.append(decision(0));
  renameSync(dir.file(), dir.file('old'));
  await log.reopen();
  await log.append(decision(1));
  await log.close();
  assert.equal(membersOf(dir.file('old')).at(-1)?.['event'], 'checkpoint');
  assert.deepEqual(stepsOf(dir.file()), [1]);
  const [first] = membersOf(dir.file());
  assert.deepEqual(first?.['previous'], { seq: Number(first?.['seq']) - 1, hash: first?.['prev'] });
  const { exit, report } = await verifyWithKey(dir.file(), dir.file('old'));
  assert.equal(exit, 0, report.why);
});

test('a rename that nobody tells of is noticed', async () => {
  using dir = new TempDir();
  const log = await openLog(dir.file());
  await log.append(decision(0));
  renameSync(dir.file(), dir.file('old'));
  await log.append(decision(1));
  await log.close();
  assert.deepEqual(stepsOf(dir.file()), [1]);
  assert.equal((await verifyWithKey(dir.file('old'), dir.file())).exit, 0);
});

test('a file that is copied and truncated goes on with the chain', async () => {
  using dir = new TempDir();
  const log = await openLog(dir.file());
  await log.append(decision(0));
  await log.checkpoint();
  copyFileSync(dir.file(), dir.file('copy'));
  truncateSync(dir.file(), 0);
  await log.append(decision(1));
  await log.close();
  assert.ok(!linesOf(dir.file())[0]?.includes('\0'));
  assert.deepEqual(stepsOf(dir.file()), [1]);
  const { exit, report } = await verifyWithKey(dir.file('copy'), dir.file());
  assert.equal(exit, 0, report.why);
});

test('a log that was moved away while nobody ran goes on from its note', async () => {
  using dir = new TempDir();
  const log = await openLog(dir.file());
  await log.append(decision(0));
  await log.close();
  renameSync(dir.file(), dir.file('old'));
  const again = await openLog(dir.file());
  await again.append(decision(1));
  await again.close();
  assert.equal((await verifyWithKey(dir.file('old'), dir.file())).exit, 0);
});

test('a log on standard output is a chain that verifies', async () => {
  using dir = new TempDir();
  const child = spawnSync(process.execPath, [WRITER, 'stdout', '500'], { encoding: 'utf8', env: childEnv() });
  assert.equal(child.status, 0, child.stderr);
  writeFileSync(dir.file(), child.stdout);
  assert.equal(stepsOf(dir.file()).length, 500);
  const { exit, report } = await verifyWithKey(dir.file());
  assert.equal(exit, 0, report.why);
});

test('lines on a full standard output are refused', () => {
  const run = `exec "$0" "$@" > /dev/full`;
  const child = spawnSync('bash', ['-c', run, process.execPath, WRITER, 'stdout', '3'], {
    encoding: 'utf8',
    env: childEnv(),
  });
  assert.notEqual(child.status, 0);
  assert.match(child.stderr, /audit_unavailable .*ENOSPC/);
});

test('what somebody else wrote behind the last line is shown by verification', async () => {
  using dir = new TempDir();
  const log = await openLog(dir.file());
  await log.append(decision(0));
  appendFileSync(dir.file(), 'a line of somebody else\n');
  await log.append(decision(1));
  await log.close();
  assert.equal((await verifyWithKey(dir.file())).report.fault?.fault, 'not_a_line');
});

test('the folder of a log is made when the log is opened', async () => {
  using dir = new TempDir();
  const log = await openLog(dir.file('logs/here/audit.jsonl'));
  await log.append(decision(0));
  await log.close();
  assert.deepEqual(stepsOf(dir.file('logs/here/audit.jsonl')), [0]);
});

test('lines stay whole where another process appended to the file and the disk filled up', async (t) => {
  using dir = new TempDir();
  const disk = dir.file('disk');
  mkdirSync(disk);
  if (spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'tmpfs', disk]).status !== 0)
    return t.skip('no small file system can be mounted here');
  try {
    const file = join(disk, 'audit.jsonl');
    const log = await openLog(file);
    await log.append(decision(0));
    appendFileSync(file, `${'x'.repeat(5000)}\n`);
    await log.append(decision(1));
    writeFileSync(join(disk, 'filler'), 'x'.repeat(30_000));
    let written = 2;
    for (; ; written++)
      if ((await Promise.allSettled([log.append(decision(written))]))[0]?.status === 'rejected') break;
    const steps = linesOf(file).flatMap((line) => /"step":(\d+)/.exec(line)?.[1] ?? []);
    assert.deepEqual(
      steps.map(Number),
      Array.from({ length: written }, (_, step) => step),
    );
    rmSync(join(disk, 'filler'));
    await untilUp(log);
    await log.close();
  } finally {
    spawnSync('umount', [disk]);
  }
});

test('of processes that start at once on a stale lock one writes, and the others say who does', async () => {
  using dir = new TempDir();
  writeFileSync(`${dir.file()}.lock`, 'left by a crash');
  const ran = await Promise.all(
    Array.from({ length: 4 }, async () => {
      const child = spawn(process.execPath, [WRITER, dir.file(), '3000'], {
        stdio: ['ignore', 'ignore', 'pipe'],
        env: childEnv(),
      });
      let stderr = '';
      child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
      const [code] = await once(child, 'close');
      return { code: Number(code), stderr };
    }),
  );
  const wrote = ran.filter(({ code }) => code === 0).length;
  for (const { code, stderr } of ran) if (code !== 0) assert.match(stderr, /audit_locked/);
  assert.ok(wrote >= 1);
  assert.equal(stepsOf(dir.file()).length, wrote * 3000);
  const { exit, report } = await verifyWithKey(dir.file());
  assert.equal(exit, 0, report.why);
});
