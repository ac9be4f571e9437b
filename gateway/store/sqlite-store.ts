import { Worker } from 'node:worker_threads';
import { lowerOperation, type Value } from './lower.ts';
import {
  type CommitResult,
  type Conflict,
  type Operation,
  StoreFault,
  type StoreOptions,
  StoreSetupError,
} from './port.ts';
import type { Row } from './rows.ts';
import {
  COMMIT,
  type Opened,
  READ,
  READY,
  type Replies,
  type Reply,
  type Requests,
  TASK,
  type WorkerInput,
} from './sqlite-messages.ts';
import { type StoreQuery, StoreReads } from './store-reads.ts';

/** Gets the reply to one request. */
type Waiting = (reply: Reply) => void;

const OK: CommitResult = { ok: true };

/**
 * Opens the SQLite store at `path`, which is made where there is none.
 *
 * @throws StoreSetupError where the file cannot be used as it is, StoreFault where it cannot be reached.
 */
export async function openSqliteStore(path: string, options: StoreOptions = {}): Promise<SqliteStore> {
  const store = new SqliteStore(path, options);
  await store.start();
  return store;
}

/**
 * The SQLite adapter: one file, owned by a thread of its own, so that the event loop never waits for the disk. What is
 * asked for within one turn of the loop goes over in one message; what comes while the disk is busy is one transaction.
 */
export class SqliteStore extends StoreReads {
  readonly kind = 'sqlite';
  readonly #path: string;
  readonly #options: StoreOptions;
  #worker: Worker | undefined;
  #secret: Uint8Array | undefined;
  #requests: Requests = [];
  #scheduled = false;
  #waiting: Waiting[] = [];
  #answered = 0;
  #closing = false;
  #starting: Promise<void> | undefined;

  constructor(path: string, options: StoreOptions) {
    super();
    this.#path = path;
    this.#options = options;
  }

