import { ARITY, lowerOperation, OPCODES, type Value } from './lower.ts';
import { type Operation, StoreFault } from './port.ts';
import { rowKey, SEALED } from './queries.ts';
import type { Sealer } from './seal.ts';

/** Which values of an operation stand in sealed columns, and which of its values make the key of the row. */
interface SealedValue {
  readonly at: number;
  readonly column: string;
  readonly key: readonly number[];
  /** One character per byte, as lower.ts lays bodies out. */
  readonly bytes?: boolean;
}

const SEALED_VALUES: Readonly<Record<number, readonly SealedValue[]>> = {
  [OPCODES.append_entry]: [{ at: 10, column: SEALED.undoArguments, key: [0, 1] }],
  [OPCODES.report_step]: [{ at: 6, column: SEALED.undoArguments, key: [0, 1] }],
  [OPCODES.watch]: [
    { at: 3, column: SEALED.watchedArguments, key: [0, 1, 2] },
    { at: 4, column: SEALED.watchedResult, key: [0, 1, 2] },
  ],
  [OPCODES.claim]: [
    { at: 23, column: SEALED.answerBody, key: [0], bytes: true },
    { at: 24, column: SEALED.request, key: [0] },
  ],
  [OPCODES.move_claim]: [{ at: 9, column: SEALED.answerBody, key: [0], bytes: true }],
  [OPCODES.retake_claim]: [{ at: 5, column: SEALED.request, key: [0] }],
  [OPCODES.put_confirmation]: [{ at: 16, column: SEALED.display, key: [0] }],
  [OPCODES.put_undo]: [{ at: 5, column: SEALED.undo, key: [0, 1, 2] }],
};

/** One commit on its way to `toolgate_commit`. */
export interface EncodedCommit {
  /** JSON without its brackets, so that a group is a join of its commits. */
  readonly values: string;
  /** What it shares with other sessions, locked before all else: buckets, and who opens a session. */
  readonly shared: readonly string[];
  /** Links whose holds it ends. */
  readonly links: readonly string[];
}

/**
 * One commit as `toolgate_commit` reads it.
 *
 * @throws StoreFault where a text holds U+0000, which PostgreSQL cannot store; the rest of a group is not to fail for it.
 */
export function encodeCommit(operations: readonly Operation[], sealer: Sealer | undefined): EncodedCommit {
  const shared: string[] = [];
  const links: string[] = [];
  const values: Value[] = [0];
  for (const operation of operations) {
    const at = values.push(0) - 1;
    lowerOperation(operation, values);
    if (operation.op === 'hold') shared.push(operation.bucket);
    else if (operation.op === 'settle_holds' || operation.op === 'release_holds') links.push(operation.link);
    else if (operation.op === 'open_session') shared.push(`${operation.session.issuer} ${operation.session.caller}`);
    const code = Number(values[at + 1]);
    values[at] = 1 + (ARITY[code] ?? 0);
    for (const { at: index, column, key, bytes } of SEALED_VALUES[code] ?? []) {
      const value = values[at + 2 + index];
      if (typeof value !== 'string') continue;
      const plain = Buffer.from(value, bytes === true ? 'latin1' : 'utf8');
      const parts = key.map((part) => values[at + 2 + part]);
      const stored = sealer === undefined ? plain : sealer.seal(column, rowKey(...parts), plain);
      values[at + 2 + index] = stored.toString('base64');
    }
  }
  values[0] = values.length - 1;
  const json = JSON.stringify(values);
  if (json.includes('\\u0000') && values.some((value) => typeof value === 'string' && value.includes('\0'))) {
    throw new StoreFault('PostgreSQL cannot store a text that holds U+0000');
  }
  return { values: json.slice(1, -1), shared, links };
}

/** What decides on which connection a commit goes: commits of one session keep their order. */
export function affinityOf(operations: readonly Operation[]): string {
  for (const operation of operations) {
    if ('sid' in operation) return operation.sid;
    if (operation.op === 'open_session') return operation.session.sid;
    if (operation.op === 'claim') return operation.claim.sid;
    if (operation.op === 'touch_run') return operation.run.sid;
    if (operation.op === 'put_confirmation') return operation.confirmation.sid;
  }
  for (const operation of operations) {
    if ('link' in operation) return operation.link;
    if ('replica' in operation) return operation.replica;
    if ('run' in operation && typeof operation.run === 'string') return operation.run;
  }
  return '';
}
