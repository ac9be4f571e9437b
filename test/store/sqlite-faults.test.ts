import assert from 'node:assert/strict';
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { after, describe, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import Database from 'better-sqlite3';
import { checkStore } from '../../gateway/store/check-store.ts';
import { openStore } from '../../gateway/store/open.ts';
import { type Conflict, type Store, StoreFault } from '../../gateway/store/port.ts';
import { childEnv } from '../child-env.ts';
import { programFile } from '../programs.ts';
import { aClaim, fresh } from './records.ts';

const dir = mkdtempSync(join(tmpdir(), 'toolgate-faults-'));
after(() => rmSync(dir, { recursive: true }));

function place(): string {
  return join(dir, fresh(), 'store.db');
}

async function faultOf(store: Store): Promise<StoreFault> {
  const error = await store.commit([{ op: 'claim', claim: aClaim() }]).then(
    () => undefined,
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof StoreFault, `the commit gave ${String(error)}`);
  return error;
}

/** Commits until it works again; what waits for a person to repair something waits no longer than this afterwards. */
async function recovers(store: Store): Promise<void> {
  const claim = aClaim();
  for (let left = 100; ; left -= 1) {
    try {
      assert.deepEqual(await store.commit([{ op: 'claim', claim }]), { ok: true });
      assert.deepEqual(await store.findClaim(claim), claim);
      return;
    } catch (error) {
      if (!(error instanceof StoreFault) || left === 0) throw error;
      await delay(50);
    }
  }
}

interface Child {
  readonly process: ChildProcess;
  /** The next line that it prints. */
  line(): Promise<string>;
  tell(text: string): void;
}

async function startChild(path: string, shell = ''): Promise<Child> {
  const script = programFile('test/store/crash-child.ts');
  const child =
    shell === ''
      ? spawn(process.execPath, [script, path], { stdio: ['pipe', 'pipe', 'inherit'], env: childEnv() })
      : spawn('sh', ['-c', `${shell}; exec "$0" "$@"`, process.execPath, script, path], {
          stdio: ['pipe', 'pipe', 'inherit'],
          env: childEnv(),
        });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const started: Child = {
    process: child,
    line: async () => String((await lines.next()).value),
    tell: (text) => child.stdin.write(`${text}\n`),
  };
  assert.equal(await started.line(), 'open');
  return started;
}

describe('a SQLite store that something happens to', () => {
  test('what a process was told is stored is there after kill -9', async () => {
    const path = place();
    const child = await startChild(path);
    child.tell('run');
    const links: string[] = [];
    while (links.length < 300) links.push(await child.line());
    child.process.kill('SIGKILL');
    await once(child.process, 'exit');
    const store = await openStore(path);
    for (const link of links) assert.notEqual(await store.findClaim({ link }), undefined);
    await store.close();
    assert.deepEqual((await checkStore(path)).problems, []);
  });

  test('a second gateway is refused while the first lives, and a check may look on', async () => {
    const path = place();
    const store = await openStore(path);
    await store.commit([{ op: 'claim', claim: aClaim() }]);
    await assert.rejects(openStore(path), /in use by another gateway/);
    const report = await checkStore(path);
    assert.deepEqual(report.problems, []);
    assert.equal(report.rows['claims'], 1);
    await recovers(store);
    await store.close();
    await (await openStore(path)).close();
  });

  test('a file that another process has locked gives faults until it lets go', async () => {
    const path = place();
    const store = await openStore(path);
    const other = new Database(path);
    other.exec('BEGIN IMMEDIATE');
    const fault = await faultOf(store);
    assert.match(fault.message, /locked by another process/);
    assert.equal(fault.maybe, false);
    await assert.rejects(store.ready(), /locked by another process/);
    other.exec('ROLLBACK');
    other.close();
    await store.ready();
    assert.deepEqual(await store.commit([{ op: 'claim', claim: aClaim() }]), { ok: true });
    await store.close();
  });

  test('a directory that goes away gives faults until it comes back, and no empty store takes its place', async () => {
    const path = place();
    const store = await openStore(path);
    const claim = aClaim();
    await store.commit([{ op: 'claim', claim }]);
    const home = join(path, '..');
    renameSync(home, `${home}-away`);
    assert.match((await faultOf(store)).message, /moved or replaced|gone/);
    await assert.rejects(store.ready(), StoreFault);
    await assert.rejects(store.findClaim(claim), StoreFault);
    assert.equal(existsSync(path), false);
    renameSync(`${home}-away`, home);
    await recovers(store);
    assert.deepEqual(await store.findClaim(claim), claim);
    await store.close();
  });

  test('the file of another store at its place is not written to', async () => {
    const [path, otherPath] = [place(), place()];
    await (await openStore(otherPath)).close();
    const store = await openStore(path);
    renameSync(path, `${path}-away`);
    renameSync(`${path}-wal`, `${path}-away-wal`);
    renameSync(otherPath, path);
    assert.match((await faultOf(store)).message, /moved or replaced/);
    await assert.rejects(store.ready(), /another store/);
    for (const ending of ['-wal', '-shm']) rmSync(`${path}${ending}`, { force: true });
    renameSync(`${path}-away`, path);
    renameSync(`${path}-away-wal`, `${path}-wal`);
    await recovers(store);
    await store.close();
  });

  test('a full disk gives faults and the store goes on once there is room', async (t) => {
    try {
      execFileSync('prlimit', ['--version']);
    } catch {
      t.skip('prlimit is not here to make the disk look full');
      return;
    }
    const path = place();
    // A limit on the size of files is to SQLite what a full disk is; without the trap it would end the process.
    const child = await startChild(path, "trap '' XFSZ");
    const limit = (size: string): void => {
      execFileSync('prlimit', ['--pid', String(child.process.pid), `--fsize=${size}:unlimited`]);
    };
    child.tell('one');
    const before = await child.line();
    limit('150000');
    child.tell('one');
    assert.match(await child.line(), /^fault .*(disk is full|cannot be read or written|cannot be opened)/);
    limit('unlimited');
    let after = '';
    for (let left = 50; left > 0 && !/^[\w-]{22}$/.test(after); left -= 1) {
      child.tell('one');
      after = await child.line();
      await delay(50);
    }
    child.process.stdin?.end();
    await once(child.process, 'exit');
    const store = await openStore(path);
    for (const link of [before, after]) assert.notEqual(await store.findClaim({ link }), undefined);
    await store.close();
    assert.deepEqual((await checkStore(path)).problems, []);
  });

  test('what is enqueued and not stored is told of, and nothing is thrown', async () => {
    const path = place();
    const lost: (StoreFault | Conflict)[] = [];
    const store = await openStore(path, { onLost: (why) => lost.push(why) });
    const claim = aClaim();
    store.enqueue([{ op: 'claim', claim }]);
    store.enqueue([{ op: 'claim', claim }]);
    await store.findClaim(claim);
    assert.deepEqual(lost, [{ ok: false, operation: 0, conflict: 'claim_exists' }]);
    const home = join(path, '..');
    renameSync(home, `${home}-away`);
    store.enqueue([{ op: 'claim', claim: aClaim() }]);
    await faultOf(store);
    assert.ok(lost[1] instanceof StoreFault);
    renameSync(`${home}-away`, home);
    await store.close();
    store.enqueue([{ op: 'claim', claim: aClaim() }]);
    await assert.rejects(store.commit([{ op: 'claim', claim: aClaim() }]), /closed/);
    assert.equal(lost.length, 3);
  });

  test('what was sent before closing is stored, and what comes after is refused', async () => {
    const path = place();
    const store = await openStore(path);
    const claims = Array.from({ length: 120 }, () => aClaim());
    const commits = claims.map((claim) => store.commit([{ op: 'claim', claim }]));
    const last = aClaim();
    store.enqueue([{ op: 'claim', claim: last }]);
    await store.close();
    for (const result of await Promise.all(commits)) assert.deepEqual(result, { ok: true });
    const again = await openStore(path);
    for (const claim of [...claims, last]) assert.deepEqual(await again.findClaim(claim), claim);
    await again.close();
    await assert.rejects(store.commit([{ op: 'claim', claim: aClaim() }]), /closed/);
    await assert.rejects(store.findClaim(last), /closed/);
    await assert.rejects(store.ready(), /closed/);
    await store.close();
  });
});
