import { setTimeout as delay, setImmediate as nextTurn } from 'node:timers/promises';
import { type CommitResult, type Conflict, StoreFault } from './port.ts';
import { type Connection, isTransient, messageOf } from './postgres-connection.ts';
import type { EncodedCommit } from './postgres-encode.ts';

/** One commit that waits for its group. */
export interface Waiting {
  readonly encoded: EncodedCommit;
  readonly settle: (result: CommitResult | StoreFault) => void;
}

/** Few enough that the subtransactions of a group fit a backend's cache (64), and that no commit waits for many others. */
const GROUP_COMMITS = 48;
const ATTEMPTS = 6;
const OK: CommitResult = { ok: true };

/** A connection that commits in order: what arrives while one group is under way makes up the next. */
export class Lane {
  readonly #connection: Connection;
  #queue: Waiting[] = [];
  #running: Promise<void> | undefined;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  push(waiting: Waiting): void {
    this.#queue.push(waiting);
    this.#running ??= this.#run();
  }

  /** Resolves once everything that was pushed is settled. */
  async idle(): Promise<void> {
    await this.#running;
  }

  async #run(): Promise<void> {
    // What else arrives in this turn of the loop goes along.
    await nextTurn();
    while (this.#queue.length > 0) {
      const group = this.#queue.splice(0, GROUP_COMMITS);
      if (await this.#commit(group, true)) continue;
      // A deadlock with another replica's group: one at a time they hold less for less long.
      for (const waiting of group) await this.#commitAlone(waiting);
    }
    this.#running = undefined;
  }

  async #commitAlone(waiting: Waiting): Promise<void> {
    for (let attempt = 1; attempt < ATTEMPTS; attempt += 1) {
      if (await this.#commit([waiting], true)) return;
      // Apart by chance, so that two replicas do not meet in the same lock again.
      await delay(Math.random() * 5 * attempt);
    }
    await this.#commit([waiting], false);
  }

  /** Commits and settles the group; false where `again` allows another attempt that may succeed. */
  async #commit(group: readonly Waiting[], again: boolean): Promise<boolean> {
    let answers: readonly unknown[] | StoreFault;
    try {
      const { rows } = await this.#connection.query('SELECT toolgate_commit($1, $2, $3)', [
        `[${group.map(({ encoded }) => encoded.values).join(',')}]`,
        JSON.stringify(group.flatMap(({ encoded }) => encoded.shared)),
        JSON.stringify(group.flatMap(({ encoded }) => encoded.links)),
      ]);
      const answer = rows[0]?.[0];
      answers = Array.isArray(answer) ? answer : new StoreFault('PostgreSQL answered nothing', { maybe: true });
    } catch (error) {
      if (again && isTransient(error)) return false;
      const refused = (): StoreFault => new StoreFault(`PostgreSQL refused: ${messageOf(error)}`, { cause: error });
      answers = error instanceof StoreFault ? error : refused();
    }
    const results = answers;
    group.forEach((waiting, index) => {
      waiting.settle(results instanceof StoreFault ? results : resultOf(results[index]));
    });
    return true;
  }
}

function resultOf(answer: unknown): CommitResult | StoreFault {
  if (answer === '') return OK;
  if (typeof answer !== 'string')
    return new StoreFault('PostgreSQL answered fewer commits than it was sent', { maybe: true });
  if (answer.startsWith('!')) return new StoreFault(`the store refuses operation ${answer.slice(1)}`);
  const colon = answer.indexOf(':');
  return {
    ok: false,
    operation: Number(answer.slice(0, colon)),
    conflict: answer.slice(colon + 1) as Conflict['conflict'],
  };
}
