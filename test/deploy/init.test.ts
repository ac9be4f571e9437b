import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { promisify } from 'node:util';
import { type Shop, startShop } from '../../deploy/examples/shop/backend.ts';
import { CliFault } from '../../gateway/cli/command.ts';
import { diagnose, renderFindings } from '../../gateway/cli/doctor.ts';
import { type InitOptions, makeStarter } from '../../gateway/cli/init.ts';
import { renderSigningKeyPem } from '../../receipts/keys.ts';
import { childEnv } from '../child-env.ts';
import { asked, send } from '../cluster/scenario.ts';
import { programFile } from '../programs.ts';
import { serveGateway } from './served.ts';

const run = promisify(execFile);
const MAIN = programFile('gateway/cli/main.ts');
const DOCUMENT = join(import.meta.dirname, '../../deploy/examples/shop/openapi.yaml');

let folder: string;
let shop: Shop;
before(async () => {
  [folder, shop] = await Promise.all([mkdtemp(join(tmpdir(), 'toolgate-init-')), startShop()]);
});
after(async () => {
  await shop.close();
  await rm(folder, { recursive: true, force: true, maxRetries: 5 });
});

function init(options: Partial<InitOptions>): Promise<string> {
  return makeStarter({ dir: folder, name: 'api', listen: '127.0.0.1:8080', ...options });
}

