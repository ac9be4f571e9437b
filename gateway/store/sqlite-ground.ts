import type { Database } from 'better-sqlite3';
import type { Value } from './lower.ts';
import type { Conflict } from './port.ts';
import type { Sealer } from './seal.ts';

/** Does the operation whose values start at `at`; what it returns is why it cannot. Looks before it writes. */
export type Handler = (values: readonly Value[], at: number) => Conflict['conflict'] | undefined;

/** What the handlers stand on: one open database, and the seal of its values where it has one. */
export interface Ground {
  readonly db: Database;
  readonly sealer: Sealer | undefined;
  /** Called where anything was taken back or swept: what is remembered of the rows may not hold any more. */
  readonly forget: (() => void)[];
}

/** A value as it is stored: sealed where the store has a key. */
export function sealText(
  ground: Ground,
  column: string,
  key: string,
  value: Value | undefined,
): string | Uint8Array | null {
  if (typeof value !== 'string') return null;
  return ground.sealer === undefined ? value : ground.sealer.seal(column, key, Buffer.from(value));
}
