import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { after, describe, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { parse } from 'yaml';
import { createLog } from '../../gateway/log.ts';
import { runGateway } from '../../gateway/serve/run-gateway.ts';
import { startTestGateway } from '../harness/gateway.ts';
import { startPostgres, type TestPostgres } from '../postgres.ts';
import { act, answerOnly, type RecordingBackend, type Seen, startBackend } from './backend.ts';
import { killWhileFollowing } from './kill-while-following.ts';
import { type GatewayFolder, makeFolder } from './process.ts';
import {
  type Answered,
  call,
  get,
  post,
  type RunReport,
  type UnknownOutcome,
  unknowns,
  until,
  untilRun,
  worldConfig,
} from './world.ts';

/** Starting a process a dozen times takes its time where the processor is shared. */
const STARTS_MS = 900_000;

const server = await startPostgres({ own: true });

/** A scenario, with names of its own. */
interface At {
  readonly url: string;
  readonly backend: RecordingBackend;
  readonly session: string;
  readonly key: string;
  readonly order: string;
  readonly run: string;
}

interface Scenario {
  readonly title: string;
  readonly fault: string;
  /** What dies in the middle. */
  readonly begin: (at: At) => Promise<unknown>;
  /** What the next process makes of it. */
  readonly look: (at: At) => Promise<void>;
}

function once(tool: string): (at: At) => Promise<Answered> {
  return ({ url, session, key, order }) => call(url, tool, { order }, { session, idempotency_key: key });
}

function sent({ backend, order }: At): readonly Seen[] {
  return backend.seen.filter(({ body }) => body['order'] === order);
}

function effects({ backend, order }: At): number {
  return backend.done.filter(({ body }) => body['order'] === order).length;
}

async function listed({ url, session }: At): Promise<UnknownOutcome> {
  return until('it is listed', async () => (await unknowns(url)).find((unknown) => unknown.session === session));
}

/** What is used of the limit on bookings. */
async function bookings({ url }: At): Promise<{ readonly settled: string; readonly held: string } | undefined> {
  const { usage } = await get<{ usage: { settled: string; held: string }[] }>(url, '/v1/usage', 'ana-key');
  return usage.map(({ settled, held }) => ({ settled, held }))[0];
}

/** Waits until a repeat of the call gets its stored answer. */
async function replays(tool: string, at: At): Promise<void> {
  const again = await until('the replay', async () => {
    const answered = await once(tool)(at);
    return answered.json.outcome === undefined ? undefined : answered;
  });
  assert.deepEqual([again.json.replayed, again.json.outcome], [true, 'ran']);
}

async function twoWrites({ url, session, order, run }: At): Promise<void> {
  await call(url, 'book', { order }, { session, run });
  await call(url, 'charge', { order }, { session, run });
}

/** Both writes are undone, each once, and every send of an undo had the one key of its step. */
async function undone(at: At): Promise<void> {
  const { backend, order } = at;
  const run = await untilRun(at.url, at.run, 'compensated');
  assert.deepEqual(
    run.undos.map(({ state }) => state),
    ['compensated', 'compensated'],
  );
  assert.equal(backend.of('unbook').filter(({ body }) => body['order'] === order).length, 1);
  // What the backend answered to a charge counts what it had done by then.
  const charge = `charge-${backend.done.findIndex(({ tool, body }) => tool === 'charge' && body['order'] === order) + 1}`;
  const ofCharge = ({ body }: Seen): boolean => body['charge'] === charge;
  assert.equal(backend.of('refund').filter(ofCharge).length, 1);
  const keysOf = (sends: readonly Seen[]): readonly (string | undefined)[] => [...new Set(sends.map(({ key }) => key))];
  const [refund, ...others] = keysOf(backend.seen.filter((one) => one.tool === 'refund' && ofCharge(one)));
  assert.deepEqual([typeof refund, others], ['string', []]);
  const [unbook, ...more] = keysOf(sent(at).filter(({ tool }) => tool === 'unbook'));
  assert.deepEqual([typeof unbook, more, unbook === refund], ['string', [], false]);
  const charged = run.steps.filter(({ tool }) => tool === 'shop/refund');
  assert.equal(charged.length, 1);
}

const SCENARIOS: readonly Scenario[] = [
  {
    title: 'after the claim, before sending: let go, and a repeat is a new call that runs once',
    fault: 'after-claim',
    begin: once('book'),
    look: async (at) => {
      const again = await until('the key is free', async () => {
        const answered = await once('book')(at);
        return answered.json.outcome === undefined ? undefined : answered;
      });
      assert.deepEqual([again.json.outcome, again.json.check?.step], ['ran', 1]);
      assert.deepEqual(await bookings(at), { settled: '1', held: '0' });
      assert.deepEqual([sent(at).length, effects(at)], [1, 1]);
    },
  },
  {
    title: 'after the claim of a keyed write: sent once',
    fault: 'after-claim',
    begin: once('charge'),
    look: async (at) => {
      await replays('charge', at);
      assert.equal(effects(at), 1);
    },
  },
  {
    title: 'when it was about to send: unknown, and not sent blindly',
    fault: 'after-sending',
    begin: once('book'),
    look: async (at) => {
      const unknown = await listed(at);
      assert.equal(unknown.why, 'owner_gone');
      assert.equal((await bookings(at))?.held, '1', 'its hold is kept');
      const repeat = await once('book')(at);
      assert.deepEqual([repeat.status, repeat.json.type], [409, 'urn:toolgate:outcome_pending']);
      assert.equal(sent(at).length, 0);
      const settle = { outcome: 'failed', reason: 'the backend has no such booking' };
      assert.equal((await post(at.url, `/v1/outcomes/${unknown.id}/settle`, settle, 'ana-key')).status, 200);
      assert.equal((await once('book')(at)).json.outcome, 'ran');
      assert.equal((await bookings(at))?.held, '0');
    },
  },
  {
    title: 'after the answer, before the outcome: by its key it ran, once',
    fault: 'after-answer',
    begin: once('charge'),
    look: async (at) => {
      await replays('charge', at);
      assert.deepEqual([effects(at), new Set(sent(at).map(({ key }) => key)).size], [1, 1]);
      const history = await get<{ entries: { outcome?: string }[] }>(at.url, `/v1/sessions/${at.session}`);
      assert.equal(history.entries[0]?.outcome, 'ran');
    },
  },
  {
    title: 'after the answer of a write without a key: unknown, one effect, not sent again',
    fault: 'after-answer',
    begin: once('book'),
    look: async (at) => {
      await listed(at);
      assert.equal((await once('book')(at)).status, 409);
      assert.deepEqual([sent(at).length, effects(at)], [1, 1]);
    },
  },
  {
    title: 'after the outcome, before the reply: the repeat replays',
    fault: 'after-outcome',
    begin: once('book'),
    look: async (at) => {
      await replays('book', at);
      assert.equal(sent(at).length, 1);
    },
  },
  {
    title: 'while a run is being marked failed: all of it or nothing',
    fault: 'marking-run-failed',
    begin: async (at) => {
      await twoWrites(at);
      await call(at.url, 'charge', { order: at.order, more: 1 }, { session: at.session, run: at.run });
    },
    look: async (at) => {
      const run = await get<RunReport>(at.url, `/v1/runs/${at.run}`);
      if (run.state === 'open') {
        assert.deepEqual([run.undos, run.steps.length], [[], 2]);
        await call(at.url, 'charge', { order: at.order, more: 1 }, { session: at.session, run: at.run });
      } else assert.equal(run.undos.length, 2);
      await undone(at);
    },
  },
  {
    title: 'after an undo was sent, before it was recorded: the same key, one undo, and the rest go on',
    fault: 'after-undo-sent',
    begin: async (at) => {
      await twoWrites(at);
      await post(at.url, `/v1/runs/${at.run}/undo`, {});
    },
    look: undone,
  },
];

/** The backend fails an undo three times and then does it; the undo of the step before it waits for that. */
async function failsThrice(at: At): Promise<void> {
  const { url, backend, order, run } = at;
  await twoWrites(at);
  const before = backend.seen.length;
  backend.next('refund', answerOnly(503), { times: 3 });
  await post(url, `/v1/runs/${run}/undo`, {});
  await undone(at);
  const undos = backend.seen.slice(before).filter(({ body }) => 'charge' in body || body['order'] === order);
  assert.deepEqual(
    undos.map(({ tool }) => tool),
    ['refund', 'refund', 'refund', 'refund', 'unbook'],
  );
}

after(async () => {
  if (typeof server !== 'string') await server.close();
});

describe('a gateway that is killed', { concurrency: 3 }, () => {
  for (const kind of ['SQLite', 'PostgreSQL'] as const) {
    const skip = kind === 'PostgreSQL' && typeof server === 'string' ? server : false;
    const storeOf = async (): Promise<Record<string, unknown>> =>
      kind === 'SQLite' ? {} : { store: await (server as TestPostgres).database() };

    test(`${kind}: a kill at each point ends right`, { skip, timeout: STARTS_MS }, async (t) => {
      const backend = await startBackend();
      const folder = await makeFolder(
        worldConfig(backend.url, await storeOf(), { book: { at_most: [{ count: 1_000, per: 'month' }] } }),
      );
      try {
        let gateway = await folder.start();
        for (const [n, { title, fault, begin, look }] of SCENARIOS.entries()) {
          await t.test(title, async () => {
            const at = { url: gateway.url, backend, session: `s-${n}`, key: `k-${n}`, order: `o-${n}`, run: `r-${n}` };
            await gateway.arm(fault);
            const begun = begin(at).catch(() => undefined);
            assert.equal((await gateway.ended).signal, 'SIGKILL');
            await begun;
            gateway = await folder.start();
            await look({ ...at, url: gateway.url });
          });
        }
        await t.test('an undo that fails three times: one key, and the one before it waits', async () => {
          await failsThrice({
            url: gateway.url,
            backend,
            session: 's-thrice',
            key: 'k-thrice',
            order: 'o-thrice',
            run: 'r-thrice',
          });
        });
        await gateway.stop();
      } finally {
        await folder.remove();
        await backend.close();
      }
    });

    test(`${kind}: 50 calls at once with one key run once, and nobody gets a 5xx`, { skip }, async () => {
      const backend = await startBackend();
      const folder = await makeFolder(worldConfig(backend.url, await storeOf()));
      // A second replica has its own log; a SQLite file is for one process.
      const other = kind === 'SQLite' ? undefined : await secondReplica(folder, backend.url);
      try {
        const gateways = [await folder.start(), ...(other === undefined ? [] : [await other.start()])];
        const urlOf = (i: number): string => gateways[i % gateways.length]?.url ?? '';
        const answers = await Promise.all(
          Array.from({ length: 50 }, (_, i) => call(urlOf(i), 'book', { order: 'x' }, members())),
        );
        const statuses = answers.map(({ status }) => status);
        assert.ok(
          statuses.every((status) => status === 200 || status === 409),
          JSON.stringify(statuses),
        );
        const ran = answers.filter(({ json }) => json.outcome === 'ran' && json.replayed !== true);
        assert.equal(ran.length, 1);
        for (const { status, json } of answers.filter((one) => one !== ran[0])) {
          if (status === 200) assert.deepEqual([json.replayed, json.result], [true, ran[0]?.json.result]);
        }
        assert.equal(backend.of('book').length, 1);
        const foreign = await call(urlOf(1), 'book', { order: 'x' }, members(), 'other-key');
        assert.equal(foreign.json.replayed, undefined);
        assert.equal(backend.of('book').length, 2);
        assert.equal((await call(urlOf(1), 'book', { order: 'y' }, members())).status, 422);
        for (const gateway of gateways) await gateway.stop();
      } finally {
        await folder.remove();
        await other?.remove();
        await backend.close();
      }
    });

    test(`${kind}: what is followed when the gateway is killed goes on after it`, {
      skip,
      timeout: STARTS_MS,
    }, async () => {
      await killWhileFollowing(await storeOf());
    });
  }

  const skip = typeof server === 'string' ? server : false;

  test('an owner that is silent for longer than its lease is not overtaken into a second run', { skip }, async () => {
    const backend = await startBackend();
    const store = await (server as TestPostgres).database();
    // Longer than the silence: what comes first when it ends must be the answer.
    const config = worldConfig(backend.url, { store }, {}, '60s');
    const [one, two] = [await makeFolder(config), await makeFolder(config)];
    let finish: () => void = () => undefined;
    const held = new Promise<void>((resolve) => {
      finish = resolve;
    });
    backend.next('book', async (seen, response) => {
      await held;
      act(backend, seen);
      response.writeHead(200, { 'content-type': 'application/json' }).end('{"id":"late"}');
    });
    try {
      const silent = await one.start({ leaseMs: 900 });
      const begun = call(silent.url, 'book', { order: 'x' }, members()).catch(() => undefined);
      await until('it was sent', async () => (backend.seen.length === 1 ? true : undefined));
      silent.child.kill('SIGSTOP');
      const watcher = await two.start({ leaseMs: 900 });
      const [unknown] = await until('the other replica lists it', async () => nonEmpty(await unknowns(watcher.url)));
      assert.equal(unknown?.why, 'owner_gone');
      assert.equal((await call(watcher.url, 'book', { order: 'x' }, members())).status, 409);
      finish();
      silent.child.kill('SIGCONT');
      await begun;
      // What the old owner saw is worth something only because nobody else has said anything since.
      await until('the late answer settles it', async () =>
        (await unknowns(watcher.url)).length === 0 ? true : undefined,
      );
      assert.equal((await call(watcher.url, 'book', { order: 'x' }, members())).json.replayed, true);
      assert.equal(backend.seen.length, 1);
      await silent.stop();
      await watcher.stop();
    } finally {
      await one.remove();
      await two.remove();
      await backend.close();
    }
  });

  test('a fault point keeps a production gateway from starting', async () => {
    const log = createLog({ level: 'silent' });
    const start = (env: NodeJS.ProcessEnv): Promise<unknown> =>
      runGateway({ configFile: '/no/gateway.yaml', env: { ...process.env, ...env }, log });
    const named = start({ NODE_ENV: 'production', TOOLGATE_FAULT: 'after-claim' });
    await assert.rejects(named, /TOOLGATE_FAULT is set.*take it out/);
    await assert.rejects(start({ TOOLGATE_FAULT: 'no-such-point' }), /names no fault point/);
  });
});

function members(): { readonly session: string; readonly idempotency_key: string } {
  return { session: 's', idempotency_key: 'k' };
}

describe('a PostgreSQL that goes away', () => {
  const power = typeof server === 'string' ? undefined : server.power;
  const skip = power === undefined ? 'there is no PostgreSQL here that may be stopped' : false;

  test('for five seconds under load: writes are 503 meanwhile, nothing is lost, and no restart is needed', {
    skip,
  }, async () => {
    const backend = await startBackend();
    const store = await (server as TestPostgres).database();
    const gateway = await startTestGateway(worldConfig(backend.url, { store, sessions: { max: 1_000_000 } }));
    const answers: { readonly order: string; readonly status: number; readonly outcome: string | undefined }[] = [];
    let phase = 0;
    let ending = false;
    const seen = [new Set<number>(), new Set<number>(), new Set<number>()];
    const client = async (n: number): Promise<void> => {
      for (let i = 0; !ending; i++) {
        const order = `o-${n}-${i}`;
        const at = phase;
        const { status, json } = await call(gateway.url, 'charge', { order }, { session: order });
        if (at === phase) seen[at]?.add(status);
        answers.push({ order, status, outcome: json.outcome });
        if (status !== 200) await pause(50);
      }
    };
    try {
      const clients = Array.from({ length: 6 }, (_, n) => client(n));
      await pause(500);
      await power?.stop();
      phase = 1;
      await pause(5_000);
      await power?.start();
      phase = 2;
      const before = answers.length;
      await until('calls go through again', async () => {
        return answers.slice(before).filter(({ status }) => status === 200).length > 20 ? true : undefined;
      });
      ending = true;
      await Promise.all(clients);
      assert.deepEqual([...(seen[1] ?? [])], [503]);
      await until('every outcome is stored', async () => {
        const open = await gateway.gateway.store.listClaims('sending', 9);
        return open.length === 0 ? true : undefined;
      });
      const ran = await gateway.gateway.store.listClaims('ran', 100_000);
      assert.deepEqual(await unknowns(gateway.url), []);
      assert.equal(ran.length, backend.of('charge').length, 'what was done is what is recorded');
      const told = answers.filter(({ outcome }) => outcome === 'ran').map(({ order }) => order);
      const done = new Set(backend.of('charge').map(({ body }) => body['order']));
      assert.deepEqual(
        told.filter((order) => !done.has(order)),
        [],
      );
    } finally {
      ending = true;
      await gateway.close();
      await backend.close();
    }
  });
});

function nonEmpty<T>(list: readonly T[]): readonly T[] | undefined {
  return list.length === 0 ? undefined : list;
}

/** Another folder, with another audit log, on the same store. */
async function secondReplica(first: GatewayFolder, backend: string): Promise<GatewayFolder> {
  const config = parse(await readFile(`${first.folder}/gateway.yaml`, 'utf8')) as Record<string, unknown>;
  const key = await readFile(`${first.folder}/gateway.pem`).catch(() => undefined);
  const made = await makeFolder({ ...worldConfig(backend), store: config['store'] });
  if (key !== undefined) await writeFile(`${made.folder}/gateway.pem`, key);
  return made;
}
