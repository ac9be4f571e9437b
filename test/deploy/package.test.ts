import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { cp, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join, normalize } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';
import { encodeBase64url } from '../../receipts/base64url.ts';
import { renderSigningKeyPem } from '../../receipts/keys.ts';
import { childEnv } from '../child-env.ts';
import { APP, startWorld, type World } from '../proofs/world.ts';
import { builtDist } from './built.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const BROWSER = '/usr/bin/chromium';

/** What a page, a worker and a Node process all run: the client over a carried history, every answer verified. */
const SCENARIO = `
export async function play({ Client, History }, options) {
  const client = new Client(options);
  const session = client.session('desk', { carried: true });
  const own = { origins: { order_id: 'context' } };
  const read = await session.check('shop/get_order', { order_id: 'A1' });
  await session.ran(read, 'ran', { total: 9007199254740993n });
  const write = await session.check('shop/send', { order_id: 'A1' }, own);
  if (write.decision !== 'allow') throw new Error(write.sentence);
  const sent = await session.call('shop/send', { order_id: 'A1' }, { receipt: await session.receipt(write) });
  const history = History.from(JSON.stringify(await session.history()));
  history.verify({ publicKey: options.publicKey });
  let code = 'none';
  try { String(write); } catch (error) { code = error.code; }
  return [read.decision, sent.outcome, history.entries.length, code].join(' ');
}
`;
const PLAYED = 'allow ran 2 no_truth_value';

describe('the built package', () => {
  let folder: string;
  let world: World;
  let options: { readonly url: string; readonly key: string; readonly publicKey: string };
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'toolgate-package-'));
    [world] = await Promise.all([startWorld(), installBuilt(folder)]);
    const publicKey = encodeBase64url(world.gateway.gateway.loaded.signing.publicBytes);
    options = { url: world.gateway.url, key: APP.key, publicKey };
  });
  after(async () => {
    await world.close();
    await rm(folder, { recursive: true, force: true });
  });

  test('`toolgate/client` and `toolgate/check` are imported by name', async () => {
    await writeFile(join(folder, 'scenario.js'), SCENARIO);
    const checker = {
      configFile: world.gateway.configFile,
      issuer: 'desk-runtime',
      signingKey: renderSigningKeyPem(new Uint8Array(32).fill(11)),
    };
    await writeFile(
      join(folder, 'main.js'),
      `import * as library from 'toolgate/client';
       import { LocalChecker } from 'toolgate/check';
       import { play } from './scenario.js';
       console.log(await play(library, ${JSON.stringify(options)}));
       const checker = await LocalChecker.load(${JSON.stringify(checker)});
       const session = checker.session('desk');
       const check = session.check('shop/get_order', { order_id: 'A1' });
       const client = new library.Client(${JSON.stringify(options)});
       const called = await client.session('desk').call('shop/get_order', { order_id: 'A1' }, { receipt: session.receipt(check) });
       console.log(check.decision, called.outcome);`,
    );
    const { code, out } = await run([join(folder, 'main.js')]);
    assert.equal(code, 0, out);
    assert.equal(out, `${PLAYED}\nallow ran\n`);
  });

  test('its types are found by name, and keep a check from being a condition', async () => {
    await writeFile(
      join(folder, 'consumer.ts'),
      `import { Client, type Checked, GatewayProblem, History } from 'toolgate/client';
       import { LocalChecker, type LocalSession } from 'toolgate/check';
       export async function ask(client: Client): Promise<string> {
         const check: Checked = await client.session('desk').check('a/b', { id: 9007199254740993n });
         const asked = client.session('desk').check('a/b', {});
         // @ts-expect-error neither is one that was not awaited
         if (asked) return 'no';
         if (check.decision === 'allow') return History.from('{}').toHeader();
         // @ts-expect-error a check is no condition
         if (check) return 'no';
         return String(GatewayProblem.name);
       }
       export const local = async (): Promise<LocalSession> =>
         (await LocalChecker.load({ configFile: 'gateway.yaml', issuer: 'x', signingKey: '' })).session('desk');`,
    );
    const flags = [
      '--noEmit',
      '--strict',
      '--module',
      'nodenext',
      '--target',
      'es2024',
      '--types',
      'node',
      '--skipLibCheck',
    ];
    const tsc = join(ROOT, 'node_modules/typescript/bin/tsc');
    await writeFile(join(folder, 'package.json'), '{"type":"module"}');
    const { code, out } = await run([tsc, ...flags, 'consumer.ts'], folder);
    assert.equal(code, 0, out);
  });

  test('the client runs in a page and in a worker', {
    skip: !existsSync(BROWSER) && `no browser at ${BROWSER}`,
  }, async () => {
    const site = await startSite(folder, world.gateway.url);
    const browser = await chromium.launch({ executablePath: BROWSER, args: ['--no-sandbox'] });
    try {
      const page = await browser.newPage();
      const failures: string[] = [];
      page.on('pageerror', (error) => failures.push(String(error)));
      await page.goto(site.url);
      const given = JSON.stringify({ ...options, url: site.url });
      const inPage = `Promise.all([import('/dist/gateway/client/entry.js'), import('/scenario.js')]).then(([library, { play }]) => play(library, ${given}))`;
      assert.equal(await page.evaluate(inPage), PLAYED, failures.join('\n'));
      const inWorker = `new Promise((resolve, reject) => {
        const worker = new Worker('/worker.js', { type: 'module' });
        worker.onmessage = ({ data }) => resolve(data);
        worker.onerror = (event) => reject(new Error(event.message));
        worker.postMessage(${given});
      })`;
      assert.equal(await page.evaluate(inWorker), PLAYED, failures.join('\n'));
    } finally {
      await browser.close();
      await site.close();
    }
  });
});