describe('toolgate init', () => {
  test('for an OpenAPI file it writes what serves, and a call runs, with no edit', async () => {
    const dir = join(folder, 'shop');
    const args = ['--openapi', DOCUMENT, '--upstream', shop.url, '--name', 'shop', '--dir', dir];
    const { stdout } = await run(process.execPath, [MAIN, 'init', ...args], { env: childEnv() });
    const key = /API key of the application, shown this once: (\S+)/.exec(stdout)?.[1] ?? '';
    const text = await readFile(join(dir, 'gateway.yaml'), 'utf8');
    assert.ok(!text.includes(key));
    assert.match(text, /- \{ name: get_order \} # GET \/orders\/\{order_id\}: assumed to change nothing/);
    assert.match(text, /- \{ name: charge_card, writes: true \} # POST \/charges: assumed to write/);
    const described = (await readFile(DOCUMENT, 'utf8')).match(/operationId:/g)?.length ?? 0;
    assert.equal(text.match(/^ {6}- \{ name: /gm)?.length, described);

    const file = join(dir, 'gateway.yaml');
    const gateway = await serveGateway({ folder, name: 'init', config: await onFreePort(file) });
    assert.ok(gateway.said().includes(`${described} tools on 1 route`), gateway.said());
    const read = await send(gateway.url, 'GET', '/shop/orders/4411', { key, session: 'one' });
    assert.deepEqual([read.status, read.json['order_id']], [200, '4411']);
    const charge = { key, session: 'one', body: { order_id: '4411', amount: 4 } };
    const first = await send(gateway.url, 'POST', '/shop/charges', charge);
    assert.equal(first.status, 428);
    const headers = { 'toolgate-confirmation': asked(first).token };
    assert.equal((await send(gateway.url, 'POST', '/shop/charges', { ...charge, headers })).status, 201);
    assert.equal((await fetch(`${gateway.url}/shop/orders/4411`)).status, 401);
    const well = await run(process.execPath, [MAIN, 'doctor', '-c', gateway.configFile], { env: childEnv() });
    assert.match(well.stdout, /^ok +store +SQLite/m);
    assert.match(well.stdout, /^WARNING +round shop +nothing shows/m);
    assert.equal(await gateway.stop(), 0);

    await assert.rejects(init({ openapi: DOCUMENT, upstream: shop.url, dir }), /is there already/);
    assert.equal(await readFile(file, 'utf8'), text);
  });

  test('it finds the document at the backend, or says that there is none and gives an example', async () => {
    const document = JSON.stringify({
      openapi: '3.1.0',
      info: { title: 'x', version: '1' },
      paths: { '/things': { get: { operationId: 'list_things', responses: { 200: { description: 'ok' } } } } },
    });
    const backend = createServer((request, response) => {
      if (request.url === '/openapi.json') response.end(document);
      else response.writeHead(404).end();
    }).listen(0, '127.0.0.1');
    await once(backend, 'listening');
    const url = `http://127.0.0.1:${(backend.address() as AddressInfo).port}`;
    await init({ upstream: url, dir: join(folder, 'found') });
    assert.match(
      await readFile(join(folder, 'found/gateway.yaml'), 'utf8'),
      /openapi: \.\/openapi\.json # found at http/,
    );
    backend.close();
    await init({ upstream: shop.url, dir: join(folder, 'plain') });
    assert.match(await readFile(join(folder, 'plain/gateway.yaml'), 'utf8'), /No OpenAPI document was found/);
  });

  test('for an MCP server it lists what the server lists, and believes nothing of it', async () => {
    const server = join(import.meta.dirname, '../../node_modules/@modelcontextprotocol/server-memory/dist/index.js');
    const dir = join(folder, 'mcp');
    const said = await init({ mcp: [process.execPath, server], name: 'memory', dir });
    assert.match(said, /send its calls to http:\/\/127\.0\.0\.1:8080\/mcp /);
    const text = await readFile(join(dir, 'gateway.yaml'), 'utf8');
    assert.match(text, /^ {4}mcp: \{"command":\[/m);
    assert.match(text, /- \{ name: read_graph, writes: true \} # called by its name: assumed to write/);
  });

  test('what it cannot make a configuration of it says, and leaves nothing', async () => {
    const dir = join(folder, 'nothing');
    await assert.rejects(init({ dir }), /name a backend/);
    const text = join(folder, 'text.yaml');
    await writeFile(text, 'openapi: 3.1.0\ninfo: 7\n');
    await assert.rejects(init({ openapi: text, upstream: shop.url, dir }), CliFault);
    await assert.rejects(init({ upstream: 'shop', dir }), /is no address/);
    await assert.rejects(readFile(join(dir, 'gateway.yaml')), { code: 'ENOENT' });
  });
});

/** A copy of a config that listens where there is room. */
async function onFreePort(file: string): Promise<string> {
  const copy = file.replace('gateway.yaml', 'free.yaml');
  await writeFile(copy, (await readFile(file, 'utf8')).replace('listen: 127.0.0.1:8080', 'listen: 127.0.0.1:0'));
  return copy;
}

describe('toolgate doctor', () => {
  test('it tells a backend that is down, a key that others read, a store that is none, and a way round the gateway', async () => {
    const file = join(folder, 'sick.yaml');
    await writeFile(
      join(folder, 'sick.db'),
      'this is no database, and it is long enough to be taken for one'.repeat(20),
    );
    const key = join(folder, 'sick.pem');
    await writeFile(key, renderSigningKeyPem(randomBytes(32)));
    await chmod(key, 0o644);
    await writeFile(
      file,
      `keys: { signing: ./sick.pem }
store: ./sick.db
audit: { file: ./sick.jsonl }
agents: { desk: {} }
routes:
  - { name: up, upstream: "${shop.url}", http: [{ name: get_order, method: GET, path: /x }] }
  - { name: down, upstream: "http://127.0.0.1:9", http: [{ name: get_other, method: GET, path: /x }] }
`,
    );
    const out = renderFindings(await diagnose({ config: file, as: 'gateway' }));
    assert.match(out, /^FAULT +upstream of down +`http:\/\/127\.0\.0\.1:9` does not answer/m);
    assert.match(out, /^FAULT +signing key +\S+ can be read by every user/m);
    assert.match(out, /^FAULT +store /m);
    assert.match(out, /^ok +audit log/m);
    assert.match(out, /^ok +clock +within \d s/m);
    const findings = await diagnose({ config: file, as: 'agent' });
    assert.deepEqual(
      findings.map(({ about, state }) => `${about}: ${state}`),
      ['config: ok', 'round up: fault', 'round down: ok'],
    );
  });
});
