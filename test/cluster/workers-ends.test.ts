import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage } from 'node:http';
import { Agent, request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { connect, type TLSSocket } from 'node:tls';
import { promisify } from 'node:util';
import { stringify } from 'yaml';
import { FileLock } from '../../gateway/audit/lock.ts';
import { verifyAudit } from '../../gateway/audit/verify.ts';
import { nodeCrypto } from '../../receipts/crypto-node.ts';
import { parseSigningKey } from '../../receipts/keys.ts';
import { childEnv } from '../child-env.ts';
import { toolgate } from '../cli/run.ts';
import { type Served, serveGateway } from '../deploy/served.ts';
import { type Backend, type Certificate, makeCertificate, start } from '../http/backends.ts';
import { freePort, startPostgres, type TestPostgres } from '../postgres.ts';
import { programFile } from '../programs.ts';

/** Far beyond what anything here takes. */
const BOUND_MS = 180_000;
const UPGRADE = ['Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Version: 13'].join('\r\n');

/** Whether a process is there, and is no corpse. */
function lives(pid: number): boolean {
  try {
    return !/^\d+ \(.*\) Z/s.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return false;
  }
}

async function until(what: string, is: () => boolean | Promise<boolean>): Promise<void> {
  for (const since = Date.now(); !(await is()); await pause(50))
    assert.ok(Date.now() - since < BOUND_MS, `it does not come to this: ${what}`);
}

describe('two workers behind TLS, and how they end', () => {
  let folder: string;
  let postgres: TestPostgres | string;
  let backend: Backend;
  let certificates: readonly Certificate[] = [];
  let config: object;
  let gateway: Served;
  let port: number;
  /** Answers of the backend that are held back. */
  const held: (() => void)[] = [];
  const skipped = (): string | false =>
    typeof postgres === 'string' ? postgres : certificates.length < 2 ? 'the openssl program is not installed' : false;

  before(async () => {
    [folder, postgres] = await Promise.all([mkdtemp(join(tmpdir(), 'toolgate-ends-')), startPostgres()]);
    certificates = [1, 2].flatMap(() => makeCertificate('127.0.0.1') ?? []);
    if (skipped() !== false || typeof postgres === 'string') return;
    const server = createServer((incoming, response) => {
      const answer = (): void => void response.setHeader('content-type', 'application/json').end('{"status":"open"}');
      if (incoming.url === '/orders/slow') held.push(answer);
      else answer();
    });
    server.on('upgrade', (_incoming, socket) => {
      socket.on('error', () => socket.destroy());
      socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n');
      socket.pipe(socket);
    });
    backend = await start(server);
    port = await freePort();
    await certify(0);
    const http = [{ name: 'get_order', method: 'GET', path: '/orders/{order_id}' }];
    config = {
      listen: { host: '127.0.0.1', port, tls: { cert: './tls.crt', key: './tls.key' } },
      tenant: 'shop',
      audience: 'shop-gateway',
      keys: { signing: './e.pem' },
      store: await postgres.database(),
      audit: { file: './e.jsonl' },
      workers: 2,
      agents: { desk: {} },
      routes: [{ name: 'shop', path: '/shop', upstream: backend.origin, http, pass: ['/live'] }],
    };
    gateway = await serveGateway({ folder, name: 'ends', config });
  });
  after(async () => {
    gateway?.child.kill('SIGKILL');
    await backend?.close();
    if (typeof postgres !== 'string') await postgres.close();
    await rm(folder, { recursive: true, force: true, maxRetries: 5 });
  });

  const logOf = (worker: number): string => join(folder, worker === 1 ? 'e.jsonl' : `e-${worker}.jsonl`);
  const isUp = (worker: number): boolean => existsSync(`${logOf(worker)}.lock`);
  const pidOf = (worker: number): number => Number(JSON.parse(readFileSync(`${logOf(worker)}.lock`, 'utf8')).pid);

  async function certify(at: number): Promise<void> {
    await writeFile(join(folder, 'tls.crt'), certificates[at]?.cert ?? '');
    await writeFile(join(folder, 'tls.key'), certificates[at]?.key ?? '');
  }

  /** One call, by default over a connection of its own: its status, and the certificate that was shown. */
  function call(path: string, agent: Agent = new Agent()): Promise<{ status: number; shown: string }> {
    return new Promise((resolve, reject) => {
      const options = { host: '127.0.0.1', port, path, agent, rejectUnauthorized: false };
      let shown = '';
      const sent = request(options, (answer: IncomingMessage) => {
        answer.resume().once('end', () => resolve({ status: answer.statusCode ?? 0, shown }));
      });
      sent.once('socket', (socket) => {
        // One that is resumed, or was used before, shows none.
        const look = (): unknown => (shown = (socket as TLSSocket).getPeerX509Certificate()?.fingerprint256 ?? '');
        if (sent.reusedSocket) shown = 'kept';
        else socket.once('secureConnect', look);
      });
      sent.once('error', reject).end();
    });
  }

  const calls = (count: number): Promise<readonly { status: number; shown: string }[]> =>
    Promise.all(Array.from({ length: count }, (_, at) => call(`/shop/orders/${at}`)));
  const fingerprint = (at: number): string => new X509Certificate(certificates[at]?.cert ?? '').fingerprint256;

  /** Opens an upgraded connection, and resolves once something came back over it. */
  function openSocket(): Promise<TLSSocket> {
    return new Promise((resolve, reject) => {
      const socket = connect({ host: '127.0.0.1', port, rejectUnauthorized: false });
      let text = '';
      socket.on('error', reject).on('data', (chunk: Buffer) => {
        text += chunk.toString('latin1');
        if (text.endsWith('hello')) resolve(socket);
      });
      socket.write(
        `GET /shop/live HTTP/1.1\r\nHost: 127.0.0.1\r\n${UPGRADE}\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\nhello`,
      );
    });
  }

  test('both take calls and upgrades over TLS; a new certificate is shown by both, and kept connections go on', async (t) => {
    if (skipped() !== false) return t.skip(String(skipped()));
    for (const { status, shown } of await calls(8)) assert.deepEqual([status, shown], [200, fingerprint(0)]);
    const kept = new Agent({ keepAlive: true, maxSockets: 1 });
    await call('/shop/orders/1', kept);
    const sockets = await Promise.all([1, 2, 3, 4, 5, 6].map(openSocket));
    const ended = Promise.all(sockets.map((socket) => new Promise((resolve) => socket.once('close', resolve))));
    await certify(1);
    gateway.child.kill('SIGHUP');
    // A second one while the first is under way takes its turn.
    gateway.child.kill('SIGHUP');
    await gateway.until(/the configuration was reloaded/);
    await ended;
    for (const { status, shown } of await calls(8)) assert.deepEqual([status, shown], [200, fingerprint(1)]);
    assert.deepEqual(await call('/shop/orders/2', kept), { status: 200, shown: 'kept' });
    kept.destroy();
    const passed = [1, 2].map((worker) => readFileSync(logOf(worker), 'utf8').split('"pattern":"/live"').length - 1);
    assert.equal(
      passed.reduce((sum, count) => sum + count, 0),
      6,
    );
  });

  test('a worker that hangs is ended, and another takes its place', async (t) => {
    if (skipped() !== false) return t.skip(String(skipped()));
    const hanging = pidOf(2);
    process.kill(hanging, 'SIGSTOP');
    await gateway.until(/a worker hangs; it is ended/);
    await until('another second worker', () => isUp(2) && pidOf(2) !== hanging);
    await until('it takes calls', async () => (await calls(6).catch(() => [])).length === 6);
    assert.equal(lives(hanging), false);
  });

  test('the primary is killed: calls that were accepted are answered, and then no worker is left', async (t) => {
    if (skipped() !== false) return t.skip(String(skipped()));
    await until('both workers are up', () => [1, 2].every((worker) => isUp(worker) && lives(pidOf(worker))));
    const pids = [1, 2].map(pidOf);
    const slow = [1, 2, 3, 4].map(() => call('/shop/orders/slow'));
    await until('all are with the backend', () => held.length === 4);
    gateway.child.kill('SIGKILL');
    await until('nobody takes calls any more', () =>
      call('/shop/orders/9').then(
        ({ status }) => status === 503,
        () => true,
      ),
    );
    for (const answer of held.splice(0)) answer();
    assert.deepEqual(
      (await Promise.all(slow)).map(({ status }) => status),
      [200, 200, 200, 200],
    );
    await until('the workers ended', () => !pids.some(lives));
  });

  test('a primary that is killed while its workers start leaves none, whenever that is', async (t) => {
    if (skipped() !== false) return t.skip(String(skipped()));
    const args = [programFile('gateway/cli/main.ts'), 'serve', '-c', gateway.configFile, '--log-level', 'warn'];
    const starting = execFile(process.execPath, args, { env: childEnv() });
    // A log that is opened is that of a worker which has asked its last question and says next that it is ready.
    await until('a worker opens its log', () => isUp(1));
    const pid = pidOf(1);
    starting.kill('SIGKILL');
    await until('the worker ended', () => !lives(pid));
  });

  test('a worker that cannot start: the command says why and ends, and its workers with it', async (t) => {
    if (skipped() !== false) return t.skip(String(skipped()));
    const lock = FileLock.acquire(`${logOf(2)}.lock`, Date.now());
    const args = [programFile('gateway/cli/main.ts'), 'serve', '-c', gateway.configFile, '--log-level', 'warn'];
    const run = (): Promise<{ readonly code?: number; readonly stderr: string }> =>
      promisify(execFile)(process.execPath, args, { env: childEnv() }).catch((error) => error);
    const { code, stderr } = await run();
    assert.equal(code, 1, stderr);
    assert.match(stderr, /ends\.yaml:\d+:\d+: the audit log `.*e-2\.jsonl` cannot be opened: process \d+ .* writes/);
    assert.equal(stderr.match(/cannot be opened/g)?.length, 1, stderr);
    assert.match(stderr, /a worker did not start, and has said why/);
    lock.release();
    await until('the first worker ended', () => !isUp(1) || !lives(pidOf(1)));
    // A port that somebody else of this user has is not shared with them.
    const squatter = createServer();
    await new Promise<void>((resolve) => squatter.listen({ host: '127.0.0.1', port, reusePort: true }, resolve));
    const taken = await run();
    squatter.close();
    assert.equal(taken.code, 1);
    assert.match(taken.stderr, /ends\.yaml:\d+:\d+: `127\.0\.0\.1:\d+` cannot be listened on: another process listens/);
  });

  test('a worker that is killed while the others start is replaced; after all, each log is a whole chain', async (t) => {
    if (skipped() !== false) return t.skip(String(skipped()));
    await rm(`${logOf(1)}.lock`, { force: true });
    const again = serveGateway({ folder, name: 'again', config });
    // The second is started once the first has said that it takes calls, and is not done when it opens its log.
    await until('the second worker starts', () => isUp(2));
    const killed = pidOf(1);
    process.kill(killed, 'SIGKILL');
    gateway = await again;
    await until('another first worker', () => isUp(1) && pidOf(1) !== killed && lives(pidOf(1)));
    await until('it takes calls', async () => (await calls(6).catch(() => [])).length === 6);
    assert.equal(await gateway.stop(), 0, gateway.said());
    const key = nodeCrypto.signingKey(parseSigningKey(readFileSync(join(folder, 'e.pem'), 'utf8')));
    for (const worker of [1, 2]) {
      const { report } = await verifyAudit([logOf(worker)], { keys: [nodeCrypto.publicKey(key.publicBytes)] });
      assert.equal(report.verdict, 'intact', report.why);
    }
  });
});

test('what a configuration with workers may not say is told with its place', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'toolgate-counts-'));
  const file = join(folder, 'gateway.yaml');
  const validate = async (more: object): Promise<string> => {
    await writeFile(file, stringify({ listen: '127.0.0.1:0', agents: { desk: {} }, routes: [], ...more }));
    const ended = await toolgate('validate', file);
    return `${ended.stdout}${ended.stderr}`;
  };
  const postgres = { store: 'postgres://127.0.0.1:1/none' };
  try {
    for (const [more, said] of [
      [{ ...postgres, workers: 0 }, /gateway\.yaml:\d+:\d+: error: `0` does not fit: it must be at least 1/],
      [{ ...postgres, workers: 257 }, /gateway\.yaml:\d+:\d+: error: `257` does not fit/],
      [{ store: './a.db', workers: 2 }, /gateway\.yaml:\d+:\d+: error: .*SQLite store belongs to one process/],
    ] as const)
      assert.match(await validate(more), said);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});
