import { setTimeout as pause } from 'node:timers/promises';
import { parseJson } from '../../receipts/json.ts';
import type { JsonObject } from '../../receipts/json-value.ts';
import { resend } from '../enforce/resend.ts';
import { outcomeOf, readBody } from '../enforce/step-facts.ts';
import { enforce } from '../enforce.ts';
import type { CallOutcome, EnforceAnswer } from '../exchange.ts';
import type { Gateway } from '../gateway.ts';
import type { RunRecord, SessionRecord, StepRecord, UndoRecord, UndoState } from '../store/port.ts';
import { boundArguments, cannotSend, type LeftStep, NO_UNDO } from './fail-run.ts';

const LEASE_MS = 30_000;
const IDLE_MS = 500;
const FIRST_BACKOFF_MS = 500;
const LONGEST_BACKOFF_MS = 60_000;
/** Unclear failures of one undo before a person must look. */
const MAX_ATTEMPTS = 12;

/** What one try at an undo came to. */
type Tried =
  | { readonly kind: 'done' }
  /** Tried again later: what went wrong may pass. */
  | {
      readonly kind: 'again';
      readonly state: 'undo_pending' | 'undoing';
      readonly why: string;
      readonly counts: boolean;
    }
  | { readonly kind: 'person'; readonly state: 'needs_person' | 'undo_unknown'; readonly why: string };

/**
 * Undoes failed runs: strictly last step first, each undo bound to its step and sent with its own stable key, stopped at
 * the first that stays refused. Work is taken by lease, so that any replica goes on where another ended.
 */
export class UndoEngine {
  readonly #gateway: Gateway;
  #wake: AbortController = new AbortController();
  #running: Promise<void> = Promise.resolve();

  constructor(gateway: Gateway) {
    this.#gateway = gateway;
  }

  /** Begins to look for work, until the gateway stops. */
  start(): void {
    this.#running = this.#loop();
  }

  /** There may be work now. */
  poke(): void {
    this.#wake.abort();
  }

  /** Resolves when the undo that is under way has ended. */
  async stop(): Promise<void> {
    this.poke();
    await this.#running;
  }

  async #loop(): Promise<void> {
    const { stopping, log } = this.#gateway;
    while (!stopping.aborted) {
      let worked = false;
      try {
        worked = await this.#work();
      } catch (error) {
        log.error({ err: error }, 'the undoing of a run was interrupted; it goes on later');
      }
      if (!worked && !stopping.aborted) await this.#sleep();
    }
  }

  async #sleep(): Promise<void> {
    const wake = new AbortController();
    this.#wake = wake;
    await pause(IDLE_MS, undefined, { signal: wake.signal, ref: false }).catch(() => undefined);
  }

  async #work(): Promise<boolean> {
    const { store, replica } = this.#gateway;
    const now = this.#gateway.now();
    const run = await store.takeUndoWork(replica, now, now + LEASE_MS);
    if (run === undefined) return false;
    try {
      await undoRun(this.#gateway, run);
    } finally {
      // Given back at once, so that the next row is not waited for until the lease ends.
      const record = await store.findRun(run.caller, run.run);
      if (record?.owner === replica) await giveBack(this.#gateway, record);
    }
    return true;
  }
}

async function giveBack(gateway: Gateway, record: RunRecord): Promise<void> {
  const { owner: _owner, leaseUntilMs: _lease, ...free } = record;
  const given = { ...free, owner: gateway.replica, leaseUntilMs: 0 };
  await gateway.commit([{ op: 'touch_run', run: given, from: [record.state] }]);
}

/** Goes through a run's rows, highest step first, until one must wait; ends the run when none is left. */
async function undoRun(gateway: Gateway, run: RunRecord): Promise<void> {
  for (;;) {
    const rows = await gateway.store.listUndos(run.caller, run.run);
    const next = rows.find(({ state }) => state !== 'compensated');
    if (next === undefined) return closeRun(gateway, run);
    if (next.state === 'needs_person' || next.state === 'undo_unknown') return needPerson(gateway, run, next);
    if (next.dueAtMs > gateway.now() || gateway.stopping.aborted) return;
    const tried = await tryUndo(gateway, run, next);
    await note(gateway, run, next, tried);
    if (tried.kind !== 'done') return;
  }
}

async function tryUndo(gateway: Gateway, run: RunRecord, row: UndoRecord): Promise<Tried> {
  const session = await gateway.store.findSessionById(run.sid);
  const [step] = await gateway.store.findSteps(run.sid, [row.step]);
  if (session === undefined || step === undefined) return person('the step is no longer stored');
  const tool = gateway.loaded.catalogue.tools.get(row.tool);
  if (tool === undefined) return person('the tool of the step is no longer in the catalogue');
  const outcome = step.seen ? outcomeOf(step.outcome) : undefined;
  if (outcome === 'compensated') return { kind: 'done' };
  if (outcome === 'failed') return { kind: 'done' };
  if (outcome === undefined) {
    return { kind: 'again', state: 'undo_pending', why: 'the step is still on its way', counts: false };
  }
  const bound = boundArguments(step, tool);
  const why = cannotSend(tool, outcome, bound);
  if (why !== undefined || bound === undefined) return person(why ?? 'the undo cannot be bound');
  const earlier = await unknownSend(gateway, step, session, row);
  if (earlier !== undefined) return readOutcome(await resend(gateway, earlier));
  return readAnswer(await sendUndo(gateway, run, row, session, step, bound));
}

