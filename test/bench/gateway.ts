import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { createLog } from '../../gateway/log.ts';
import { runGateway } from '../../gateway/serve/run-gateway.ts';
import { BENCH_ISSUER, BENCH_PUBLIC_KEY } from './receipt-source.ts';

/** The gateway of the benchmark, as a process of its own: prints its port. */
const upstream = process.argv[2] ?? '';
const folder = mkdtempSync(join(tmpdir(), 'toolgate-bench-'));
const configFile = join(folder, 'gateway.yaml');
const text = { type: 'string' };
const order = { type: 'object', properties: { order_id: text, note: text }, required: ['order_id'] };

writeFileSync(
  configFile,
  stringify({
    listen: '127.0.0.1:0',
    tenant: 'bench',
    audience: 'bench',
    keys: {
      signing: './gateway.pem',
      issuers: [{ id: BENCH_ISSUER, public_key: BENCH_PUBLIC_KEY, agents: ['desk'], tools: ['shop/put_order'] }],
    },
    store: './toolgate.db',
    audit: { file: './audit.jsonl' },
    sessions: { max: 1_000_000 },
    agents: { desk: {} },
    routes: [
      {
        name: 'shop',
        path: '/shop',
        upstream,
        verify: 'either',
        agents: ['desk'],
        http: [
          { name: 'get_order', method: 'GET', path: '/orders/{order_id}' },
          { name: 'search_orders', method: 'POST', path: '/search', writes: false, input: order },
          { name: 'put_order', method: 'POST', path: '/orders', writes: true, input: order },
        ],
        tools: [{ name: 'put_order', idempotency: { header: 'Idempotency-Key' }, confirm: 'reasons', undo: 'none' }],
      },
    ],
  }),
);

const log = createLog({ level: 'error' });
const gateway = await runGateway({ configFile, env: process.env, log });
process.stdout.write(`${new URL(gateway.url).port}\n`);
process.on('message', (question) => {
  if (question !== 'memory') return;
  globalThis.gc?.();
  process.send?.(process.memoryUsage());
});
process.on('SIGTERM', () => {
  void gateway.close().then(() => {
    rmSync(folder, { recursive: true, force: true });
    process.exit(0);
  });
});
