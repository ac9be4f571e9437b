import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { promisify } from 'node:util';
import { parseAllDocuments } from 'yaml';

const run = promisify(execFile);
const DEPLOY = join(import.meta.dirname, '../../deploy');
const VERSION = (JSON.parse(readFileSync(join(DEPLOY, '../package.json'), 'utf8')) as { version: string }).version;

/** A member of nested mappings and lists, by its path. */
function at(value: unknown, ...path: readonly (string | number)[]): unknown {
  return path.reduce<unknown>((inner, key) => (inner as Record<string | number, unknown> | undefined)?.[key], value);
}

interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
  readonly spec?: unknown;
}

const KUBERNETES = join(DEPLOY, 'kubernetes');
const manifests = readdirSync(KUBERNETES)
  .filter((file) => file.endsWith('.yaml') && file !== 'gateway.yaml' && file !== 'kustomization.yaml')
  .flatMap((file) => parseAllDocuments(readFileSync(join(KUBERNETES, file), 'utf8')))
  .map((document) => {
    assert.deepEqual(document.errors, []);
    return document.toJS() as Manifest;
  });

function manifest(kind: string, name = 'toolgate'): Manifest {
  const found = manifests.find((one) => one.kind === kind && one.metadata.name === name);
  assert.ok(found !== undefined, `${kind} ${name}`);
  return found;
}

describe('Kubernetes', () => {
  const pod = at(manifest('Deployment').spec, 'template');
  const container = at(pod, 'spec', 'containers', 0);

  test('the pods run without privileges on a read-only file system, as the restricted profile wants', () => {
    assert.equal(at(pod, 'spec', 'securityContext', 'runAsNonRoot'), true);
    assert.equal(at(pod, 'spec', 'securityContext', 'runAsUser'), 10_001);
    assert.equal(at(pod, 'spec', 'securityContext', 'seccompProfile', 'type'), 'RuntimeDefault');
    assert.equal(at(pod, 'spec', 'automountServiceAccountToken'), false);
    assert.deepEqual(at(container, 'securityContext'), {
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    });
    assert.equal(at(container, 'image'), `toolgate:${VERSION}`);
  });

  test('labels, ports and names fit each other', () => {
    const labels = at(pod, 'metadata', 'labels');
    assert.deepEqual(at(manifest('Deployment').spec, 'selector', 'matchLabels'), labels);
    assert.deepEqual(at(manifest('Service').spec, 'selector'), labels);
    assert.deepEqual(at(manifest('PodDisruptionBudget').spec, 'selector', 'matchLabels'), labels);
    assert.deepEqual(at(manifest('NetworkPolicy').spec, 'podSelector', 'matchLabels'), labels);
    const port = at(container, 'ports', 0);
    assert.equal(at(manifest('Service').spec, 'ports', 0, 'targetPort'), at(port, 'name'));
    for (const probe of ['startupProbe', 'livenessProbe', 'readinessProbe']) {
      assert.equal(at(container, probe, 'httpGet', 'port'), at(port, 'name'), probe);
    }
    assert.equal(at(container, 'readinessProbe', 'httpGet', 'path'), '/readyz');
    const volumes = (at(pod, 'spec', 'volumes') as { name: string }[]).map(({ name }) => name);
    assert.deepEqual(
      (at(container, 'volumeMounts') as { name: string }[]).map(({ name }) => name),
      volumes,
    );
  });

  test('only the gateways may open a connection to the backend', () => {
    const { metadata, spec } = manifest('NetworkPolicy', 'shop-from-toolgate-alone');
    assert.equal(metadata.namespace, 'shop');
    assert.deepEqual(at(spec, 'policyTypes'), ['Ingress']);
    const ingress = at(spec, 'ingress') as { from: unknown[] }[];
    assert.equal(ingress.length, 1);
    assert.deepEqual(ingress[0]?.from, [
      {
        namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'toolgate' } },
        podSelector: { matchLabels: at(pod, 'metadata', 'labels') },
      },
    ]);
  });

  test('there is time to drain, and one gateway stays', () => {
    const args = at(container, 'args') as string[];
    const lameDuckSeconds = Number.parseInt(args[args.indexOf('--lame-duck') + 1] ?? '', 10);
    assert.ok(Number(at(pod, 'spec', 'terminationGracePeriodSeconds')) >= lameDuckSeconds + 30);
    const probe = at(container, 'readinessProbe');
    assert.ok(lameDuckSeconds > Number(at(probe, 'periodSeconds')) * Number(at(probe, 'failureThreshold')));
    assert.equal(at(manifest('PodDisruptionBudget').spec, 'minAvailable'), 1);
    assert.equal(at(manifest('Deployment').spec, 'strategy', 'rollingUpdate', 'maxUnavailable'), 0);
  });

  test('kustomize puts them together', async (t) => {
    try {
      const { stdout } = await run('kubectl', ['kustomize', KUBERNETES]);
      assert.match(stdout, /configMap:\n\s+name: toolgate-config-\w+\n/);
    } catch (error) {
      if (at(error, 'code') === 'ENOENT') return t.skip('kubectl is not installed');
      throw error;
    }
  });
});

describe('systemd', () => {
  const unit = readFileSync(join(DEPLOY, 'systemd/toolgate.service'), 'utf8');

  test('the unit serves without privileges and leaves time to drain', () => {
    for (const line of ['NoNewPrivileges=yes', 'ProtectSystem=strict', 'CapabilityBoundingSet=', 'User=toolgate']) {
      assert.ok(unit.split('\n').includes(line), line);
    }
    assert.match(unit, /^ExecReload=\/bin\/kill -HUP \$MAINPID$/m);
    const stop = Number(/^TimeoutStopSec=(\d+)$/m.exec(unit)?.[1]);
    assert.ok(stop > 30 + Number(/--lame-duck (\d+)s/.exec(unit)?.[1]));
  });

  test('systemd takes it', async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'toolgate-unit-'));
    const file = join(folder, 'toolgate.service');
    writeFileSync(file, unit.replaceAll('/opt/toolgate/bin/node', process.execPath));
    try {
      const { stderr } = await run('systemd-analyze', ['verify', '--man=no', file]);
      assert.doesNotMatch(stderr, /toolgate\.service/);
    } catch (error) {
      if (at(error, 'code') === 'ENOENT') return t.skip('systemd-analyze is not installed');
      throw error;
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

describe('proxies in front', () => {
  const files = ['nginx/toolgate.conf', 'compose/nginx.conf', 'caddy/Caddyfile'];
  for (const file of files) {
    const text = readFileSync(join(DEPLOY, file), 'utf8').replaceAll(/#.*$/gm, '');
    test(`deploy/${file} closes its braces, passes the target on as it came, and sends no write twice`, () => {
      assert.equal(text.split('{').length, text.split('}').length);
      if (file.endsWith('Caddyfile')) {
        assert.match(text, /lb_try_duration 0\b/);
        return;
      }
      for (const [, to = ''] of text.matchAll(/proxy_pass ([^;]+);/g)) assert.match(to, /^http:\/\/\w+$/);
      assert.doesNotMatch(text, /non_idempotent/);
      assert.match(text, /proxy_next_upstream (?:off|error http_503);/);
    });
  }
});
