import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { Pool } from 'undici';
import { ReceiptSource } from './receipt-source.ts';

/** What a gateway process holds after so many calls, in MiB. */
interface MemorySample {
  readonly calls: number;
  /** Resident set of the whole process: heap, stacks, buffers, the store's cache. */
  readonly rssMiB: number;
  /** Objects of the main thread that are in use, garbage collected just before. */
  readonly heapMiB: number;
  /** Outside of the heap: buffers, and what native modules count. */
  readonly externalMiB: number;
}

export interface MemoryFigures {
  readonly samples: readonly MemorySample[];
  readonly perSecond: number;
  /** Answers by kind of call and status. */
  readonly answers: Readonly<Record<string, number>>;
}

const CALLERS = 32;
/** Rounds of calls that a session has; then its agent begins another, as agents do, so that no history only grows. */
const ROUNDS_OF_SESSION = 10;
const ARGUMENTS = { note: 'a note', order_id: '4411' };

/**
 * Mixed calls at full speed against a gateway process of its own, with what it holds in memory every so many calls: reads,
 * writes with keys and their repeats, refusals, confirmations asked for and given, receipts, checks, runs that end.
 */
export async function measureMemory(
  backendUrl: string,
  { calls = 100_000, every = 10_000 }: { readonly calls?: number; readonly every?: number } = {},
): Promise<MemoryFigures> {
  const child = fork(fileURLToPath(new URL('gateway.ts', import.meta.url)), [backendUrl], {
    execArgv: ['--expose-gc'],
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
  });
  const port = await once(child.stdout ?? child, 'data').then(([line]) => Number(String(line)));
  const mix = new Mix(port);
  try {
    const samples: MemorySample[] = [await sample(child, 0)];
    let tookMs = 0;
    for (let done = every; done <= calls; done += every) {
      const startedAt = performance.now();
      await mix.run(every);
      tookMs += performance.now() - startedAt;
      samples.push(await sample(child, done));
    }
    return { samples, perSecond: (calls / tookMs) * 1_000, answers: Object.fromEntries([...mix.answers].sort()) };
  } finally {
    await mix.close();
    child.kill('SIGTERM');
    await once(child, 'exit');
  }
}

async function sample(child: ChildProcess, calls: number): Promise<MemorySample> {
  child.send('memory');
  const [{ rss, heapUsed, external }] = (await once(child, 'message')) as [NodeJS.MemoryUsage];
  return { calls, rssMiB: toMiB(rss), heapMiB: toMiB(heapUsed), externalMiB: toMiB(external) };
}

interface Call {
  readonly kind: string;
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: object;
}

/** The calls of all callers, and what was answered. */
class Mix {
  readonly answers = new Map<string, number>();
  readonly #pool: Pool;
  readonly #rounds: readonly AsyncGenerator<void>[];
  #left = 0;

  constructor(port: number) {
    this.#pool = new Pool(`http://127.0.0.1:${port}`, { connections: CALLERS });
    this.#rounds = Array.from({ length: CALLERS }, (_, caller) => this.#caller(caller));
  }

  /** Makes so many calls more, each caller one after the other. */
  async run(calls: number): Promise<void> {
    this.#left = calls;
    await Promise.all(
      this.#rounds.map(async (caller) => {
        while (this.#left-- > 0) await caller.next();
      }),
    );
  }

  close(): Promise<void> {
    return this.#pool.close();
  }

  /** One caller's calls without end; each `next` makes one. */
  async *#caller(caller: number): AsyncGenerator<void> {
    for (let session = 0; ; session++) {
      const name = `m-${caller}-${session}`;
      const receipts = new ReceiptSource(`${name}-receipts`, ARGUMENTS);
      for (let round = 0; round < ROUNDS_OF_SESSION; round++) yield* this.#round(name, round, receipts);
    }
  }

  async *#round(session: string, round: number, receipts: ReceiptSource): AsyncGenerator<void> {
    const own = { 'toolgate-session': session };
    const typed = { ...own, 'toolgate-origins': 'order_id=context, note=context' };
    const read: Call = { kind: 'read', method: 'GET', path: '/shop/orders/4411', headers: own };
    const search: Call = { kind: 'search', method: 'POST', path: '/shop/search', headers: own, body: ARGUMENTS };
    const key = `"${session}-${round}"`;
    const run = `${session}-${round}`;
    const write = (kind: string, headers: Readonly<Record<string, string>>, body: object = ARGUMENTS): Call => {
      return { kind, method: 'POST', path: '/shop/orders', headers, body };
    };
    for (const call of [read, search, read]) yield await this.#send(call, 200);
    yield await this.#send(write('write', { ...typed, 'toolgate-run': run, 'idempotency-key': key }), 200);
    yield await this.#send(write('repeat', { ...typed, 'toolgate-run': run, 'idempotency-key': key }), 200);
    yield await this.#send({ kind: 'run end', method: 'POST', path: `/v1/runs/${run}/end`, body: {} }, 200);
    yield await this.#send(write('refusal', typed, { ...ARGUMENTS, discount: 1 }), 403);
    const guessed = { ...own, 'toolgate-origins': 'order_id=model' };
    let token = '';
    yield await this.#send(write('confirmation asked', guessed), 428, (json) => {
      token = json.check?.confirmation?.token ?? '';
    });
    yield await this.#send(write('confirmed', { ...guessed, 'toolgate-confirmation': token }), 200);
    for (const call of [read, search]) yield await this.#send(call, 200);
    const receipt = Buffer.from(JSON.stringify(receipts.next())).toString('base64url');
    yield await this.#send(write('receipt', { 'toolgate-agent': 'desk', 'toolgate-receipt': receipt }), 200);
    const asked = { session, tool: 'shop/get_order', arguments: { order_id: '4411' } };
    yield await this.#send({ kind: 'check', method: 'POST', path: '/v1/check', body: asked }, 200);
  }

  async #send(call: Call, expected: number, look?: (json: Asked) => void): Promise<void> {
    const { kind, method, path, headers = {}, body } = call;
    const { statusCode, body: answer } = await this.#pool.request({
      method,
      path,
      headers: body === undefined ? headers : { ...headers, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await answer.text();
    if (statusCode !== expected) throw new Error(`${kind}: answered ${statusCode} ${text}`);
    look?.(JSON.parse(text) as Asked);
    const label = `${kind} ${statusCode}`;
    this.answers.set(label, (this.answers.get(label) ?? 0) + 1);
  }
}

interface Asked {
  readonly check?: { readonly confirmation?: { readonly token?: string } };
}

/** The series as a table, and what the calls were. */
export function renderMemory({ samples, perSecond, answers }: MemoryFigures): string {
  return [
    '',
    `A gateway process under mixed calls, ${Math.round(perSecond)}/s: ${Object.entries(answers)
      .map(([kind, count]) => `${kind} ${count}`)
      .join(', ')}.`,
    '',
    '| calls | RSS MiB | heap MiB | external MiB |',
    '|---|---|---|---|',
    ...samples.map((row) => `| ${row.calls} | ${row.rssMiB} | ${row.heapMiB} | ${row.externalMiB} |`),
    '',
  ].join('\n');
}

function toMiB(bytes: number): number {
  return Math.round((bytes / (1 << 20)) * 10) / 10;
}
