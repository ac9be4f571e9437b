import { CLAIM_COLUMNS, type Query, RUN_COLUMNS, SEALED_CLAIM } from './queries.ts';
import type { TaskName } from './store-reads.ts';

/** Rows of one table that a sweep deletes at a time. */
const SWEPT_ROWS = 500;

/**
 * Reads that take what they read. SKIP LOCKED: two replicas that ask at once get different rows, and neither waits.
 */
export const POSTGRES_TASKS: Readonly<Record<TaskName, Query>> = {
  takeLapsedClaims: {
    sql: `UPDATE claims SET owner = $1, fence = fence + 1, lease_until_ms = $3::bigint WHERE link IN (
      SELECT link FROM claims WHERE settled_at_ms IS NULL AND state IN ('claimed', 'sending')
      AND lease_until_ms < $2::bigint AND (run_by <> 'gateway' OR owner IS DISTINCT FROM $1) ORDER BY created_at_ms LIMIT $4 FOR UPDATE SKIP LOCKED) RETURNING ${CLAIM_COLUMNS}`,
    sealed: SEALED_CLAIM,
  },
  renewLeases: {
    sql: `WITH renewed AS (UPDATE claims SET lease_until_ms = $2::bigint WHERE settled_at_ms IS NULL AND owner = $1
        AND run_by = 'gateway' AND state IN ('claimed', 'sending'))
      UPDATE runs SET lease_until_ms = $2::bigint WHERE state IN ('failed', 'undoing') AND owner = $1 AND lease_until_ms > 0`,
  },
  takeUndoWork: {
    sql: `UPDATE runs SET owner = $1, lease_until_ms = $3::bigint WHERE (caller, run) = (
      SELECT caller, run FROM runs r WHERE state IN ('failed', 'undoing') AND (owner IS NULL OR lease_until_ms < $2::bigint)
      AND coalesce((SELECT u.state IN ('undo_pending', 'undoing') AND u.due_at_ms <= $2::bigint FROM undos u
        WHERE u.caller = r.caller AND u.run = r.run AND u.state <> 'compensated' ORDER BY u.step DESC LIMIT 1), true)
      ORDER BY updated_at_ms LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING ${RUN_COLUMNS}`,
  },
  sweep: { sql: `SELECT toolgate_sweep($1, $2, $3, ${SWEPT_ROWS})` },
};
