import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { type CalendarPeriod, makeWindows } from '../../policy/conditions/period.ts';

interface Case {
  readonly title: string;
  readonly timezone: string;
  readonly per: CalendarPeriod;
  readonly at: string;
  readonly label: string;
  readonly start: string;
  readonly end: string;
}

const file = new URL('../vectors/conditions/periods.json', import.meta.url);
const { cases } = JSON.parse(readFileSync(file, 'utf8')) as { readonly cases: readonly Case[] };

test('every period of the table begins and ends as it says', async (t) => {
  for (const one of cases) {
    await t.test(one.title, () => {
      const expected = { label: one.label, startMs: Date.parse(one.start), endMs: Date.parse(one.end) };
      assert.deepEqual(makeWindows(one.timezone)(one.per, Date.parse(one.at)), expected);
    });
  }
});

test('periods follow one another without a gap and without an overlap, through a year of every kind', () => {
  for (const timezone of ['Europe/Lisbon', 'America/Sao_Paulo', 'Australia/Lord_Howe', 'Pacific/Apia']) {
    const from = Date.parse(timezone === 'Pacific/Apia' ? '2011-06-01T00:00:00Z' : '2018-01-01T00:00:00Z');
    for (const per of ['day', 'week', 'month'] as const) {
      const windowOf = makeWindows(timezone);
      let window = windowOf(per, from);
      for (let at = window.endMs; at < from + 380 * 86_400_000; at = window.endMs) {
        const next = windowOf(per, at);
        assert.equal(next.startMs, window.endMs, `${timezone} ${per} ${window.label}`);
        assert.ok(next.label > window.label);
        assert.deepEqual(windowOf(per, next.endMs - 1), next);
        window = next;
      }
    }
  }
});

test('what is remembered of the newest period changes no answer', () => {
  const windowOf = makeWindows('Europe/Lisbon');
  for (const one of cases.filter(({ timezone }) => timezone === 'Europe/Lisbon')) {
    const at = Date.parse(one.at);
    assert.deepEqual(windowOf(one.per, at), makeWindows('Europe/Lisbon')(one.per, at));
  }
});
