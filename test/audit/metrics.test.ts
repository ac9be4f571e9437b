import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Metrics } from '../../gateway/metrics.ts';

async function linesOf(metrics: Metrics, name: string): Promise<string[]> {
  const text = await metrics.render();
  return text.split('\n').filter((line) => line.startsWith(name) && !line.startsWith('#'));
}

test('decisions are counted by tool, decision and reason, and readings do not count twice', async () => {
  const metrics = new Metrics();
  metrics.setTools(['shop/get_order']);
  for (let i = 0; i < 3; i++) metrics.decided('shop/get_order', 'allow', 'allow');
  metrics.decided('shop/get_order', 'refuse', 'argument_schema');
  const expected = [
    'toolgate_decisions_total{tool="shop/get_order",reason="allow",decision="allow"} 3',
    'toolgate_decisions_total{tool="shop/get_order",reason="argument_schema",decision="refuse"} 1',
  ];
  assert.deepEqual((await linesOf(metrics, 'toolgate_decisions_total')).sort(), expected);
  assert.deepEqual((await linesOf(metrics, 'toolgate_decisions_total')).sort(), expected);
});

test('names that callers make up make no series', async () => {
  const metrics = new Metrics();
  for (let i = 0; i < 500; i++) {
    metrics.decided(`made/up_${i}`, 'refuse', 'unknown_tool');
    metrics.settled(`made/up_${i}`, 'ran');
    metrics.problem(`problem_${i}`);
  }
  metrics.decided(undefined, 'refuse', 'unknown_tool');
  assert.deepEqual(await linesOf(metrics, 'toolgate_decisions_total'), [
    'toolgate_decisions_total{tool="other",reason="unknown_tool",decision="refuse"} 501',
  ]);
  assert.equal((await linesOf(metrics, 'toolgate_outcomes_total')).length, 1);
  assert.equal((await linesOf(metrics, 'toolgate_problems_total')).length, 101);
});

test('the first reading has what the sources say at that moment', async () => {
  const metrics = new Metrics({
    storeCounts: async () => [
      { what: 'claim', state: 'claimed', count: 7 },
      { what: 'claim', state: 'outcome_unknown', count: 2 },
      { what: 'undo', state: 'needs_person', count: 1 },
      { what: 'confirmation', state: 'held', count: 4 },
    ],
    storeIsUp: () => true,
    auditLag: () => ({ waiting: 3, unsigned: 9, downSinceMs: Date.now() - 60_000 }),
    sessions: () => 11,
  });
  const text = await metrics.render();
  for (const line of [
    'toolgate_claims{state="claimed"} 7',
    'toolgate_claims{state="sending"} 0',
    'toolgate_unknown_outcomes 2',
    'toolgate_undos{state="needs_person"} 1',
    'toolgate_held_confirmations 4',
    'toolgate_store_up 1',
    'toolgate_audit_waiting_lines 3',
    'toolgate_audit_unsigned_lines 9',
    'toolgate_sessions 11',
  ])
    assert.ok(text.includes(`\n${line}\n`), line);
  assert.match(text, /toolgate_audit_down_seconds 6\d/);
  assert.match(text, /nodejs_eventloop_lag_seconds/);
});

test('a store that cannot be counted leaves the other metrics alone', async () => {
  const metrics = new Metrics({ storeCounts: () => Promise.reject(new Error('gone')), sessions: () => 1 });
  assert.deepEqual(await linesOf(metrics, 'toolgate_sessions'), ['toolgate_sessions 1']);
});

test('times are seconds, in buckets that fit each part', async () => {
  const metrics = new Metrics();
  metrics.checkTook(0.02);
  metrics.storeTook(3);
  metrics.upstreamTook(120);
  assert.deepEqual(await linesOf(metrics, 'toolgate_store_seconds_sum'), ['toolgate_store_seconds_sum 0.003']);
  assert.ok(
    (await linesOf(metrics, 'toolgate_check_seconds_bucket')).includes(
      'toolgate_check_seconds_bucket{le="0.000025"} 1',
    ),
  );
  assert.ok(
    (await linesOf(metrics, 'toolgate_upstream_seconds_bucket')).includes(
      'toolgate_upstream_seconds_bucket{le="0.25"} 1',
    ),
  );
});

test('reloads are counted by what became of them', async () => {
  const metrics = new Metrics();
  metrics.configTaken(1_796_000_000_000);
  metrics.configRefused();
  metrics.configRefused();
  assert.deepEqual(await linesOf(metrics, 'toolgate_config'), [
    'toolgate_config_reloads_total{result="taken"} 1',
    'toolgate_config_reloads_total{result="refused"} 2',
    'toolgate_config_loaded_timestamp_seconds 1796000000',
  ]);
});
