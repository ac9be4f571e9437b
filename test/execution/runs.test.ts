import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { startTestGateway, type TestGateway } from '../harness/gateway.ts';
import { answerOnly, doAndCut, type RecordingBackend, startBackend } from './backend.ts';
import { call, get, post, type RunReport, unknowns, until, untilRun, worldConfig } from './world.ts';

describe('runs and their undo', { concurrency: true }, () => {
  let backend: RecordingBackend;
  let gateway: TestGateway;

  before(async () => {
    backend = await startBackend();
    gateway = await startTestGateway(worldConfig(backend.url));
  });
  after(async () => {
    await gateway.close();
    await backend.close();
  });

  const auditOf = (run: string): Record<string, unknown>[] =>
    readFileSync(join(gateway.folder, 'audit.jsonl'), 'utf8')
      .split('\n')
      .filter((line) => line.includes(`"run":"${run}"`))
      .map((line) => JSON.parse(line) as Record<string, unknown>);

  test('a refused fourth call undoes the three before it, last first, and an irreversible one is named', async () => {
    const { url } = gateway;
    const members = { session: 's-fourth', run: 'r-fourth' };
    const charge = await call(url, 'charge', { order: 'a' }, members);
    assert.equal(charge.json.outcome, 'ran', JSON.stringify(charge.json));
    const asked = await call(url, 'ship', { order: 'a' }, members);
    assert.equal(asked.json.check?.reason, 'irreversible_pivot');
    const { token } = (asked.json.check as { confirmation?: { token: string } }).confirmation ?? {};
    assert.equal((await call(url, 'ship', { order: 'a' }, { ...members, confirmation: token })).json.outcome, 'ran');
    await call(url, 'note', { order: 'a' }, members);
    const book = await call(url, 'book', { order: 'a-fourth' }, members);
    assert.equal(book.json.outcome, 'ran');
    const refused = await call(url, 'charge', { order: 'a', amount: 1 }, members);
    assert.equal(refused.json.check?.reason, 'argument_schema');
    const run = await untilRun(url, 'r-fourth', 'compensated');
    assert.deepEqual(
      run.steps.map(({ tool, outcome }) => [tool, outcome]),
      [
        ['shop/charge', 'compensated'],
        ['shop/ship', 'ran'],
        ['shop/note', 'ran'],
        ['shop/book', 'compensated'],
        ['shop/unbook', 'ran'],
        ['shop/refund', 'ran'],
      ],
    );
    assert.deepEqual(run.left, [
      { step: 2, tool: 'shop/ship', why: 'irreversible' },
      { step: 3, tool: 'shop/note', why: 'undo: none' },
    ]);
    assert.deepEqual(
      backend.of('refund').filter(({ body }) => body['charge'] === charge.json.result?.['id']).length,
      1,
    );
    assert.deepEqual(backend.of('unbook').filter(({ body }) => body['order'] === 'a-fourth').length, 1);
    const history = await get<{ entries: { reports?: { step: number; outcome: string }[]; reasons: string[] }[] }>(
      url,
      '/v1/sessions/s-fourth',
    );
    const reported = history.entries
      .flatMap(({ reports }) => reports ?? [])
      .map(({ step, outcome }) => [step, outcome]);
    assert.ok(
      reported.some(([step, outcome]) => step === 4 && outcome === 'compensated'),
      JSON.stringify(reported),
    );
    assert.equal(history.entries.filter(({ reasons }) => reasons[0] === 'compensation').length, 2);
    const lines = auditOf('r-fourth');
    assert.deepEqual(
      lines.filter(({ event }) => event === 'undo').map(({ step, state }) => [step, state]),
      [
        [4, 'compensated'],
        [0, 'compensated'],
      ],
    );
    assert.deepEqual(
      lines.filter(({ event }) => event === 'run').map(({ act }) => act),
      ['fail', 'compensated'],
    );
    const ended = await call(url, 'charge', { order: 'a' }, members);
    assert.equal(ended.json.check?.reason, 'run_ended');
  });

  test('three writes are undone last first, each with what is bound to it and a key of its own', async () => {
    const { url } = gateway;
    const members = { session: 's-three', run: 'r-three' };
    const idOf = async (tool: string): Promise<unknown> =>
      (await call(url, tool, { order: 'three' }, members)).json.result?.['id'];
    const [charge, , again] = [await idOf('charge'), await idOf('book'), await idOf('charge')];
    const before = backend.seen.length;
    const refused = await call(url, 'charge', { order: 'three', more: 1 }, members);
    assert.equal(refused.json.check?.decision, 'refuse');
    await untilRun(url, 'r-three', 'compensated');
    const own: readonly unknown[] = [charge, again, 'three'];
    const undos = backend.seen.slice(before).filter(({ body }) => own.includes(body['charge'] ?? body['order']));
    assert.deepEqual(
      undos.map(({ tool, body }) => [tool, body]),
      [
        ['refund', { charge: again }],
        ['unbook', { order: 'three' }],
        ['refund', { charge }],
      ],
    );
    assert.equal(new Set(undos.map(({ key }) => key ?? '')).size, 3);
    assert.ok(undos.every(({ key }) => key !== undefined));
  });

  test('undos that are not the declared one are refused', async () => {
    const { url } = gateway;
    const session = 's-undo';
    const first = await call(url, 'charge', { order: 'b' }, { session });
    const second = await call(url, 'charge', { order: 'c' }, { session });
    const [one, two] = [first, second].map(({ json }) => String(json.result?.['id']));
    const undo = async (args: Record<string, unknown>, undoes: number, tool = 'refund'): Promise<string | undefined> =>
      (await call(url, tool, args, { session, undoes })).json.check?.reason;
    assert.equal(await undo({ charge: one, more: 'x' }, 0), 'argument_schema');
    assert.equal(await undo({ charge: two }, 0), 'compensation_mismatch');
    assert.equal(await undo({ order: 'b' }, 0, 'unbook'), 'compensation_mismatch');
    const done = (await call(url, 'refund', { charge: one }, { session, undoes: 0 })).json;
    assert.deepEqual([done.check?.reason, done.outcome], ['compensation', 'ran']);
    assert.equal(await undo({ charge: one }, 0), 'compensation_spent');
    // An undo of the undo itself, and of what was refused.
    const step = done.check?.step ?? Number.NaN;
    for (const at of [step, step + 1]) assert.equal(await undo({ charge: one }, at), 'compensation_mismatch');
    assert.equal(await undo({ order: 'b' }, step, 'charge'), 'compensation_mismatch');
    assert.equal(backend.of('refund').filter(({ body }) => body['charge'] === one).length, 1);
  });

  test("another caller's run is not there, and a run lives in one session", async () => {
    const { url } = gateway;
    await call(url, 'charge', { order: 'd' }, { session: 's-mine', run: 'r-mine' });
    assert.equal((await get(url, '/v1/runs/r-mine', 'other-key')).status_code, 404);
    assert.equal((await post(url, '/v1/runs/r-mine/undo', {}, 'other-key')).status, 404);
    assert.equal((await post(url, '/v1/runs/r-mine/undo', { session: 's-else' })).status, 409);
    assert.equal((await call(url, 'charge', { order: 'd' }, { session: 's-else', run: 'r-mine' })).status, 409);
    const run = await get<RunReport>(url, '/v1/runs/r-mine');
    assert.deepEqual([run.state, run.steps.length], ['open', 1]);
    assert.equal((await post(url, '/v1/runs/r-mine/end', {})).status, 200);
    assert.equal(
      (await call(url, 'charge', { order: 'd' }, { session: 's-mine', run: 'r-mine' })).json.check?.reason,
      'run_ended',
    );
    assert.equal((await post(url, '/v1/runs/r-mine/undo', {})).status, 409);
    assert.equal((await get<RunReport>(url, '/v1/runs/r-mine')).state, 'ended');
  });

  test('a call that fails undoes its run, an undo by hand does, and an unsaid write waits for a person', async () => {
    const { url } = gateway;
    const members = { session: 's-fails', run: 'r-fails' };
    await call(url, 'book', { order: 'e' }, members);
    backend.next('charge', answerOnly(422), { value: 'e' });
    const failed = await call(url, 'charge', { order: 'e' }, members);
    assert.equal(failed.json.outcome, 'failed');
    const run = await untilRun(url, 'r-fails', 'compensated');
    assert.deepEqual(
      run.undos.map(({ step, state }) => [step, state]),
      [[0, 'compensated']],
    );

    const told = { session: 's-tell', run: 'r-tell' };
    await call(url, 'tell', { order: 'f' }, told);
    await call(url, 'book', { order: 'f' }, told);
    await post(url, '/v1/runs/r-tell/undo', {});
    const waits = await untilRun(url, 'r-tell', 'needs_person');
    assert.equal(backend.of('unbook').filter(({ body }) => body['order'] === 'f').length, 1);
    assert.deepEqual(
      waits.left.map(({ step, tool }) => [step, tool]),
      [[0, 'shop/tell']],
    );
    const left = { caller: 'shop-app', step: 0, as: 'left', reason: 'the customer was told again' };
    assert.equal((await post(url, '/v1/runs/r-tell/settle', left)).status, 403);
    assert.equal((await post(url, '/v1/runs/r-tell/settle', left, 'ana-key')).status, 200);
    await untilRun(url, 'r-tell', 'compensated');
  });

  test('an undo that fails for good stops the rest until a person has settled it', async () => {
    const { url } = gateway;
    const members = { session: 's-stop', run: 'r-stop' };
    await call(url, 'book', { order: 'g' }, members);
    const reserve = await call(url, 'reserve', { order: 'g' }, members);
    backend.next('release', answerOnly(422), { value: reserve.json.result?.['id'] });
    await post(url, '/v1/runs/r-stop/undo', {});
    const run = await untilRun(url, 'r-stop', 'needs_person');
    assert.deepEqual(
      run.undos.map(({ step, state }) => [step, state]),
      [
        [1, 'needs_person'],
        [0, 'undo_pending'],
      ],
    );
    const listed = await get<{ runs: { run: string; caller: string }[] }>(
      url,
      '/v1/runs?state=needs_person',
      'ana-key',
    );
    assert.ok(listed.runs.some((one) => one.run === 'r-stop' && one.caller === 'shop-app'));
    assert.equal(backend.of('unbook').filter(({ body }) => body['order'] === 'g').length, 0);
    const retry = { caller: 'shop-app', step: 1, as: 'retry', reason: 'the backend was mended' };
    assert.equal((await post(url, '/v1/runs/r-stop/settle', retry, 'ana-key')).status, 200);
    await untilRun(url, 'r-stop', 'compensated');
    assert.equal(backend.of('release').filter(({ body }) => body['hold'] === reserve.json.result?.['id']).length, 1);
    assert.equal(backend.of('unbook').filter(({ body }) => body['order'] === 'g').length, 1);
  });

  test('an undo whose end is unclear goes again with its key, and the one before it waits', async () => {
    const { url } = gateway;
    const members = { session: 's-unclear', run: 'r-unclear' };
    await call(url, 'book', { order: 'h' }, members);
    const charge = await call(url, 'charge', { order: 'h' }, members);
    const before = backend.seen.length;
    backend.next('refund', answerOnly(503), { times: 4, value: charge.json.result?.['id'] });
    await post(url, '/v1/runs/r-unclear/undo', {});
    const run = await untilRun(url, 'r-unclear', 'compensated');
    const undos = backend.seen.slice(before).filter(({ body }) => {
      return body['charge'] === charge.json.result?.['id'] || body['order'] === 'h';
    });
    assert.deepEqual(
      undos.map(({ tool }) => tool),
      ['refund', 'refund', 'refund', 'refund', 'refund', 'unbook'],
    );
    assert.equal(new Set(undos.slice(0, 5).map(({ key }) => key)).size, 1);
    assert.equal(run.steps.filter(({ tool }) => tool === 'shop/refund').length, 1, 'one entry, sent again');
  });

  test('an undo whose end is unclear and whose backend takes no key goes to a person, by its outcome', async () => {
    const { url } = gateway;
    const members = { session: 's-nokey', run: 'r-nokey' };
    await call(url, 'book', { order: 'i' }, members);
    const reserve = await call(url, 'reserve', { order: 'i' }, members);
    backend.next('release', doAndCut(backend), { value: reserve.json.result?.['id'] });
    await post(url, '/v1/runs/r-nokey/undo', {});
    const run = await untilRun(url, 'r-nokey', 'needs_person');
    assert.equal(run.undos[0]?.state, 'undo_unknown');
    const [unknown] = (await unknowns(url)).filter(({ tool }) => tool === 'shop/release');
    assert.ok(unknown);
    const settled = await post(
      url,
      `/v1/outcomes/${unknown.id}/settle`,
      { outcome: 'ran', reason: 'seen in the books' },
      'ana-key',
    );
    assert.equal(settled.status, 200);
    await untilRun(url, 'r-nokey', 'compensated');
    assert.equal(backend.of('release').filter(({ body }) => body['hold'] === reserve.json.result?.['id']).length, 1);
  });

  test('a step whose outcome is unknown is undone only where that is safe, and a late success is undone once more', async () => {
    const { url } = gateway;
    const members = { session: 's-late', run: 'r-late' };
    backend.next('book', (_seen, response) => void response.socket?.destroy(), { value: 'j' });
    const unclear = await call(url, 'book', { order: 'j' }, members);
    assert.equal(unclear.json.outcome, 'outcome_unknown');
    await post(url, '/v1/runs/r-late/undo', {});
    await untilRun(url, 'r-late', 'compensated');
    const undone = (): readonly { readonly key: string | undefined }[] =>
      backend.of('unbook').filter(({ body }) => body['order'] === 'j');
    assert.equal(undone().length, 1);
    const [unknown] = (await unknowns(url)).filter(({ tool }) => tool === 'shop/book');
    assert.ok(unknown);
    await post(url, `/v1/outcomes/${unknown.id}/settle`, { outcome: 'ran', reason: 'it came late' }, 'ana-key');
    await until('a second undo', async () => (undone().length === 2 ? true : undefined));
    const run = await untilRun(url, 'r-late', 'compensated');
    assert.equal(run.undos[0]?.round, 2);
    assert.equal(new Set(undone().map(({ key }) => key)).size, 2);
    assert.equal((await get(url, '/v1/sessions/s-late')).status_code, 200);

    const risky = { session: 's-risky', run: 'r-risky' };
    backend.next('reserve', doAndCut(backend), { value: 'k' });
    await call(url, 'reserve', { order: 'k' }, risky);
    await post(url, '/v1/runs/r-risky/undo', {});
    const waits = await untilRun(url, 'r-risky', 'needs_person');
    assert.match(waits.why ?? '', /it is not known whether the step was done/);
    const [open] = (await unknowns(url)).filter(({ tool }) => tool === 'shop/reserve');
    await post(
      url,
      `/v1/outcomes/${open?.id}/settle`,
      { outcome: 'failed', reason: 'nothing is in the books' },
      'ana-key',
    );
    await untilRun(url, 'r-risky', 'compensated');
  });

  test('a caller that carries its history is told which undo to send, and its own undos close the run', async () => {
    const { url } = gateway;
    const entries: Record<string, unknown>[] = [];
    let header: Record<string, unknown> = { format: 'qls-history/1' };
    const carried = async (
      tool: string,
      args: Record<string, unknown>,
      more: object,
    ): Promise<Record<string, unknown>> => {
      const answered = await call(url, tool, args, { history: { ...header, entries }, ...more });
      const { check } = answered.json as {
        check?: { history?: Record<string, unknown>; entry?: Record<string, unknown> };
      };
      if (check?.history !== undefined) header = check.history;
      if (check?.entry !== undefined) entries.push(check.entry);
      return { ...answered.json };
    };
    await carried('book', { order: 'l' }, { run: 'r-carried' });
    const charge = await carried('charge', { order: 'l' }, { run: 'r-carried' });
    await post(url, '/v1/runs/r-carried/undo', {});
    const told = await get<RunReport>(url, '/v1/runs/r-carried');
    const id = (charge['result'] as { id: string }).id;
    assert.deepEqual(told.send, { tool: 'shop/refund', arguments: { charge: id }, run: 'r-carried', undoes: 1 });
    assert.equal((await carried('refund', { charge: id }, { run: 'r-carried', undoes: 1 }))['outcome'], 'ran');
    const next = await get<RunReport>(url, '/v1/runs/r-carried');
    assert.deepEqual(next.send, { tool: 'shop/unbook', arguments: { order: 'l' }, run: 'r-carried', undoes: 0 });
    assert.equal((await carried('unbook', { order: 'l' }, { run: 'r-carried', undoes: 0 }))['outcome'], 'ran');
    const run = await untilRun(url, 'r-carried', 'compensated');
    assert.deepEqual(
      run.undos.map(({ state }) => state),
      ['compensated', 'compensated'],
    );
  });

  test('with `leave` a refusal, a failure and one that is known late leave the run as it is', async () => {
    const left = await startTestGateway(
      worldConfig(backend.url, { runs: { on_refuse: 'leave', on_failure: 'leave' } }),
    );
    try {
      const members = { session: 's', run: 'r' };
      await call(left.url, 'book', { order: 'm' }, members);
      await call(left.url, 'book', { order: 'm', more: 1 }, members);
      backend.next('charge', answerOnly(404), { value: 'm' });
      await call(left.url, 'charge', { order: 'm' }, members);
      backend.next('book', answerOnly(500), { value: 'n' });
      await call(left.url, 'book', { order: 'n' }, members);
      const [late] = await unknowns(left.url);
      const failed = { outcome: 'failed', reason: 'no such booking' };
      assert.equal((await post(left.url, `/v1/outcomes/${late?.id}/settle`, failed, 'ana-key')).status, 200);
      assert.equal((await get<RunReport>(left.url, '/v1/runs/r')).state, 'open');
    } finally {
      await left.close();
    }
  });
});
