import pg from 'pg';
import { StoreFault } from './port.ts';

const CONNECT_TIMEOUT_MS = 3_000;
/** The server ends a statement that takes longer; the client gives up on a connection that says nothing a while later. */
const STATEMENT_TIMEOUT_MS = 15_000;
const QUERY_TIMEOUT_MS = 20_000;
const FIRST_BACKOFF_MS = 50;
const LONGEST_BACKOFF_MS = 1_000;
const INT8_OID = 20;

export interface Result {
  readonly rows: readonly (readonly unknown[])[];
}

/** When the server may be tried again: what one connection finds out, all of them know. */
export class Reach {
  #backoffMs = FIRST_BACKOFF_MS;
  #retryAtMs = 0;
  #why = '';

  /** Throws where the server could not be reached a moment ago. */
  check(): void {
    if (performance.now() < this.#retryAtMs) throw new StoreFault(this.#why);
  }

  failed(cause: unknown): StoreFault {
    const nowMs = performance.now();
    this.#why = `PostgreSQL cannot be reached: ${messageOf(cause)}`;
    // Many fail at once; that is one attempt.
    if (nowMs >= this.#retryAtMs) {
      this.#retryAtMs = nowMs + this.#backoffMs;
      this.#backoffMs = Math.min(this.#backoffMs * 2, LONGEST_BACKOFF_MS);
    }
    return new StoreFault(this.#why, { cause });
  }

  reached(): void {
    this.#backoffMs = FIRST_BACKOFF_MS;
    this.#retryAtMs = 0;
  }
}

/** One connection, made when it is first needed and again after it broke, at growing intervals. */
export class Connection {
  readonly #url: string;
  readonly #reach: Reach;
  #client: pg.Client | undefined;

  constructor(url: string, reach: Reach) {
    this.#url = url;
    this.#reach = reach;
  }

  /**
   * Runs one statement in a transaction of its own; rows come as arrays.
   *
   * @param force connects even where the last attempt failed a moment ago.
   * @throws StoreFault where the server cannot be reached (`maybe` where the connection broke while it ran), or pg's
   *   DatabaseError where it refused: then nothing was stored.
   */
  async query(text: string, values: readonly unknown[], force = false): Promise<Result> {
    const client = this.#client ?? (await this.#connect(force));
    try {
      return await client.query({ name: nameOf(text), text, values: [...values], rowMode: 'array' });
    } catch (error) {
      if (isRefusal(error)) throw error;
      this.#drop(client);
      throw new StoreFault(`the connection to PostgreSQL broke: ${messageOf(error)}`, { cause: error, maybe: true });
    }
  }

  async close(): Promise<void> {
    const client = this.#client;
    this.#client = undefined;
    await client?.end();
  }

  async #connect(force: boolean): Promise<pg.Client> {
    if (!force) this.#reach.check();
    const client = new pg.Client({
      connectionString: this.#url,
      application_name: 'toolgate',
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
      statement_timeout: STATEMENT_TIMEOUT_MS,
      query_timeout: QUERY_TIMEOUT_MS,
      keepAlive: true,
      types: { getTypeParser: parserOf },
    });
    client.on('error', () => this.#drop(client));
    try {
      await client.connect();
      // What a commit promises does not depend on how the server happens to be set up.
      await client.query(`SET search_path TO toolgate, pg_catalog;
        SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED;
        SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') IN ('off')`);
    } catch (cause) {
      client.end().catch(() => undefined);
      throw this.#reach.failed(cause);
    }
    this.#reach.reached();
    this.#client = client;
    return client;
  }

  #drop(client: pg.Client): void {
    if (this.#client === client) this.#client = undefined;
    // Its socket may be half open; nothing that it still says matters.
    client.end().catch(() => undefined);
  }
}

/** Whether the server said that it did not do it, over a connection that goes on. */
function isRefusal(error: unknown): error is pg.DatabaseError {
  if (!(error instanceof pg.DatabaseError) || error.code === undefined) return false;
  // 57P: shut down under us. 25006: a server that became a standby. Neither connection is of further use.
  return !error.code.startsWith('57P') && !error.code.startsWith('08') && error.code !== '25006';
}

/** Deadlock and serialization failures: done again, they may succeed. */
export function isTransient(error: unknown): boolean {
  return error instanceof pg.DatabaseError && (error.code === '40P01' || error.code === '40001');
}

export function messageOf(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return messageOf(error.errors[0]);
  return error instanceof Error ? error.message || error.name : String(error);
}

const NAMES = new Map<string, string>();

/** A name for each text, so that the server plans it once per connection. */
function nameOf(text: string): string {
  let name = NAMES.get(text);
  if (name === undefined) {
    name = `t${NAMES.size}`;
    NAMES.set(text, name);
  }
  return name;
}

/** Times and counts fit a double; numerics are asked for as texts. */
function parserOf(oid: number, format?: 'text' | 'binary'): (text: string) => unknown {
  return oid === INT8_OID ? Number : pg.types.getTypeParser(oid, format === 'binary' ? 'text' : format);
}
