import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';
import { startShop } from '../../deploy/examples/shop/backend.ts';
import { encodeBase64url } from '../../receipts/base64url.ts';
import { childEnv } from '../child-env.ts';
import { startTestGateway } from '../harness/gateway.ts';

const ROOT = new URL('../../', import.meta.url);

interface Run {
  readonly code: number | null;
  readonly out: string;
}

function runAgent(env: Record<string, string>, args: readonly string[], answer: string): Promise<Run> {
  const agent = fileURLToPath(new URL('deploy/examples/agent/agent.ts', ROOT));
  const child = spawn(process.execPath, [agent, ...args], { env: childEnv(env) });
  let out = '';
  const collect = (chunk: Buffer): void => {
    out += chunk.toString('utf8');
    if (out.endsWith('[y/N] ')) child.stdin.end(`${answer}\n`);
  };
  child.stdout.on('data', collect);
  child.stderr.on('data', collect);
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (code) => resolve({ code, out }));
  });
}

test('the example agent checks, asks, calls with its receipt and reports, against the shop', async () => {
  const shop = await startShop();
  const text = await readFile(new URL('deploy/examples/shop/gateway.yaml', ROOT), 'utf8');
  const config = parse(text.replaceAll('http://127.0.0.1:9100', shop.url)) as Record<string, unknown>;
  const { listen: _listen, keys: _keys, store: _store, audit: _audit, ...rest } = config;
  const gateway = await startTestGateway(rest);
  try {
    const env = {
      TOOLGATE_URL: gateway.url,
      SHOP_URL: shop.url,
      TOOLGATE_PUBLIC_KEY: encodeBase64url(gateway.gateway.loaded.signing.publicBytes),
    };
    const done = await runAgent(env, ['4411', '40'], 'y');
    assert.equal(done.code, 0, done.out);
    assert.match(done.out, /order 4411 is open, 40/);
    assert.match(done.out, /approve `shop\/charge_card`/);
    assert.match(done.out, /charged: ran, .*"status":"paid"/);
    assert.match(
      done.out,
      /step 0: shop\/get_order allow, ran\nstep 1: shop\/charge_card confirm\nstep 2: shop\/charge_card allow, ran\n$/,
    );
    const charges = shop.seen.filter(({ method }) => method === 'POST');
    assert.equal(charges.length, 1);
    const refused = await runAgent(env, ['4411', '40'], 'n');
    assert.equal(refused.code, 1, refused.out);
    assert.match(refused.out, /nobody approved the charge/);
    assert.equal(shop.seen.filter(({ method }) => method === 'POST').length, 1);
  } finally {
    await gateway.close();
    await shop.close();
  }
});
