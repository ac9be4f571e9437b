import assert from 'node:assert/strict';
import { mkdirSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { PreparedLine } from '../../gateway/audit/line.ts';
import { decision, membersOf, openLog, TempDir, verifyWithKey } from './support.ts';

const rowOf = ({ n, line }: PreparedLine): { n: number; line: string } => ({ n, line });

function numbersOf(...files: string[]): number[] {
  return files.flatMap((file) => membersOf(file).flatMap((line) => (typeof line['n'] === 'number' ? [line['n']] : [])));
}

test('a prepared line is written as the store holds it, with its place in the chain', async () => {
  using dir = new TempDir();
  const log = await openLog(dir.file());
  const prepared = log.prepare(decision(3));
  assert.ok(!prepared.line.includes('"seq"') && !prepared.line.includes('"prev"'));
  await log.write(prepared);
  await log.close();
  const line = membersOf(dir.file()).find((members) => members['n'] === prepared.n) ?? {};
  const { seq, prev, ...rest } = line;
  assert.equal(seq, 1);
  assert.equal(typeof prev, 'string');
  assert.equal(JSON.stringify(rest), prepared.line);
});

test('what the log lacks of the store is written at the next start, and nothing twice', async () => {
  using dir = new TempDir();
  const log = await openLog(dir.file());
  await log.catchUp([]);
  const prepared = Array.from({ length: 6 }, (_, step) => log.prepare(decision(step)));
  for (const line of [prepared[0], prepared[2], prepared[3]]) if (line) await log.write(line);
  // The process ends here without having written 1, 4 and 5, although their transactions were committed.
  await log.close();
  const again = await openLog(dir.file());
  const rows = prepared.map(rowOf);
  const marked = await again.catchUp(rows.slice(0, 4));
  assert.equal(marked, prepared[3]?.n);
  await again.catchUp(rows.slice(4));
  await again.catchUp(rows.slice(4));
  await again.catchUp([]);
  const next = again.prepare(decision(6));
  assert.ok(next.n > (prepared[5]?.n ?? 0));
  await again.write(next);
  await again.checkpoint();
  assert.equal(again.durableUpTo, next.n);
  await again.close();
  assert.deepEqual(numbersOf(dir.file()), [0, 2, 3, 1, 4, 5].map((i) => prepared[i]?.n).concat(next.n));
  const { exit, report } = await verifyWithKey(dir.file());
  assert.equal(exit, 0, report.why);
});

test('lines in files that were rotated away count as written', async () => {
  using dir = new TempDir();
  const log = await openLog(dir.file(), { maxSizeBytes: 2048 });
  await log.catchUp([]);
  const prepared = Array.from({ length: 30 }, (_, step) => log.prepare(decision(step)));
  for (const line of prepared) if (line !== prepared[7]) await log.write(line);
  await log.close();
  const again = await openLog(dir.file());
  const before = numbersOf(dir.file()).length;
  await again.catchUp(prepared.map(rowOf));
  await again.close();
  assert.deepEqual(numbersOf(dir.file()).slice(before), [prepared[7]?.n]);
});

test('the store may mark only what is written behind everything before it', async () => {
  using dir = new TempDir();
  const log = await openLog(dir.file());
  await log.catchUp([]);
  const [a, b, c] = [log.prepare(decision(0)), log.prepare(decision(1)), log.prepare(decision(2))];
  await log.write(c);
  await log.checkpoint();
  assert.equal(log.durableUpTo, a.n - 1);
  await log.write(a);
  await log.checkpoint();
  assert.equal(log.durableUpTo, a.n);
  log.abandon(b);
  await log.checkpoint();
  assert.equal(log.durableUpTo, c.n);
  await log.close();
});

test('a committed line that could not be written is written when the log recovers', async () => {
  using dir = new TempDir();
  const folder = dir.file('logs');
  mkdirSync(folder);
  const log = await openLog(join(folder, 'audit.jsonl'));
  await log.catchUp([]);
  const [a, b] = [log.prepare(decision(0)), log.prepare(decision(1))];
  renameSync(folder, dir.file('away'));
  await assert.rejects(log.write(a), { code: 'audit_unavailable' });
  await assert.rejects(log.write(b), { code: 'audit_unavailable' });
  assert.equal(log.lag().waiting, 2);
  mkdirSync(folder);
  await log.ready();
  assert.deepEqual(numbersOf(join(folder, 'audit.jsonl')), [a.n, b.n]);
  await log.catchUp([rowOf(a), rowOf(b)]);
  await log.close();
  assert.deepEqual(numbersOf(join(folder, 'audit.jsonl')), [a.n, b.n]);
  assert.equal(log.durableUpTo, b.n);
});

test('a row that is no line of the log is refused', async () => {
  using dir = new TempDir();
  const log = await openLog(dir.file());
  for (const line of ['{"event":"decision","time":"t", "n":1}', '[]', '{"event":"x","prev":"y","time":"t"}', 'x'])
    await assert.rejects(log.catchUp([{ n: 1, line }]), { code: 'audit_foreign' });
  await log.close();
});
