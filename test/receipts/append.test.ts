import assert from 'node:assert/strict';
import { test } from 'node:test';
import { nodeCrypto } from '../../receipts/crypto-node.ts';
import { type Entry, HistoryFault, type Report } from '../../receipts/history.ts';
import { appendEntry, chainEnd, chainStart, reportNewest } from '../../receipts/history-append.ts';
import { makeCut } from '../../receipts/history-cut.ts';
import { signLink } from '../../receipts/history-links.ts';
import { parseEntry, parseHistory } from '../../receipts/history-parse.ts';
import { contradictsReport } from '../../receipts/history-reports.ts';
import { verifyHistory } from '../../receipts/history-verify.ts';
import { GATEWAY_KEY, HEADER, richHistory, SOME_DIGEST, sampleBody, sampleOptions, signedHistory } from './sample.ts';

test('a held history is its points: tokens made later, in any order, verify', () => {
  const reports: readonly Report[] = [{ outcome: 'ran', result: SOME_DIGEST }, {}, { outcome: 'outcome_unknown' }, {}];
  const start = chainStart(nodeCrypto, HEADER);
  const points = [start];
  let point = start;
  for (const [step, report] of reports.entries()) {
    point = appendEntry(nodeCrypto, point, sampleBody(step));
    points.push(point);
    if (report.outcome !== undefined) point = reportNewest(point, report);
  }
  const entryAt = (step: number): Entry => ({
    ...sampleBody(step),
    token: signLink(GATEWAY_KEY, points[step + 1]?.link ?? start.link),
    ...reports[step],
  });
  const entries = [3, 1, 2, 0].map(entryAt).sort((a, b) => a.step - b.step);
  const verified = verifyHistory({ ...HEADER, entries }, sampleOptions());
  assert.deepEqual(chainEnd(verified), point);
  const cut = makeCut(HEADER, entryAt(3), { link: points[3]?.link ?? start.link, report: reports[2] ?? {} });
  assert.deepEqual(verifyHistory(cut, sampleOptions()).links[0], point.link);
  assert.deepEqual(chainEnd(verifyHistory(cut, sampleOptions())), point);
  assert.deepEqual(chainEnd(verifyHistory({ ...HEADER, entries: [] }, sampleOptions())), start);
});

test('a step out of its turn and a report out of the table are bugs', () => {
  const start = chainStart(nodeCrypto, HEADER);
  assert.throws(() => appendEntry(nodeCrypto, start, sampleBody(1)), RangeError);
  assert.throws(() => reportNewest(start, { outcome: 'ran' }), RangeError);
  const failed = reportNewest(appendEntry(nodeCrypto, start, sampleBody(0)), { outcome: 'failed' });
  assert.throws(() => reportNewest(failed, { outcome: 'ran' }), RangeError);
  assert.throws(() => reportNewest(failed, {}), RangeError);
});

test('a carried report may lag behind what the gateway saw, but not say otherwise', () => {
  const ran = { outcome: 'ran', result: SOME_DIGEST } as const;
  const rows: readonly [Report, Report, boolean][] = [
    [ran, {}, false],
    [ran, ran, false],
    [ran, { outcome: 'ran' }, false],
    [{ outcome: 'ran' }, ran, false],
    [ran, { outcome: 'outcome_unknown' }, false],
    [{ outcome: 'compensated' }, ran, false],
    [ran, { ...ran, result: 'B'.repeat(43) }, true],
    [ran, { outcome: 'failed' }, true],
    [ran, { outcome: 'compensated' }, true],
    [{ outcome: 'outcome_unknown' }, ran, true],
    [{}, ran, true],
    [{}, {}, false],
  ];
  for (const [seen, carried, contradicts] of rows) assert.equal(contradictsReport(seen, carried), contradicts);
});

test('a single entry is read as it stands in a history', () => {
  for (const [i, entry] of richHistory().entries.entries()) {
    assert.deepEqual(parseEntry(entry, i), entry);
    assert.deepEqual(parseEntry(entry, i, i), entry);
    assert.throws(() => parseEntry(entry, i, i + 1), HistoryFault);
  }
});

test('a history as a value is what it was parsed from', () => {
  const history = signedHistory([{ body: sampleBody(0), report: { outcome: 'ran' } }]);
  assert.deepEqual(parseHistory(history), { kind: 'whole', history });
});
