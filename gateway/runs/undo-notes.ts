import type { Gateway } from '../gateway.ts';
import type { Operation, RunRecord, UndoRecord, UndoState } from '../store/port.ts';

/** What one try at an undo came to. */
export type Tried =
  | { readonly kind: 'done' }
  /** Tried again later: what went wrong may pass. What is only waited for does not count as a try. */
  | {
      readonly kind: 'again';
      readonly state: 'undo_pending' | 'undoing';
      readonly why: string;
      readonly counts: boolean;
    }
  | { readonly kind: 'person'; readonly state: 'needs_person' | 'undo_unknown'; readonly why: string };

export function done(): Tried {
  return { kind: 'done' };
}

export function again(state: 'undo_pending' | 'undoing', why: string): Tried {
  return { kind: 'again', state, why, counts: true };
}

export function waiting(why: string): Tried {
  return { kind: 'again', state: 'undo_pending', why, counts: false };
}

export function person(why: string): Tried {
  return { kind: 'person', state: 'needs_person', why };
}

const FIRST_BACKOFF_MS = 500;
const LONGEST_BACKOFF_MS = 60_000;
const WAIT_MS = 3_000;
/** Unclear failures of one undo before a person must look. */
const MAX_ATTEMPTS = 12;

/** What a row becomes by a try. */
interface Noted {
  readonly state: UndoState;
  readonly attempts: number;
  readonly dueAtMs?: number;
  readonly why?: string;
}

function notedOf(gateway: Gateway, row: UndoRecord, tried: Tried): Noted {
  const attempts = row.attempts + 1;
  if (tried.kind === 'done') return { state: 'compensated', attempts };
  const { why } = tried;
  if (tried.kind === 'person') return { state: tried.state, attempts, why };
  if (attempts >= MAX_ATTEMPTS) {
    return { state: tried.state === 'undoing' ? 'undo_unknown' : 'needs_person', attempts, why };
  }
  const backoffMs = Math.min(FIRST_BACKOFF_MS * 2 ** row.attempts, LONGEST_BACKOFF_MS);
  return {
    state: tried.state,
    attempts,
    why,
    dueAtMs: gateway.now() + Math.round(backoffMs * (0.75 + Math.random() / 2)),
  };
}

/**
 * Stores what a try came to, with its audit line and what it makes of the run. Where the row has moved meanwhile (the
 * outcome of the undo closed it, or a person) there is nothing to note.
 */
export async function noteUndo(gateway: Gateway, run: RunRecord, row: UndoRecord, tried: Tried): Promise<void> {
  if (tried.kind === 'again' && !tried.counts) return wait(gateway, row);
  const noted = notedOf(gateway, row, tried);
  const { state, attempts, dueAtMs, why } = noted;
  const said = why === undefined ? {} : { why };
  const line = gateway.audit.prepare({
    event: 'undo',
    state,
    undo_tool: row.undoTool,
    round: row.round,
    attempts,
    tool: row.tool,
    caller: run.caller,
    run: run.run,
    step: row.step,
    ...said,
  });
  const { caller, run: name, step } = row;
  const due = dueAtMs === undefined ? {} : { dueAtMs };
  const result = await gateway.commit([
    {
      op: 'move_undo',
      caller,
      run: name,
      step,
      from: ['undo_pending', 'undoing'],
      to: state,
      attempts,
      ...due,
      ...said,
    },
    ...runBy(gateway, run, step, noted),
    { op: 'outbox', replica: gateway.audit.replica, n: line.n, line: line.line },
  ]);
  if (result.ok) await gateway.audit.write(line);
  else gateway.audit.abandon(line);
}

/** What a row waits for rings when it comes; this is for what another replica brings. */
async function wait(gateway: Gateway, row: UndoRecord): Promise<void> {
  const { caller, run, step, state, why } = row;
  const dueAtMs = gateway.now() + WAIT_MS;
  const kept = why === undefined ? {} : { why };
  await gateway.commit([{ op: 'move_undo', caller, run, step, from: [state], to: state, dueAtMs, ...kept }]);
}

/** A row that needs a person stops its run in the same commit; any other says that the run is being undone. */
function runBy(gateway: Gateway, run: RunRecord, step: number, { state, why }: Noted): readonly Operation[] {
  const { replica: owner } = gateway;
  const at = { owner, updatedAtMs: gateway.now() };
  const from = ['failed', 'undoing'] as const;
  if (state === 'needs_person' || state === 'undo_unknown') {
    const stopped = { ...run, ...at, state: 'needs_person', why: `step ${step}: ${why}`, leaseUntilMs: 0 } as const;
    return [{ op: 'touch_run', run: stopped, from }];
  }
  const leaseUntilMs = at.updatedAtMs + gateway.leaseMs;
  return [{ op: 'touch_run', run: { ...run, ...at, state: 'undoing', leaseUntilMs }, from }];
}

/** Ends the undoing of a run. Does nothing where another replica has it by now. */
export async function moveRun(
  gateway: Gateway,
  run: RunRecord,
  state: 'compensated' | 'needs_person',
  why: string | undefined,
): Promise<void> {
  const said = why === undefined ? {} : { why };
  const line = gateway.audit.prepare({
    event: 'run',
    act: state,
    caller: run.caller,
    run: run.run,
    agent: run.agent,
    ...said,
  });
  const at = { owner: gateway.replica, leaseUntilMs: 0, updatedAtMs: gateway.now() };
  const result = await gateway.commit([
    { op: 'touch_run', run: { ...run, state, ...said, ...at }, from: ['failed', 'undoing'] },
    { op: 'outbox', replica: gateway.audit.replica, n: line.n, line: line.line },
  ]);
  if (result.ok) await gateway.audit.write(line);
  else gateway.audit.abandon(line);
}
