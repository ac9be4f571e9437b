import type { Database, RunResult, Statement } from 'better-sqlite3';

/**
 * A statement whose parameters are numbered (`?1`), so that one can stand in several places. better-sqlite3 takes such
 * for named ones and wants an object each time; here they become plain `?`, and the values are laid out in their order.
 */
export class Numbered<Result = unknown> {
  readonly #statement: Statement<unknown[], Result>;
  readonly #order: readonly number[];

  constructor(db: Database, sql: string) {
    const order: number[] = [];
    const plain = sql.replace(/\?(\d+)/g, (_match, digits: string) => {
      order.push(Number(digits) - 1);
      return '?';
    });
    this.#statement = db.prepare<unknown[], Result>(plain);
    this.#order = order;
  }

  raw(): this {
    this.#statement.raw();
    return this;
  }

  pluck(): this {
    this.#statement.pluck();
    return this;
  }

  run(...values: readonly unknown[]): RunResult {
    return this.#statement.run(this.#lay(values));
  }

  get(...values: readonly unknown[]): Result | undefined {
    return this.#statement.get(this.#lay(values));
  }

  all(...values: readonly unknown[]): Result[] {
    return this.#statement.all(this.#lay(values));
  }

  #lay(values: readonly unknown[]): unknown[] {
    const order = this.#order;
    const laid = new Array<unknown>(order.length);
    for (let i = 0; i < order.length; i += 1) laid[i] = values[order[i] ?? 0];
    return laid;
  }
}
