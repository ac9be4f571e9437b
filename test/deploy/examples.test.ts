import assert from 'node:assert/strict';
import { createHash, generateKeyPairSync, randomBytes } from 'node:crypto';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, describe, test } from 'node:test';
import { parse } from 'yaml';
import { loadGateway } from '../../gateway/catalogue/load-gateway.ts';
import { loadConfig } from '../../gateway/config/load.ts';
import { renderProblems } from '../../gateway/config/problem.ts';
import { GATEWAY_SCHEMA } from '../../gateway/config/schema.ts';
import { catalogueDeps } from '../../gateway/load/catalogue-deps.ts';
import { nodeCrypto } from '../../receipts/crypto-node.ts';
import { renderPublicKeyPem } from '../../receipts/keys.ts';
import { makeCertificate } from '../http/backends.ts';

const DEPLOY = join(import.meta.dirname, '../../deploy');
const REFERENCE = 'examples/reference/gateway.yaml';

/** Every configuration under deploy/, by its path there. */
const CONFIGS = readdirSync(DEPLOY, { recursive: true, encoding: 'utf8' }).filter((file) =>
  file.endsWith('gateway.yaml'),
);

const digest = (digit: string): string => `sha256:${digit.repeat(64)}`;
const ENV = {
  STORE_URL: 'postgres://toolgate@127.0.0.1/toolgate',
  DESK_DIGEST: digest('a'),
  APP_DIGEST: digest('b'),
  APPROVER_DIGEST: digest('c'),
  SHOP_TOKEN: 'token',
  FILES_TOKEN: 'token',
};

/** A copy of deploy/ in which the files are that a deployment has beside its configuration. */
const folder = mkdtempSync(join(tmpdir(), 'toolgate-examples-'));
cpSync(DEPLOY, folder, { recursive: true, filter: (source) => !source.endsWith('/data') });
after(() => rmSync(folder, { recursive: true, force: true }));

function fillIn(): void {
  const secrets = join(folder, 'run');
  mkdirSync(secrets);
  writeFileSync(join(secrets, 'store-url'), `${ENV.STORE_URL}\n`);
  for (const file of CONFIGS) {
    const text = readFileSync(join(folder, file), 'utf8');
    writeFileSync(join(folder, file), text.replaceAll('/run/toolgate', secrets));
  }
  const beside = dirname(join(folder, REFERENCE));
  const put = (name: string, text: string): void => {
    mkdirSync(dirname(join(beside, name)), { recursive: true });
    writeFileSync(join(beside, name), text);
  };
  const publicKey = (): string => renderPublicKeyPem(nodeCrypto.signingKey(randomBytes(32)).publicBytes);
  for (const name of ['keys/gateway-2025.pub', 'keys/desk.pub', 'licence.pub']) put(name, publicKey());
  put('keys/store.key', randomBytes(32).toString('hex'));
  put('licence.json', '{}');
  put('policy.co', 'define flow\n  user ask\n');
  const made = makeCertificate('shop.internal');
  const key = made?.key ?? String(generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }));
  put('server.key', key);
  for (const name of ['server.crt', 'clients.crt']) put(name, made?.cert ?? '');
}
fillIn();

describe('configurations under deploy/', () => {
  for (const file of CONFIGS) {
    test(`deploy/${file} has no fault`, async (t) => {
      const path = join(folder, file);
      if (file === REFERENCE) {
        if (makeCertificate('x') === undefined) return t.skip('the openssl program is not installed');
        // The words of a whole release, also of what needs servers that are not here.
        const { problems } = await loadConfig(path, { env: ENV, notYet: {} });
        assert.equal(renderProblems(problems.filter(({ severity }) => severity === 'error')), '');
        const document = readFileSync(join(DEPLOY, 'examples/shop/openapi.yaml'));
        const sum = createHash('sha256').update(document).digest('hex');
        assert.ok(
          readFileSync(path, 'utf8').includes(`digest: "sha256:${sum}"`),
          `the document's digest is now ${sum}`,
        );
        return;
      }
      const { loaded, problems } = await loadGateway(path, { env: ENV }, catalogueDeps());
      assert.equal(renderProblems(problems.filter(({ severity }) => severity === 'error')), '');
      assert.ok((loaded?.built.catalogue.tools.size ?? 0) > 0);
    });
  }
});

describe('words of the configuration', () => {
  /** Words by the definition that they belong to. */
  const words = new Set<string>();
  const definitions = { '': GATEWAY_SCHEMA, ...(GATEWAY_SCHEMA['$defs'] as object) };
  for (const definition of Object.values(definitions) as { properties?: object }[]) {
    for (const word of Object.keys(definition.properties ?? {})) if (word !== '$schema') words.add(word);
  }

  test('every word is in the reference', () => {
    const reference = readFileSync(join(DEPLOY, '../docs/configuration.md'), 'utf8');
    assert.deepEqual(
      [...words].filter((word) => !reference.includes(`| \`${word}\` |`)),
      [],
    );
  });

  test('every word is in an example', () => {
    const used = new Set<string>();
    const walk = (value: unknown): void => {
      if (Array.isArray(value)) value.forEach(walk);
      else if (typeof value === 'object' && value !== null) {
        for (const [key, member] of Object.entries(value)) {
          used.add(key);
          walk(member);
        }
      }
    };
    for (const file of CONFIGS) walk(parse(readFileSync(join(DEPLOY, file), 'utf8')));
    assert.deepEqual(
      [...words].filter((word) => !used.has(word)),
      [],
    );
  });
});