  /** Starts the thread; a further time where it died. */
  start(): Promise<void> {
    this.#starting ??= this.#start().finally(() => {
      this.#starting = undefined;
    });
    return this.#starting;
  }

  commit(operations: readonly Operation[]): Promise<CommitResult> {
    return new Promise((resolve, reject) => {
      this.#lower(operations);
      this.#waiting.push((reply) => {
        if (reply === 0) resolve(OK);
        else if (typeof reply === 'string') resolve(conflictOf(reply));
        else reject(faultOf(reply));
      });
    });
  }

  enqueue(operations: readonly Operation[]): void {
    const lost = (why: StoreFault | Conflict): void => this.#options.onLost?.(why, operations);
    try {
      this.#lower(operations);
    } catch (cause) {
      lost(new StoreFault(`the operations cannot be stored: ${String(cause)}`, { cause }));
      return;
    }
    this.#waiting.push((reply) => {
      if (reply !== 0) lost(typeof reply === 'string' ? conflictOf(reply) : faultOf(reply));
    });
  }

  ready(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#post(READY, []);
      this.#waiting.push((reply) => (reply === 0 ? resolve() : reject(faultOf(reply))));
    });
  }

  secret(): Uint8Array {
    if (this.#secret === undefined) throw new StoreFault('the store is not open');
    return this.#secret;
  }

  async close(): Promise<void> {
    if (this.#closing) return;
    this.#flush();
    this.#closing = true;
    const worker = this.#worker;
    if (worker === undefined) return;
    const ended = new Promise<void>((resolve) => worker.once('exit', () => resolve()));
    worker.postMessage('close');
    await ended;
  }

  protected override rows(name: StoreQuery, values: readonly Value[]): Promise<readonly Row[]> {
    return new Promise((resolve, reject) => {
      this.#post(TASKS.has(name) ? TASK : READ, [name, ...values]);
      this.#waiting.push((reply) => (Array.isArray(reply) ? resolve(reply) : reject(faultOf(reply))));
    });
  }

  #lower(operations: readonly Operation[]): void {
    const requests = this.#requests;
    const lengthAt = requests.push(COMMIT, 0) - 1;
    try {
      for (const operation of operations) lowerOperation(operation, requests);
    } catch (error) {
      // Half a commit would be read as the beginning of the next.
      requests.length = lengthAt - 1;
      throw error;
    }
    requests[lengthAt] = requests.length - lengthAt - 1;
    this.#schedule();
  }

  #post(kind: number, values: readonly Value[]): void {
    this.#requests.push(kind, values.length, ...values);
    this.#schedule();
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    setImmediate(() => this.#flush());
  }

  #flush(): void {
    this.#scheduled = false;
    const requests = this.#requests;
    if (requests.length === 0) return;
    this.#requests = [];
    if (this.#worker !== undefined && !this.#closing) this.#worker.postMessage(requests);
    else this.#giveUp({ fault: this.#closing ? 'the store is closed' : 'the store is not open', maybe: false });
    if (this.#worker === undefined && !this.#closing) this.#restart();
  }

  #start(): Promise<void> {
    // The source and what is built of it lie side by side in the same way; only the ending differs.
    const ending = import.meta.url.slice(import.meta.url.lastIndexOf('.'));
    const input: WorkerInput = { path: this.#path, key: this.#options.encryptionKey, expectSecret: this.#secret };
    const worker = new Worker(new URL(`./sqlite-worker${ending}`, import.meta.url), {
      workerData: input,
      name: 'store',
    });
    return new Promise((resolve, reject) => {
      worker.once('message', (opened: Opened) => {
        if (!opened.opened) {
          reject(opened.setup ? new StoreSetupError(opened.message) : new StoreFault(opened.message));
          return;
        }
        this.#secret = opened.secret;
        this.#worker = worker;
        worker.on('message', (replies: Replies) => this.#answer(replies));
        resolve();
      });
      worker.once('error', (cause) => {
        reject(new StoreFault('the store thread failed', { cause }));
        this.#ended(worker);
      });
      worker.once('exit', () => this.#ended(worker));
    });
  }

  /** The thread died under us: what it was asked may have been done. */
  #ended(worker: Worker): void {
    if (this.#worker !== worker) return;
    this.#worker = undefined;
    this.#giveUp({ fault: 'the store thread ended', maybe: true });
    if (!this.#closing) this.#restart();
  }

  #restart(): void {
    // Whoever asks meanwhile is told that the store is not open, and the next to ask starts the thread once more.
    this.start().catch((error: unknown) => this.#giveUp({ fault: String(error), maybe: false }));
  }

  #answer(replies: Replies): void {
    const waiting = this.#waiting;
    const count = typeof replies === 'number' ? replies : replies.length;
    for (let i = 0; i < count; i += 1) {
      const settle = waiting[this.#answered];
      this.#answered += 1;
      settle?.(typeof replies === 'number' ? 0 : (replies[i] ?? 0));
    }
    if (this.#answered === waiting.length) {
      waiting.length = 0;
      this.#answered = 0;
    } else if (this.#answered > 1_024) {
      waiting.splice(0, this.#answered);
      this.#answered = 0;
    }
  }

  #giveUp(fault: { fault: string; maybe: boolean }): void {
    const open = this.#waiting.slice(this.#answered);
    this.#waiting = [];
    this.#answered = 0;
    this.#requests = [];
    for (const settle of open) settle(fault);
  }
}

const TASKS: ReadonlySet<string> = new Set([
  'takeLapsedClaims',
  'renewLeases',
  'takeUndoWork',
  'sweep',
] satisfies StoreQuery[]);

function conflictOf(reply: string): Conflict {
  const colon = reply.indexOf(':');
  return {
    ok: false,
    operation: Number(reply.slice(0, colon)),
    conflict: reply.slice(colon + 1) as Conflict['conflict'],
  };
}

function faultOf(reply: Reply): StoreFault {
  if (typeof reply === 'object' && 'fault' in reply) return new StoreFault(reply.fault, { maybe: reply.maybe });
  return new StoreFault('the store thread answered out of turn');
}