/** An earlier send of this undo whose outcome is unknown: it is sent again under the same claim, never beside it. */
async function unknownSend(
  gateway: Gateway,
  step: StepRecord,
  session: SessionRecord,
  row: UndoRecord,
): Promise<Parameters<typeof resend>[1] | undefined> {
  if (!step.undoAllowed) return undefined;
  for (const entry of [...(await gateway.store.readEntries(session.sid))].reverse()) {
    const body = readBody(entry);
    if (body.undoes !== row.step || body.decision !== 'allow') continue;
    return gateway.store.findClaim({ link: entry.link });
  }
  return undefined;
}

function sendUndo(
  gateway: Gateway,
  run: RunRecord,
  row: UndoRecord,
  session: SessionRecord,
  step: StepRecord,
  bound: string,
): Promise<EnforceAnswer> {
  const agent = readBody(step).agent;
  return enforce(gateway, {
    caller: { name: run.caller, host: true, agents: new Set([agent]) },
    tool: row.undoTool,
    arguments: parseJson(bound) as JsonObject,
    members: {
      session: session.session,
      agent,
      run: run.run,
      undoes: row.step,
      origins: {},
      turns: [],
      labels: {},
      context: {},
    },
    undoRound: row.round,
    byReceipt: false,
    purpose: 'forward',
    via: 'engine',
    wantEntry: false,
    passedHeaders: [],
  });
}

async function readAnswer(answer: EnforceAnswer): Promise<Tried> {
  switch (answer.kind) {
    case 'forwarded': {
      const outcome = await answer.outcome;
      const sent = answer.answer;
      // Nothing reached the backend: the same undo may go again as if it had never been tried.
      if (outcome === 'failed' && sent.kind === 'not_sent') return again(sent.why);
      if (outcome === 'failed')
        return person(`the backend refused the undo (${sent.kind === 'answer' ? sent.status : sent.code})`);
      return readOutcome(outcome);
    }
    case 'decided':
      return answer.check.decision === 'confirm'
        ? person(`the undo needs a person: ${answer.check.reason}`)
        : person(`the undo was refused: ${answer.check.reason}`);
    case 'problem':
      return again(answer.problem.detail);
    default:
      return person('the undo was answered in an unexpected way');
  }
}

function readOutcome(outcome: CallOutcome | 'unsafe'): Tried {
  switch (outcome) {
    case 'ran':
      return { kind: 'done' };
    case 'failed':
      return person('the backend refused the undo');
    case 'unsafe':
      return {
        kind: 'person',
        state: 'undo_unknown',
        why: 'it is not known whether the undo was done, and its backend is not known to take a key',
      };
    case 'outcome_unknown':
      return { kind: 'again', state: 'undoing', why: 'it is not known whether the undo was done', counts: true };
  }
}

function person(why: string): Tried {
  return { kind: 'person', state: 'needs_person', why };
}

function again(why: string): Tried {
  return { kind: 'again', state: 'undo_pending', why, counts: true };
}

/** Stores what a try came to, with its audit line. */
async function note(gateway: Gateway, run: RunRecord, row: UndoRecord, tried: Tried): Promise<void> {
  const attempts = row.attempts + (tried.kind === 'again' && !tried.counts ? 0 : 1);
  const tired = tried.kind === 'again' && attempts >= MAX_ATTEMPTS;
  const state: UndoState = tried.kind === 'done' ? 'compensated' : tired ? 'needs_person' : tried.state;
  const why = tried.kind === 'done' ? undefined : tried.why;
  const backoffMs = Math.min(FIRST_BACKOFF_MS * 2 ** row.attempts, LONGEST_BACKOFF_MS);
  const dueAtMs = gateway.now() + (tried.kind === 'again' ? Math.round(backoffMs * (0.75 + Math.random() / 2)) : 0);
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
  await gateway.commit([
    {
      op: 'move_undo',
      caller,
      run: name,
      step,
      from: ['undo_pending', 'undoing'],
      to: state,
      attempts,
      dueAtMs,
      ...said,
    },
    { op: 'outbox', replica: gateway.audit.replica, n: line.n, line: line.line },
  ]);
  await gateway.audit.write(line);
}

async function needPerson(gateway: Gateway, run: RunRecord, row: UndoRecord): Promise<void> {
  await moveRun(gateway, run, 'needs_person', `step ${row.step}: ${row.why ?? 'needs a person'}`);
}

/** Every undo is done: the run is compensated, unless a write of it stays of which nobody said that it may. */
async function closeRun(gateway: Gateway, run: RunRecord): Promise<void> {
  const left: readonly LeftStep[] = run.left === undefined ? [] : (JSON.parse(run.left) as LeftStep[]);
  const unsaid = left.find(({ why }) => why === NO_UNDO);
  if (unsaid === undefined) await moveRun(gateway, run, 'compensated', undefined);
  else await moveRun(gateway, run, 'needs_person', `step ${unsaid.step}: ${unsaid.why}`);
}

async function moveRun(
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
  const moved: RunRecord = {
    ...run,
    state,
    ...said,
    owner: gateway.replica,
    leaseUntilMs: 0,
    updatedAtMs: gateway.now(),
  };
  const result = await gateway.commit([
    { op: 'touch_run', run: moved, from: ['failed', 'undoing', 'needs_person'] },
    { op: 'outbox', replica: gateway.audit.replica, n: line.n, line: line.line },
  ]);
  if (!result.ok) {
    gateway.audit.abandon(line);
    return;
  }
  await gateway.audit.write(line);
}