/** Lays the package out as an installation would: its files under `node_modules/toolgate`, its dependencies beside it. */
async function installBuilt(folder: string): Promise<void> {
  const own = join(folder, 'node_modules/toolgate');
  await mkdir(own, { recursive: true });
  await cp(await builtDist(), join(own, 'dist'), { recursive: true });
  await writeFile(join(own, 'package.json'), await readFile(join(ROOT, 'package.json')));
  for (const name of await readdir(join(ROOT, 'node_modules'))) {
    if (name !== 'toolgate') await symlink(join(ROOT, 'node_modules', name), join(folder, 'node_modules', name));
  }
}

function run(args: readonly string[], cwd?: string): Promise<{ readonly code: number | null; readonly out: string }> {
  const child = spawn(process.execPath, args, { env: childEnv(), ...(cwd === undefined ? {} : { cwd }) });
  let out = '';
  child.stdout.on('data', (chunk: Buffer) => (out += chunk.toString('utf8')));
  child.stderr.on('data', (chunk: Buffer) => (out += chunk.toString('utf8')));
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (code) => resolve({ code, out }));
  });
}

const WORKER = `
import * as library from '/dist/gateway/client/entry.js';
import { play } from '/scenario.js';
self.onmessage = ({ data }) => play(library, data).then((said) => self.postMessage(said), (error) => self.postMessage(String(error.stack)));
`;

/** A site with the built modules, and the gateway's API under the same origin. Import maps do not reach workers, so that bare names are written out. */
async function startSite(folder: string, gateway: string): Promise<{ readonly url: string; close(): Promise<void> }> {
  const modules = join(folder, 'node_modules');
  const texts: Readonly<Record<string, string>> = { '/scenario.js': SCENARIO, '/worker.js': WORKER };
  const textOf = async (path: string): Promise<string> => {
    const known = texts[path];
    if (known !== undefined) return known;
    const file = path.startsWith('/dist/')
      ? join(modules, 'toolgate', normalize(path))
      : join(modules, normalize(path));
    const text = await readFile(file, 'utf8');
    return text
      .replaceAll("'@noble/ed25519'", "'/@noble/ed25519/index.js'")
      .replaceAll("'@noble/hashes/", "'/@noble/hashes/");
  };
  const server = createServer((request, response) => {
    const path = request.url ?? '/';
    if (path.startsWith('/v1/')) {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        const names = ['authorization', 'content-type', 'toolgate-receipt', 'origin'];
        const headers = names.flatMap((name): [string, string][] => {
          const value = request.headers[name];
          return typeof value === 'string' ? [[name, value]] : [];
        });
        const init = {
          method: request.method ?? 'GET',
          headers,
          ...(chunks.length === 0 ? {} : { body: Buffer.concat(chunks) }),
        };
        fetch(`${gateway}${path}`, init).then(
          async (answer) => {
            response.writeHead(answer.status, { 'content-type': answer.headers.get('content-type') ?? 'text/plain' });
            response.end(await answer.text());
          },
          (error: unknown) => response.writeHead(502).end(String(error)),
        );
      });
      return;
    }
    if (path === '/') {
      response.writeHead(200, { 'content-type': 'text/html' }).end('<!doctype html><title>client</title>');
      return;
    }
    textOf(path).then(
      (text) => response.writeHead(200, { 'content-type': 'text/javascript' }).end(text),
      () => response.writeHead(404).end(),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
