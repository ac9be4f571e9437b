import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { nodeCrypto } from '../../receipts/crypto-node.ts';
import { parseHistory } from '../../receipts/history-parse.ts';
import { verifyHistory } from '../../receipts/history-verify.ts';
import { parseJson } from '../../receipts/json.ts';
import { startTestGateway, type TestGateway } from '../harness/gateway.ts';
import { json, Moody } from './moody.ts';
import { digestOf, KEYS } from './world.ts';

let moody: Moody;
let gateway: TestGateway;

before(async () => {
  moody = await Moody.start();
  gateway = await startTestGateway({
    agents: { desk: { credentials: [{ key: digestOf(KEYS.app), host: true, name: 'app' }] } },
    routes: [
      {
        name: 'm',
        path: '/m',
        upstream: moody.url,
        agents: ['desk'],
        http: [{ name: 'look', method: 'GET', path: '/look' }],
      },
    ],
  });
});
after(async () => {
  await gateway.close();
  await moody.close();
});

/** What happens to a read of the session: it is sent, answered, or the store gets what rode along until then. */
type Moment = `send ${number}` | `answer ${number}` | 'flush';

const ORDERS: readonly (readonly Moment[])[] = [
  ['send 0', 'answer 0', 'send 1', 'answer 1', 'flush'],
  ['send 0', 'send 1', 'answer 0', 'answer 1', 'flush'],
  ['send 0', 'send 1', 'answer 1', 'answer 0', 'flush'],
  ['send 0', 'flush', 'answer 0', 'send 1', 'flush', 'answer 1', 'flush'],
  ['send 0', 'flush', 'send 1', 'answer 0', 'flush', 'answer 1', 'flush'],
  ['send 0', 'flush', 'answer 0', 'send 1', 'answer 1', 'send 2', 'answer 2', 'flush'],
  ['send 0', 'send 1', 'flush', 'answer 0', 'send 2', 'answer 1', 'answer 2', 'flush'],
  ['send 0', 'send 1', 'flush', 'answer 1', 'send 2', 'answer 0', 'send 3', 'answer 2', 'flush', 'answer 3', 'flush'],
];

for (const [n, order] of ORDERS.entries()) {
  test(`a history of reads is whole: ${order.join(', ')}`, async () => {
    const answers: (() => void)[] = [];
    const calls: Promise<{ readonly status: number }>[] = [];
    moody.on('GET /look', (response) => answers.push(() => json(response, 200, { ok: 1 })));
    const session = `order-${n}`;
    const first = gateway.request('GET', '/m/look', { key: KEYS.app, headers: { 'toolgate-session': session } });
    while (answers.length === 0) await pause(1);
    answers.pop()?.();
    assert.equal((await first).status, 200);
    gateway.gateway.sessions.flushAll();
    const last = order.filter((moment) => moment.startsWith('send')).length;
    for (const moment of [...order, `send ${last}`, `answer ${last}`]) {
      const [what, which] = moment.split(' ');
      if (what === 'flush') gateway.gateway.sessions.flushAll();
      else if (what === 'send') {
        const earlier = answers.length;
        calls.push(gateway.request('GET', '/m/look', { key: KEYS.app, headers: { 'toolgate-session': session } }));
        while (answers.length === earlier) await pause(0);
      } else {
        answers[Number(which)]?.();
        assert.equal((await calls[Number(which)])?.status, 200);
      }
    }
    const answer = await gateway.request('GET', `/v1/sessions/${session}`, { key: KEYS.app });
    const history = parseHistory(parseJson(answer.text));
    assert.ok(history.kind === 'whole');
    const { audience, checkIssuers: issuers } = gateway.gateway.loaded;
    verifyHistory(history.history, { crypto: nodeCrypto, now: Date.now(), audience, issuers, session });
    // The last one carries what was reported late, so that every outcome before it is told.
    const { entries } = history.history;
    const ran = new Set(
      entries.flatMap(({ step, outcome, reports = [] }) => [
        ...(outcome === 'ran' ? [step] : []),
        ...reports.filter((report) => report.outcome === 'ran').map((report) => report.step),
      ]),
    );
    assert.deepEqual(
      [...ran].sort((x, y) => x - y),
      entries.map(({ step }) => step),
    );
  });
}

test('what rode along goes to the store although nobody asks for it', async () => {
  moody.on('GET /look', (response) => json(response, 200, { ok: 1 }));
  const headers = { 'toolgate-session': 'unasked' };
  for (let step = 0; step < 2; step += 1) await gateway.request('GET', '/m/look', { key: KEYS.app, headers });
  const { store, loaded } = gateway.gateway;
  const key = { issuer: loaded.issuer, caller: 'app', session: 'unasked' };
  // The store itself is asked: to ask for the session would send what rides along first.
  while ((await store.findSession(key))?.head?.step !== 1) await pause(5);
});
