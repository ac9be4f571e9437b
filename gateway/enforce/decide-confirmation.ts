import type { Gateway } from '../gateway.ts';
import type { ConfirmationRecord } from '../store/port.ts';

/** What a person said of a confirmation. */
export interface PersonsDecision {
  readonly to: 'approved' | 'denied';
  /** Who decided, as the log and the record name them. */
  readonly approver: string;
  readonly note?: string;
  /** Milliseconds since 1970. */
  readonly atMs: number;
}

/**
 * Records what a person decided, with its line of the audit log in the same transaction. Resolves with false where the
 * confirmation was decided before; nothing is then changed or logged. Whether this person may decide it, and whether it
 * is still to be decided, is looked at by the caller.
 */
export async function decideConfirmation(
  { audit, commit }: Gateway,
  record: ConfirmationRecord,
  { to, approver, note, atMs }: PersonsDecision,
): Promise<boolean> {
  const { id, tool, agent, caller, session, step } = record;
  const act = to === 'approved' ? 'approve' : 'deny';
  const line = audit.prepare({
    event: 'approval',
    act,
    approver,
    confirmation: id,
    tool,
    agent,
    caller,
    session,
    step,
  });
  const moved = { op: 'move_confirmation', id, from: ['pending'], to, approver, atMs } as const;
  const result = await commit([
    note === undefined ? moved : { ...moved, note },
    { op: 'outbox', replica: audit.replica, n: line.n, line: line.line },
  ]);
  if (result.ok) await audit.write(line);
  else audit.abandon(line);
  return result.ok;
}
