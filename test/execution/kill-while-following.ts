import assert from 'node:assert/strict';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import pg from 'pg';
import { answerOnly, type RecordingBackend, type Seen, startBackend } from './backend.ts';
import { makeFolder } from './process.ts';
import { call, get, post, type UnknownOutcome, unknowns, until, untilRun, worldConfig } from './world.ts';

/** A charge that its backend takes on at once and that a read tells the end of. */
const FOLLOWED = {
  at_most: [{ count: 100, per: 'month' }],
  outcome: {
    follow: 'get_order',
    same: 'order',
    done_when: [{ field: 'status', is: 'filled' }],
    failed_when: [{ field: 'status', is: 'rejected' }],
    give_up_after: 1,
  },
};

interface Entries {
  readonly entries: readonly { readonly outcome?: string }[];
}

/**
 * Writes that are followed when their gateway is killed, one of them while its read is on its way: the next gateway on the
 * same store goes on to `ran`, to `failed` with its run undone and its place given back, and to a person where nothing was
 * said for as long as the tool allows. What the killed one never saw is the only thing that the reads say differently.
 */
export async function killWhileFollowing(store: Readonly<Record<string, unknown>>): Promise<void> {
  const backend = await startBackend();
  const folder = await makeFolder(worldConfig(backend.url, store, { charge: FOLLOWED }));
  try {
    const killed = await folder.start();
    // Whatever is not told otherwise is answered with a status that is neither: it is pending.
    backend.next('get_order', neverAnswers, { value: 'filled', times: 1_000 });
    const members = { filled: { session: 's-filled' }, silent: { session: 's-silent', run: 'r-silent' } };
    const rejected = { session: 's-rejected', run: 'r-rejected' };
    for (const more of [rejected, members.silent]) await call(killed.url, 'book', { order: more.session }, more);
    const placed = await Promise.all([
      call(killed.url, 'charge', { order: 'filled' }, members.filled),
      call(killed.url, 'charge', { order: 'rejected' }, rejected),
      call(killed.url, 'charge', { order: 'silent' }, members.silent),
    ]);
    assert.deepEqual(
      placed.map(({ json }) => json.outcome),
      ['outcome_unknown', 'outcome_unknown', 'outcome_unknown'],
    );
    for (const order of ['filled', 'rejected', 'silent']) {
      await until(`${order} is asked about`, async () => (reads(backend, order).length > 0 ? true : undefined));
    }
    assert.deepEqual(await usage(killed.url), { settled: '0', held: '3' });
    await killed.kill();

    backend.forget('get_order');
    const asked = reads(backend, 'silent').length;
    await letTimePass(folder.folder, store, 's-silent', 61_000);
    // Often enough for a machine on which a read may run out of its time.
    for (const status of ['filled', 'rejected']) {
      backend.next('get_order', answerOnly(200, { status }), { value: status, times: 1_000 });
    }
    const { url, stop } = await folder.start();
    await until('it ran', async () => ((await outcomeOf(url, 's-filled', 0)) === 'ran' ? true : undefined));
    // Nobody reported it, asked again, or was waiting: the read alone failed the run.
    const run = await untilRun(url, 'r-rejected', 'compensated');
    assert.deepEqual(
      run.undos.map(({ step, state }) => [step, state]),
      [[0, 'compensated']],
    );
    assert.equal(await outcomeOf(url, 's-rejected', 1), 'failed');
    assert.equal(backend.of('refund').length, 0, 'what failed is not undone');
    assert.equal((await call(url, 'book', { order: 'more' }, rejected)).json.check?.reason, 'run_ended');

    const silent = await until('a person is asked', async () =>
      (await unknowns(url)).find(({ session, why }) => session === 's-silent' && why === 'gave_up'),
    );
    assert.ok(reads(backend, 'silent').length <= asked + 1, 'asked once more, and then no longer');
    assert.deepEqual(await usage(url), { settled: '1', held: '1' });
    await settledByPerson(url, silent);
    assert.deepEqual(await usage(url), { settled: '1', held: '0' });
    assert.equal(backend.of('charge').length, 3, 'nothing was sent again');
    await stop();
  } finally {
    await folder.remove();
    await backend.close();
  }
}

/** A person finds that nothing was done: late as it is, it fails the run of the call, whose earlier write is undone. */
async function settledByPerson(url: string, { id }: UnknownOutcome): Promise<void> {
  const said = { outcome: 'failed', reason: 'the broker has no such order' };
  assert.equal((await post(url, `/v1/outcomes/${id}/settle`, said, 'ana-key')).status, 200);
  const run = await untilRun(url, 'r-silent', 'compensated');
  assert.deepEqual(
    run.undos.map(({ step, tool, state }) => [step, tool, state]),
    [[0, 'shop/book', 'compensated']],
  );
}

const neverAnswers = (seen: Seen): Promise<never> => {
  assert.equal(seen.tool, 'get_order');
  return new Promise(() => undefined);
};

function reads(backend: RecordingBackend, order: string): readonly Seen[] {
  return backend.seen.filter(({ tool, body }) => tool === 'get_order' && body['order'] === order);
}

async function outcomeOf(url: string, session: string, step: number): Promise<string | undefined> {
  return (await get<Entries>(url, `/v1/sessions/${session}`)).entries[step]?.outcome;
}

async function usage(url: string): Promise<{ readonly settled: string; readonly held: string } | undefined> {
  const { usage: counts } = await get<{ usage: { settled: string; held: string }[] }>(url, '/v1/usage', 'ana-key');
  const [count] = counts;
  return count === undefined ? undefined : { settled: count.settled, held: count.held };
}

/** While no gateway runs: the call was made so much earlier, in milliseconds. */
async function letTimePass(
  folder: string,
  { store }: Readonly<Record<string, unknown>>,
  session: string,
  ms: number,
): Promise<void> {
  const older = (table: string): string =>
    `UPDATE ${table}claims SET created_at_ms = created_at_ms - ${ms} WHERE tool = 'shop/charge' AND sid =
      (SELECT sid FROM ${table}sessions WHERE session = '${session}')`;
  if (typeof store === 'string') {
    const client = new pg.Client({ connectionString: store });
    await client.connect();
    const { rowCount } = await client.query(older('toolgate.'));
    await client.end();
    assert.equal(rowCount, 1);
    return;
  }
  const db = new Database(join(folder, 'toolgate.db'));
  assert.equal(db.prepare(older('')).run().changes, 1);
  db.close();
}
