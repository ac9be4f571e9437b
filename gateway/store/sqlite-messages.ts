import type { Value } from './lower.ts';
import type { Row } from './rows.ts';

/**
 * What the event loop and the thread that owns the file say to each other. A request is a flat run of primitives, since
 * those are copied between threads for a fraction of what objects cost; several requests stand in one message, end to
 * end, and are answered in their order.
 *
 * - commit: `COMMIT`, number of values that follow, then opcode and values of each operation (lower.ts)
 * - read: `READ`, number of values, name of the query, its parameters
 * - task: `TASK`, number of values, name of the task, its parameters
 * - `READY`, 0: proves that the file can be written to
 */
export const COMMIT = 0;
export const READ = 1;
export const TASK = 2;
export const READY = 3;

export type Requests = Value[];

/** What became of one request: done, a conflict as operation and reason, rows, or a fault. */
export type Reply = typeof DONE | string | readonly Row[] | FaultReply;

export const DONE = 0;

export interface FaultReply {
  readonly fault: string;
  readonly maybe: boolean;
}

/** A number alone says that so many requests are done. */
export type Replies = number | readonly Reply[];

/** First message of the thread. */
export type Opened =
  | { readonly opened: true; readonly secret: Uint8Array }
  | { readonly opened: false; readonly setup: boolean; readonly message: string };

export interface WorkerInput {
  readonly path: string;
  readonly key: Uint8Array | undefined;
  /** Set where the thread is started anew: the file must exist and be the same store. */
  readonly expectSecret: Uint8Array | undefined;
}
