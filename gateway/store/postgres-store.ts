import type { Value } from './lower.ts';
import { type CommitResult, type Operation, StoreFault, type StoreOptions } from './port.ts';
import { Connection, isTransient, messageOf, Reach } from './postgres-connection.ts';
import { affinityOf, encodeCommit } from './postgres-encode.ts';
import { Lane } from './postgres-lane.ts';
import { openSchema } from './postgres-migrate.ts';
import { POSTGRES_TASKS } from './postgres-tasks.ts';
import { type Query, queriesOf } from './queries.ts';
import { openRow, type Row } from './rows.ts';
import type { OpenSecret } from './seal.ts';
import { type StoreQuery, StoreReads } from './store-reads.ts';

const CONNECTIONS = 4;
const ATTEMPTS = 5;
const QUERIES: Readonly<Record<StoreQuery, Query>> = { ...queriesOf('postgres'), ...POSTGRES_TASKS };

/**
 * Opens the store in the `toolgate` schema of the database at `url` (postgres://...), which is made where there is none.
 *
 * @throws StoreSetupError where the database cannot be used as it is, StoreFault where it cannot be reached.
 */
export async function openPostgresStore(url: string, options: StoreOptions = {}): Promise<PostgresStore> {
  return new PostgresStore(url, options, await openSchema(url, options.encryptionKey));
}

/** The PostgreSQL adapter: shared by replicas, so nothing is remembered here and every precondition is the server's. */
export class PostgresStore extends StoreReads {
  readonly kind = 'postgres';
  readonly #options: StoreOptions;
  readonly #secret: OpenSecret;
  readonly #connections: readonly Connection[];
  readonly #lanes: readonly Lane[];
  readonly #idle: Connection[];
  readonly #queue: ((connection: Connection) => void)[] = [];
  readonly #unwaited = new Set<Promise<unknown>>();
  #closed = false;

  constructor(url: string, options: StoreOptions, secret: OpenSecret) {
    super();
    this.#options = options;
    this.#secret = secret;
    const count = Math.max(1, options.connections ?? CONNECTIONS);
    const reach = new Reach();
    const commits = Array.from({ length: count }, () => new Connection(url, reach));
    const reads = Array.from({ length: count }, () => new Connection(url, reach));
    this.#connections = [...commits, ...reads];
    this.#lanes = commits.map((connection) => new Lane(connection));
    this.#idle = reads;
  }

  commit(operations: readonly Operation[]): Promise<CommitResult> {
    return new Promise((resolve, reject) => {
      if (this.#closed) throw new StoreFault('the store is closed');
      this.#lane(operations).push({
        encoded: encodeCommit(operations, this.#secret.sealer),
        settle: (result) => (result instanceof StoreFault ? reject(result) : resolve(result)),
      });
    });
  }

  enqueue(operations: readonly Operation[]): void {
    const done = this.commit(operations)
      .then((result) => {
        if (!result.ok) this.#options.onLost?.(result, operations);
      })
      .catch((error: unknown) => {
        this.#options.onLost?.(error instanceof StoreFault ? error : new StoreFault(messageOf(error)), operations);
      })
      .finally(() => this.#unwaited.delete(done));
    this.#unwaited.add(done);
  }

  async ready(): Promise<void> {
    await this.#run("UPDATE meta SET value = value WHERE name = 'probe'", [], true);
  }

  secret(): Uint8Array {
    return this.#secret.secret;
  }

  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all(this.#lanes.map((lane) => lane.idle()));
    await Promise.all(this.#unwaited);
    await Promise.all(this.#connections.map((connection) => connection.close()));
  }

  protected override async rows(name: StoreQuery, values: readonly Value[]): Promise<readonly Row[]> {
    // Nobody waited for these, so that whoever reads now may count on them.
    if (this.#unwaited.size > 0) await Promise.all(this.#unwaited);
    const { sql, sealed } = QUERIES[name];
    // Rows come with the types of the columns, which rows.ts looks at one by one.
    const rows = (await this.#run(sql, values, false)) as readonly Row[];
    const { sealer } = this.#secret;
    return sealer === undefined || sealed === undefined ? rows : rows.map((row) => openRow(row, sealed, sealer));
  }

  async #run(sql: string, values: readonly unknown[], force: boolean): Promise<readonly (readonly unknown[])[]> {
    if (this.#closed) throw new StoreFault('the store is closed');
    const connection = this.#idle.pop() ?? (await new Promise<Connection>((resolve) => this.#queue.push(resolve)));
    try {
      for (let attempt = 1; ; attempt += 1) {
        try {
          return (await connection.query(sql, values, force)).rows;
        } catch (error) {
          if (error instanceof StoreFault) throw error;
          if (!isTransient(error) || attempt === ATTEMPTS) {
            throw new StoreFault(`PostgreSQL refused: ${messageOf(error)}`, { cause: error });
          }
        }
      }
    } finally {
      const next = this.#queue.shift();
      if (next === undefined) this.#idle.push(connection);
      else next(connection);
    }
  }

  #lane(operations: readonly Operation[]): Lane {
    const key = affinityOf(operations);
    let sum = 0;
    for (let i = 0; i < key.length; i += 1) sum = (sum * 31 + key.charCodeAt(i)) >>> 0;
    const lane = this.#lanes[sum % this.#lanes.length];
    if (lane === undefined) throw new StoreFault('the store has no connections');
    return lane;
  }
}
