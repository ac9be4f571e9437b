import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import {
  appendFileSync,
  existsSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { hostname } from 'node:os';
import { test } from 'node:test';
import { AuditFault } from '../../gateway/audit/fault.ts';
import { hashLine } from '../../gateway/audit/line.ts';
import { canonicalize } from '../../receipts/canonical.ts';
import type { JsonValue } from '../../receipts/json-value.ts';
import { decision, linesOf, membersOf, openLog, TempDir, verifyWithKey } from './support.ts';

test('every line is canonical JSON that names its place and the hash of the line before', async () => {
  using dir = new TempDir();
  const log = await openLog(dir.file());
  await Promise.all(Array.from({ length: 50 }, (_, step) => log.append(decision(step))));
  await log.close();
  const lines = linesOf(dir.file());
  assert.equal(lines.length, 52);
  for (const [i, line] of lines.entries()) {
    const members = JSON.parse(line) as Record<string, JsonValue>;
    assert.equal(canonicalize(members), line);
    assert.equal(members['seq'], i);
    if (i > 0) assert.equal(members['prev'], hashLine(lines[i - 1] ?? ''));
  }
  const [first, second] = membersOf(dir.file());
  assert.equal(first?.['replica'], log.replica);
  assert.deepEqual(second?.['latency'], { check: 0.012, store: 1.5 });
  assert.equal((await verifyWithKey(dir.file())).exit, 0);
});

test('a line is in the file when append resolves', async () => {
  using dir = new TempDir();
  const log = await openLog(dir.file());
  await log.append(decision(4));
  assert.equal(membersOf(dir.file()).at(-1)?.['step'], 4);
  await log.close();
});

test('lines keep the order in which they were appended', async () => {
  using dir = new TempDir();
  const log = await openLog(dir.file());
  const all: Promise<void>[] = [];
  for (let step = 0; step < 300; step++) {
    all.push(log.append(decision(step)));
    if (step % 7 === 0) await new Promise((resolve) => setImmediate(resolve));
  }
  await Promise.all(all);
  await log.close();
  const steps = membersOf(dir.file()).flatMap((line) => (line['event'] === 'decision' ? [line['step']] : []));
  assert.deepEqual(
    steps,
    Array.from({ length: 300 }, (_, step) => step),
  );
});

test('values are written only where the log was opened with them', async () => {
  using dir = new TempDir();
  const event = decision(0, { values: { arguments: { order_id: 'A-1001' } } });
  const without = await openLog(dir.file('without'));
  await without.append(event);
  await without.close();
  assert.ok(!readFileSync(dir.file('without'), 'utf8').includes('A-1001'));
  const with_ = await openLog(dir.file('with'), { values: true });
  await with_.append(event);
  await with_.close();
  assert.ok(readFileSync(dir.file('with'), 'utf8').includes('A-1001'));
});

test('a digest depends on the key of the log', async () => {
  using dir = new TempDir();
  const one = await openLog(dir.file('one'), { digestKey: Buffer.alloc(32, 1) });
  const two = await openLog(dir.file('two'), { digestKey: Buffer.alloc(32, 2) });
  assert.notEqual(one.digest('"A-1001"'), two.digest('"A-1001"'));
  assert.equal(one.digest('"A-1001"').length, 43);
  await one.close();
  await two.close();
});

test('a caller cannot make a line longer than names are', async () => {
  using dir = new TempDir();
  const log = await openLog(dir.file());
  const reasons = Array.from({ length: 1000 }, () => 'x'.repeat(100_000));
  await log.append(decision(0, { session: `${'s'.repeat(1023)}\ud83d\ude00`.repeat(1000), reasons }));
  await log.close();
  assert.ok(Math.max(...linesOf(dir.file()).map((line) => line.length)) < 80_000);
  assert.equal((await verifyWithKey(dir.file())).exit, 0);
});

test('a checkpoint comes after so many lines, and after a while without', async () => {
  using dir = new TempDir();
  const log = await openLog(dir.file(), { checkpointLines: 10, checkpointMs: 60 });
  for (let step = 0; step < 25; step++) await log.append(decision(step));
  const count = () => membersOf(dir.file()).filter((line) => line['event'] === 'checkpoint').length;
  assert.equal(count(), 2);
  while (log.lag().unsigned > 0) await new Promise((resolve) => setTimeout(resolve, 10));
  assert.equal(count(), 3);
  assert.equal((await verifyWithKey(dir.file())).exit, 0);
  await log.close();
});

test('a log that is opened again goes on where it ended', async () => {
  using dir = new TempDir();
  for (let start = 0; start < 3; start++) {
    const log = await openLog(dir.file());
    await log.append(decision(start));
    await log.close();
  }
  assert.equal(new Set(membersOf(dir.file()).flatMap((line) => line['replica'] ?? [])).size, 1);
  const { exit, report } = await verifyWithKey(dir.file());
  assert.equal(exit, 0, report.why);
  assert.equal(report.last_seq, 8);
});

test('a part of a line that a crash left is taken away', async () => {
  using dir = new TempDir();
  const log = await openLog(dir.file());
  await log.append(decision(0));
  await log.close();
  appendFileSync(dir.file(), '{"event":"decision","agent":"de');
  assert.equal((await verifyWithKey(dir.file())).exit, 2);
  const again = await openLog(dir.file());
  await again.append(decision(1));
  await again.close();
  assert.equal((await verifyWithKey(dir.file())).exit, 0);
});

test('a file that is none of a log is left alone', async () => {
  using dir = new TempDir();
  writeFileSync(dir.file(), 'GET / HTTP/1.1\n');
  await assert.rejects(openLog(dir.file()), { code: 'audit_foreign' });
  assert.equal(readFileSync(dir.file(), 'utf8'), 'GET / HTTP/1.1\n');
  assert.ok(!existsSync(`${dir.file()}.lock`));
});

test('the log of another replica is not gone on with', async () => {
  using dir = new TempDir();
  for (const name of ['one', 'two']) await (await openLog(dir.file(name))).close();
  renameSync(dir.file('two'), dir.file('one'));
  await assert.rejects(openLog(dir.file('one')), { code: 'audit_foreign' });
});

test('a log whose note was lost goes on under its own name', async () => {
  using dir = new TempDir();
  const log = await openLog(dir.file());
  const used = log.prepare(decision(0));
  await log.write(used);
  await log.close();
  rmSync(`${dir.file()}.state`);
  const again = await openLog(dir.file());
  assert.equal(again.replica, log.replica);
  assert.ok(again.prepare(decision(1)).n > used.n);
  await again.close();
  assert.equal((await verifyWithKey(dir.file())).exit, 0);
});

test('a log that was cut while nobody ran is found out at the next start, and stays so', async () => {
  using dir = new TempDir();
  const log = await openLog(dir.file());
  await log.append(decision(0));
  await log.checkpoint();
  const { length } = readFileSync(dir.file());
  await log.append(decision(1));
  await log.close();
  truncateSync(dir.file(), length);
  // Cut at a checkpoint: nothing in the file shows it.
  assert.equal((await verifyWithKey(dir.file())).exit, 0);
  const again = await openLog(dir.file());
  await again.close();
  const { exit, report } = await verifyWithKey(dir.file());
  assert.equal(exit, 1);
  assert.equal(report.fault?.fault, 'cut_before_start');
});

test('two logs never write one file, and a dead process does not keep it', async () => {
  using dir = new TempDir();
  const log = await openLog(dir.file());
  await assert.rejects(openLog(dir.file()), (error) => {
    assert.ok(error instanceof AuditFault);
    assert.equal(error.code, 'audit_locked');
    assert.match(error.message, new RegExp(`process ${process.pid} `));
    return true;
  });
  await log.close();
  const dead = spawnSync(process.execPath, ['-e', '0']).pid;
  writeFileSync(`${dir.file()}.lock`, readHolder(dead));
  const again = await openLog(dir.file());
  await again.close();
  assert.deepEqual(
    readdirSync(dir.path).filter((name) => name.includes('.lock')),
    [],
  );
});

test('a process that got the number of a dead one does not keep its lock', async () => {
  using dir = new TempDir();
  writeFileSync(`${dir.file()}.lock`, readHolder(process.pid));
  const log = await openLog(dir.file());
  await log.close();
});

function readHolder(pid: number): string {
  return JSON.stringify({ pid, started: '1', host: hostname(), token: 'x' });
}

test('a closed log takes nothing more', async () => {
  using dir = new TempDir();
  const log = await openLog(dir.file());
  await log.close();
  await log.close();
  await assert.rejects(log.append(decision(0)), { code: 'audit_closed' });
  await assert.rejects(log.ready(), { code: 'audit_closed' });
  assert.throws(() => log.prepare(decision(0)), { code: 'audit_closed' });
});
