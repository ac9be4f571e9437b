import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { hashLine } from '../../gateway/audit/line.ts';
import { verifyAudit } from '../../gateway/audit/verify.ts';
import { nodeCrypto } from '../../receipts/crypto-node.ts';
import { decision, KEY, linesOf, openLog, TempDir, verifyWithKey } from './support.ts';
import { OTHER, type Step, tamper } from './tamper.ts';

interface TamperCase {
  readonly id: string;
  readonly do: readonly Step[];
  readonly keys?: 'none' | 'other';
  readonly anchor?: number;
  readonly exit: 0 | 1 | 2;
  readonly fault?: string;
  readonly seq?: number;
  readonly signed?: number;
  readonly first?: number;
}

const VECTORS = join(import.meta.dirname, '../vectors/audit/tampering.json');
const { cases } = JSON.parse(readFileSync(VECTORS, 'utf8')) as { readonly cases: readonly TamperCase[] };
const dir = new TempDir();
const NOW_MS = Date.parse('2026-11-29T10:00:00Z');
let lines: readonly string[] = [];
let others: readonly string[] = [];

before(async () => {
  lines = await makeLog(dir.file('one'));
  others = await makeLog(dir.file('two'));
});
after(() => dir[Symbol.dispose]());

async function makeLog(file: string): Promise<readonly string[]> {
  let nowMs = NOW_MS;
  const log = await openLog(file, { nowMs: () => nowMs++ });
  for (let step = 0; step < 6; step++) {
    await log.append(decision(step));
    if (step === 2) await log.checkpoint();
  }
  await log.close();
  return linesOf(file);
}

for (const vector of cases) {
  test(`tampering: ${vector.id}`, async () => {
    assert.equal(lines.length, 9);
    const file = dir.file(vector.id);
    writeFileSync(file, tamper(lines, others, vector.do));
    const keys =
      vector.keys === 'none' ? [] : [vector.keys === 'other' ? nodeCrypto.publicKey(OTHER.publicBytes) : KEY];
    const anchor =
      vector.anchor === undefined ? undefined : { seq: vector.anchor, hash: hashLine(lines[vector.anchor] ?? '') };
    const { exit, report } = await verifyAudit([file], { keys, ...(anchor === undefined ? {} : { anchor }) });
    assert.equal(exit, vector.exit, report.why);
    assert.equal(report.verdict, ['intact', 'tampered', 'cannot_tell'][exit]);
    assert.equal(report.fault?.fault, vector.fault, report.why);
    assert.equal(report.fault?.seq, vector.seq, report.why);
    if (vector.signed !== undefined) assert.equal(report.signed_to, vector.signed);
    if (vector.first !== undefined) assert.equal(report.first_seq, vector.first);
  });
}

test('every one-byte edit of a log is found out', async () => {
  const whole = Buffer.from(`${lines.join('\n')}\n`);
  const file = dir.file('edited');
  for (let at = 0; at < whole.length; at += 1 + (at % 5)) {
    const edited = Buffer.from(whole);
    edited[at] = (edited[at] ?? 0) ^ (at % 2 === 0 ? 1 : 0x20);
    writeFileSync(file, edited);
    const { exit, report } = await verifyWithKey(file);
    // The last line stands under no hash. An edit that makes it something else than a checkpoint of a known key is one
    // that nobody can tell from a log that has not come to its checkpoint yet; it never passes for intact.
    const last = at >= whole.length - 1 - Buffer.byteLength(lines.at(-1) ?? '');
    assert.ok(exit === 1 || (last && exit === 2), `byte ${at}: ${report.why}`);
  }
});

test('the place of a fault is told by file and line', async () => {
  const [first, second] = [dir.file('first'), dir.file('second')];
  const edited = lines.map((line, i) => (i === 6 ? line.replace('desk', 'dusk') : line));
  writeFileSync(first, `${edited.slice(0, 5).join('\n')}\n`);
  writeFileSync(second, `${edited.slice(5).join('\n')}\n`);
  const { report } = await verifyWithKey(second, first);
  assert.deepEqual([report.fault?.file, report.fault?.line, report.fault?.seq], [second, 2, 6]);
  const cut = lines.map((line, i) => (i === 4 ? line.replace('2026', '2027') : line));
  writeFileSync(first, `${cut.slice(0, 5).join('\n')}\n`);
  const other = await verifyWithKey(first, second);
  assert.deepEqual([other.report.fault?.file, other.report.fault?.line], [first, 5]);
});

test('a file that is not there is nothing that can be told of', async () => {
  const { exit, report } = await verifyWithKey(dir.file('absent'));
  assert.equal(exit, 2);
  assert.match(report.why, /ENOENT/);
});

test('a log that is being written is verified up to its next checkpoint', async () => {
  const file = dir.file('live');
  const log = await openLog(file, { checkpointMs: 80 });
  let stop = false;
  const writing = (async () => {
    for (let step = 0; !stop; step++) {
      await log.append(decision(step));
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
  })();
  const { exit, report } = await verifyAudit([file], { keys: [KEY], settleMs: 5000 });
  stop = true;
  await writing;
  await log.close();
  assert.equal(exit, 0, report.why);
  assert.ok(report.checkpoints > 0);
});
