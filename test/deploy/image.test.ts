import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { builtinModules } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { parse, parseDocument } from 'yaml';
import { startShop } from '../../deploy/examples/shop/backend.ts';
import { childEnv } from '../child-env.ts';
import { builtDist, instructions } from './built.ts';
import { serveGateway } from './served.ts';

const run = promisify(execFile);
const ROOT = join(import.meta.dirname, '../..');
const read = (file: string): string => readFileSync(join(ROOT, file), 'utf8');

interface Package {
  readonly version: string;
  readonly dependencies: Record<string, string>;
  readonly devDependencies: Record<string, string>;
}
const manifest = JSON.parse(read('package.json')) as Package;

describe('Dockerfile', () => {
  const all = instructions(read('Dockerfile'));
  const of = (word: string): string[] => all.filter((one) => one.word === word).map(({ rest }) => rest);

  test('it is of the Node that the project pins, in a slim image named in full', () => {
    const [image] = of('ARG');
    assert.equal(image, `NODE_IMAGE=docker.io/library/node:${manifest.devDependencies['node']}-bookworm-slim`);
    assert.ok(of('FROM').every((from) => from.startsWith(`\${NODE_IMAGE}`)));
  });

  test('the last stage runs as a user by number, without a shell, and has production files alone', () => {
    const last = all.slice(all.findLastIndex(({ word }) => word === 'FROM'));
    const words = last.map(({ word }) => word);
    assert.equal(last.find(({ word }) => word === 'USER')?.rest, '10001:10001');
    assert.ok(words.indexOf('USER') < words.indexOf('ENTRYPOINT'));
    for (const word of ['ENTRYPOINT', 'CMD']) {
      assert.ok(Array.isArray(JSON.parse(last.find((one) => one.word === word)?.rest ?? '')));
    }
    const health = last.find(({ word }) => word === 'HEALTHCHECK')?.rest ?? '';
    const probe = JSON.parse(health.slice(health.indexOf('CMD ') + 4)) as string[];
    assert.equal(probe[0], 'node');
    const copied = last.filter(({ word }) => word === 'COPY').map(({ rest }) => rest);
    assert.ok(copied.every((rest) => rest.startsWith('--from=')));
  });

  test('it adds nothing from the network, sets no secret, and changes no folder by `cd`', () => {
    assert.deepEqual(of('ADD'), []);
    for (const line of of('RUN')) assert.doesNotMatch(line, /\b(?:sudo|curl|wget|cd)\b|apt-get/);
    for (const { word, rest } of all) {
      if (word === 'ENV' || word === 'ARG') assert.doesNotMatch(rest, /key|token|password|secret/i);
    }
    for (const line of of('RUN').filter((one) => one.includes('npm ci'))) assert.match(line, /--ignore-scripts/);
    assert.ok(of('WORKDIR').every((folder) => folder.startsWith('/')));
  });

  test('the build reads what .dockerignore lets through, and nothing secret', () => {
    const lines = read('.dockerignore').split('\n');
    assert.ok(lines.includes('*'));
    const let_through = new Set(lines.filter((line) => line.startsWith('!')).map((line) => line.slice(1)));
    for (const rest of of('COPY').filter((one) => !one.startsWith('--from='))) {
      for (const source of rest.split(' ').slice(0, -1)) assert.ok(let_through.has(source.replace('./', '')), source);
    }
    for (const secret of ['**/*.pem', '**/*.db', '**/.env*'])
      assert.ok(lines.indexOf(secret) > lines.lastIndexOf('!gateway'));
  });
});

/** Packages that `npm ci --omit=dev` installs, by their places in node_modules. */
function productionPackages(): readonly string[] {
  const lock = JSON.parse(read('package-lock.json')) as {
    packages: Record<string, { dev?: boolean; devOptional?: boolean }>;
  };
  return Object.entries(lock.packages)
    .filter(
      ([place, { dev, devOptional }]) => place.startsWith('node_modules/') && dev !== true && devOptional !== true,
    )
    .map(([place]) => place);
}

