import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startTestGateway, type TestGateway } from '../harness/gateway.ts';
import { sendRaw } from '../http/raw.ts';
import vectors from '../vectors/http/hostile.json' with { type: 'json' };
import { headerMap, Moody } from './moody.ts';
import { digestOf } from './world.ts';

interface Row {
  readonly id: string;
  readonly request: string;
  readonly status: number;
  readonly code?: string;
  readonly forwarded?: number;
}

const ROWS: readonly Row[] = vectors;

/** What the edge alone cannot know: which query a tool declares, and that a tool may be called without a body. */
const OTHERWISE: Readonly<Record<string, number>> = { 'method-word-in-name': 403, 'json-empty': 200 };

let moody: Moody;
let gateway: TestGateway;
let port = 0;
before(async () => {
  moody = await Moody.start();
  gateway = await startTestGateway({
    agents: { desk: { credentials: [{ key: digestOf('agent-key'), name: 'desk-bot' }] } },
    approvers: [{ name: 'ana', credentials: [digestOf('approver-key')] }],
    routes: [
      {
        name: 'shop',
        path: '/shop',
        upstream: moody.url,
        agents: ['desk'],
        limit: '1KiB',
        http: [
          { name: 'get_order', method: 'GET', path: '/orders/{order_id}' },
          {
            name: 'search',
            method: 'POST',
            path: '/charges',
            writes: false,
            input: { type: 'object', properties: { a: { type: 'integer' } } },
          },
        ],
        tools: [{ name: 'get_order', arguments: { order_id: 'filename' } }],
      },
    ],
  });
  port = Number(new URL(gateway.url).port);
});
after(async () => {
  await gateway.close();
  await moody.close();
});

for (const row of ROWS) {
  test(`hostile request ${row.id}, through the whole gateway`, async () => {
    const before = moody.seen.length;
    // The table's own 404 is of an edge without routes; here such a path is one of no tool, or fits one.
    const statuses = row.status === 404 ? [200, 403, 404] : [OTHERWISE[row.id] ?? row.status];
    const answer = await sendRaw(port, row.request, { waitMs: 2_000 });
    assert.ok(statuses.includes(answer.status), `${answer.status} for ${row.status}: ${answer.text}`);
    const sent = moody.seen.slice(before);
    assert.equal(sent.length, answer.status === 200 ? 1 : 0, 'what the backend saw');
    for (const { headers, body } of sent) {
      for (const name of headerMap(headers).keys()) {
        assert.doesNotMatch(name, /^toolgate|^authorization$|^idempotency-key$|^cookie$|^te$|^upgrade$/);
      }
      assert.match(body.toString(), /^(?:\{"a":1\}|\{\})?$/);
    }
  });
}
