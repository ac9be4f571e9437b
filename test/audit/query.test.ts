import assert from 'node:assert/strict';
import { appendFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { type AuditFilter, queryAudit } from '../../gateway/audit/query.ts';
import { decision, openLog, TempDir } from './support.ts';

const dir = new TempDir();
const START_MS = Date.parse('2026-11-29T10:00:00Z');

before(async () => {
  let nowMs = START_MS;
  const log = await openLog(dir.file(), { nowMs: () => nowMs });
  await log.append(decision(0));
  nowMs += 60_000;
  await log.append(
    decision(1, { tool: 'shop/charge_card', decision: 'confirm', reasons: ['argument_origin: amount', 'write'] }),
  );
  nowMs += 60_000;
  await log.append(decision(0, { session: 'chat-18', agent: 'billing', tool: 'other/get_order' }));
  await log.append({
    event: 'outcome',
    outcome: 'ran',
    by: 'gateway',
    session: 'chat-17',
    step: 0,
    tool: 'shop/get_order',
  });
  await log.close();
  appendFileSync(dir.file(), 'no line of a log, although it says "session":"chat-17"\n');
});
after(() => dir[Symbol.dispose]());

const CASES: readonly { readonly title: string; readonly filter: AuditFilter; readonly found: readonly string[] }[] = [
  { title: 'by session', filter: { session: 'chat-17' }, found: ['decision 0', 'decision 1', 'outcome 0'] },
  { title: 'by event', filter: { event: 'outcome' }, found: ['outcome 0'] },
  { title: 'by pair', filter: { tool: 'shop/get_order' }, found: ['decision 0', 'outcome 0'] },
  { title: 'by bare tool', filter: { tool: 'get_order', event: 'decision' }, found: ['decision 0', 'decision 0'] },
  { title: 'not by part of a name', filter: { tool: 'order' }, found: [] },
  { title: 'by decision', filter: { decision: 'confirm' }, found: ['decision 1'] },
  { title: 'by agent', filter: { agent: 'billing' }, found: ['decision 0'] },
  { title: 'by reason code', filter: { reason: 'argument_origin' }, found: ['decision 1'] },
  { title: 'by whole reason', filter: { reason: 'write' }, found: ['decision 1'] },
  { title: 'since', filter: { sinceMs: START_MS + 60_000, event: 'decision' }, found: ['decision 1', 'decision 0'] },
  { title: 'until', filter: { untilMs: START_MS + 60_000, event: 'decision' }, found: ['decision 0'] },
  { title: 'by what nothing has', filter: { session: 'chat-17', agent: 'billing' }, found: [] },
];

for (const { title, filter, found } of CASES) {
  test(`lines are found ${title}`, () => {
    const lines = [...queryAudit([dir.file()], filter)].map(
      ({ members }) => `${String(members['event'])} ${String(members['step'])}`,
    );
    assert.deepEqual(lines, found);
  });
}