describe('the steps of the image by hand', () => {
  const folder = mkdtempSync(join(tmpdir(), 'toolgate-image-'));
  const app = join(folder, 'app');
  before(async () => {
    mkdirSync(app);
    cpSync(await builtDist(), join(app, 'dist'), { recursive: true });
    cpSync(join(ROOT, 'package.json'), join(app, 'package.json'));
    for (const place of productionPackages()) {
      if (place.indexOf('node_modules/', 1) > 0) continue;
      mkdirSync(join(app, place, '..'), { recursive: true });
      try {
        symlinkSync(join(ROOT, place), join(app, place));
      } catch (error) {
        throw new Error(`\`${place}\` is not installed`, { cause: error });
      }
    }
  });
  after(() => {
    chmodSync(app, 0o755);
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  });

  test('what is built imports packages of `dependencies` alone, and ships the schema', () => {
    const files = readdirSync(join(app, 'dist'), { recursive: true, encoding: 'utf8' });
    assert.ok(files.includes('gateway/config/gateway.schema.json'));
    assert.ok(files.includes('gateway/console/index.html'));
    assert.ok(!files.some((file) => /^(?:test|deploy|docs)\b/.test(file)));
    const builtin = new Set(builtinModules);
    const wrong = new Set<string>();
    for (const file of files.filter((name) => name.endsWith('.js'))) {
      const text = readFileSync(join(app, 'dist', file), 'utf8');
      for (const [, spoken = ''] of text.matchAll(
        /(?:^(?:import|export)\b[^;'"]*from |^import |\bimport\()['"]([^'".][^'"]*)['"]/gm,
      )) {
        const name = spoken.split('/', spoken.startsWith('@') ? 2 : 1).join('/');
        if (spoken.startsWith('node:') || builtin.has(name) || name === 'toolgate') continue;
        if (!Object.hasOwn(manifest.dependencies, name)) wrong.add(`${file}: ${spoken}`);
      }
    }
    assert.deepEqual([...wrong], []);
  });

  test('what package.json names is in it, a check is answered, and a fault point stops what is no test', async () => {
    const { bin, exports } = JSON.parse(read('package.json')) as {
      readonly bin: { readonly toolgate: string };
      readonly exports: Readonly<Record<string, string | { readonly types: string; readonly default: string }>>;
    };
    const main = join(app, bin.toolgate);
    assert.match(readFileSync(main, 'utf8'), /^#!\/usr\/bin\/env node\n/);
    for (const place of Object.values(exports)) {
      const files = typeof place === 'string' ? [place] : [place.types, place.default];
      for (const file of files) assert.ok(existsSync(join(app, file)), file);
    }
    const config = join(ROOT, 'deploy/examples/shop/gateway.yaml');
    const ask = ['check', '-c', config, '--agent', 'desk', '--tool', 'get_order', '--args', '{"order_id":"1"}'];
    const { stdout } = await run(process.execPath, [main, ...ask], { env: childEnv() });
    assert.equal(stdout.split('\n')[0], 'allow: allow');
    const dist = (file: string): string => pathToFileURL(join(app, 'dist', file)).href;
    const { readConsole } = (await import(dist('gateway/api/console.js'))) as {
      readConsole: () => ReadonlyMap<string, unknown>;
    };
    assert.deepEqual([...readConsole().keys()].sort(), readdirSync(join(ROOT, 'gateway/console')).sort());
    const { refuseFaultPoints } = (await import(dist('gateway/fault-points.js'))) as {
      refuseFaultPoints: (env: object) => void;
    };
    assert.throws(() => refuseFaultPoints({ TOOLGATE_FAULT: 'after-claim' }), /is for tests alone/);
  });

  test('the built gateway serves where it can write to its state folder alone, and answers its health check', async (t) => {
    const state = join(folder, 'state');
    mkdirSync(state, { mode: 0o777 });
    const config = join(folder, 'gateway.yaml');
    const shop = await startShop();
    t.after(() => shop.close());
    writeFileSync(
      config,
      `listen: 127.0.0.1:0
keys: { signing: ${state}/gateway.pem }
store: ${state}/toolgate.db
audit: { file: ${state}/audit.jsonl }
agents: { desk: {} }
routes:
  - { name: shop, upstream: "${shop.url}", http: [{ name: get_order, method: GET, path: "/orders/{order_id}" }] }
`,
    );
    chmodSync(app, 0o555);
    const main = join(app, 'dist/gateway/cli/main.js');
    const gateway = await serveGateway({ folder, name: 'image', config, cwd: app, main });
    assert.equal((await fetch(`${gateway.url}/shop/orders/4411`)).status, 200);
    const health = instructions(read('Dockerfile')).find(({ word }) => word === 'HEALTHCHECK')?.rest ?? '';
    const [, ...probe] = JSON.parse(health.slice(health.indexOf('CMD ') + 4)) as string[];
    const env = childEnv({ TOOLGATE_HEALTH_URL: `${gateway.url}/healthz` });
    await run(process.execPath, probe, { env });
    const { stdout } = await run(process.execPath, [main, '--version'], { cwd: app, env: childEnv() });
    assert.equal(stdout, `${manifest.version}\n`);
    assert.equal(await gateway.stop(), 0);
    await assert.rejects(run(process.execPath, probe, { env }));
    assert.deepEqual(readdirSync(app).sort(), ['dist', 'node_modules', 'package.json']);
    await shop.close();
  });
});

describe('docker-compose.yml', () => {
  interface Service {
    readonly image: string;
    readonly ports?: readonly string[];
    readonly networks?: readonly string[];
    readonly network_mode?: string;
    readonly read_only?: boolean;
    readonly cap_drop?: readonly string[];
    readonly environment?: Record<string, string>;
    readonly volumes?: readonly string[];
    readonly depends_on?: Record<string, unknown>;
  }
  const text = read('docker-compose.yml');
  const file = parse(text, { merge: true }) as {
    services: Record<string, Service>;
    networks: Record<string, { internal?: boolean } | null>;
    volumes: Record<string, unknown>;
  };
  const services = Object.entries(file.services);

  test('it reads as YAML, and names only what it defines', () => {
    assert.deepEqual(parseDocument(text, { merge: true }).errors, []);
    for (const [name, service] of services) {
      for (const network of service.networks ?? []) assert.ok(Object.hasOwn(file.networks, network), name);
      for (const other of Object.keys(service.depends_on ?? {})) assert.ok(Object.hasOwn(file.services, other), name);
      for (const volume of service.volumes ?? []) {
        const [source = ''] = volume.split(':');
        if (source.startsWith('./')) assert.ok(readdirSync(join(ROOT, source, '..')).length > 0, volume);
        else assert.ok(Object.hasOwn(file.volumes, source), volume);
      }
    }
  });

  test('ports are this machine’s alone, images are pinned, and no secret stands in it', () => {
    for (const [name, { ports = [], image, environment = {} }] of services) {
      for (const port of ports) assert.match(port, /^127\.0\.0\.1:/, name);
      assert.match(image, /:\d+\.\d+/, name);
      for (const [variable, value] of Object.entries(environment)) {
        if (/password|key|token|secret/i.test(variable)) assert.match(value, /^\/run\//, variable);
      }
    }
    assert.equal(
      file.services['shop']?.image,
      `docker.io/library/node:${manifest.devDependencies['node']}-bookworm-slim`,
    );
    assert.equal(file.services['gateway-a']?.image, `toolgate:${manifest.version}`);
  });

  test('only the gateways share a network with the shop, and what runs is read-only and without capabilities', () => {
    const beside = services.filter(([, { networks = [] }]) => networks.includes('backend')).map(([name]) => name);
    assert.deepEqual(beside.sort(), ['gateway-a', 'gateway-b', 'shop']);
    assert.equal(file.networks['backend']?.internal, true);
    for (const [name, { read_only, cap_drop }] of services) {
      if (name !== 'postgres') assert.deepEqual([read_only, cap_drop], [true, ['ALL']], name);
    }
  });

  test('what `prepare` makes is what the gateways read, and it makes it once', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'toolgate-prepare-'));
    const prepare = join(ROOT, 'deploy/compose/prepare.ts');
    const first = await run(process.execPath, [prepare, folder], { env: childEnv() });
    const made = ['gateway.env', 'gateway.pem', 'postgres-password', 'store-url'];
    assert.deepEqual(readdirSync(folder).sort(), made);
    const keys = [...first.stdout.matchAll(/: (tg_[\w-]{43})$/gm)].map(([, key]) => key);
    assert.equal(keys.length, 3);
    assert.match(readFileSync(join(folder, 'gateway.env'), 'utf8'), /^APP_DIGEST=sha256:[0-9a-f]{64}\n/);
    const again = await run(process.execPath, [prepare, folder], { env: childEnv() });
    assert.match(again.stdout, /made before/);
    const { stdout } = await run(process.execPath, [
      join(ROOT, 'gateway/cli/main.ts'),
      'keys',
      'show',
      join(folder, 'gateway.pem'),
    ]);
    assert.match(stdout, /^key id/);
    rmSync(folder, { recursive: true });
  });
});
