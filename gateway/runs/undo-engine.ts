import { parseJson } from '../../receipts/json.ts';
import type { JsonObject } from '../../receipts/json-value.ts';
import { drain, resend } from '../enforce/resend.ts';
import { readBody } from '../enforce/step-facts.ts';
import { enforce } from '../enforce.ts';
import type { CallOutcome, EnforceAnswer } from '../exchange.ts';
import type { Gateway } from '../gateway.ts';
import type { ClaimRecord, RunRecord, SessionRecord, StepRecord, UndoRecord } from '../store/port.ts';
import type { CallSpan } from '../tracing/span.ts';
import { boundArguments, cannotSend, type LeftStep, needsWord } from './fail-run.ts';
import { knownOutcome } from './known-outcome.ts';
import { again, done, moveRun, noteUndo, person, type Tried, waiting } from './undo-notes.ts';

const IDLE_MS = 500;
/** Runs that are undone side by side. One run is undone by one replica at a time, step by step. */
const MOST_RUNS = 8;

/**
 * Undoes failed runs: strictly last step first, each undo bound to its step and sent with its own stable key, stopped at
 * the first that stays refused. Work is taken by lease, so that any replica goes on where another ended.
 */
export class UndoEngine {
  readonly #gateway: Gateway;
  readonly #atWork = new Set<Promise<void>>();
  #running: Promise<void> = Promise.resolve();

  constructor(gateway: Gateway) {
    this.#gateway = gateway;
  }

  /** Begins to look for work, until the gateway stops. */
  start(): void {
    this.#running = this.#loop();
  }

  /** Resolves when the undos that are under way have ended. The gateway is stopping by then. */
  async stop(): Promise<void> {
    this.#gateway.undoWork.ring();
    await this.#running;
    await Promise.all(this.#atWork);
  }

  async #loop(): Promise<void> {
    const { stopping, log, undoWork } = this.#gateway;
    while (!stopping.aborted) {
      let took = false;
      try {
        took = this.#atWork.size < MOST_RUNS && (await this.#take());
      } catch (error) {
        log.error({ err: error }, 'runs that failed cannot be looked for now');
      }
      if (!took) await undoWork.wait(IDLE_MS);
    }
  }

  async #take(): Promise<boolean> {
    const { store, replica, leaseMs, log, undoWork } = this.#gateway;
    const now = this.#gateway.now();
    const run = await store.takeUndoWork(replica, now, now + leaseMs);
    if (run === undefined) return false;
    const work = undoAndGiveBack(this.#gateway, run)
      .catch((error: unknown) => log.error({ err: error, run: run.run }, 'the undoing of a run goes on later'))
      .finally(() => {
        this.#atWork.delete(work);
        undoWork.ring();
      });
    this.#atWork.add(work);
    return true;
  }
}

async function undoAndGiveBack(gateway: Gateway, run: RunRecord): Promise<void> {
  try {
    await undoRun(gateway, run);
  } finally {
    // Given back at once, so that the next row is not waited for until the lease ends.
    const record = await gateway.store.findRun(run.caller, run.run);
    const isMine = record?.owner === gateway.replica && (record.state === 'failed' || record.state === 'undoing');
    if (isMine) await giveBack(gateway, record);
  }
}

async function giveBack(gateway: Gateway, record: RunRecord): Promise<void> {
  const given = { ...record, owner: gateway.replica, leaseUntilMs: 0, updatedAtMs: gateway.now() };
  await gateway.commit([{ op: 'touch_run', run: given, from: [record.state] }]);
}

/** Goes through a run's rows, highest step first, until one must wait; ends the run when none is left. */
async function undoRun(gateway: Gateway, run: RunRecord): Promise<void> {
  for (;;) {
    const rows = await gateway.store.listUndos(run.caller, run.run);
    const next = rows.find(({ state }) => state !== 'compensated');
    if (next === undefined) return closeRun(gateway, run);
    if (next.state === 'needs_person' || next.state === 'undo_unknown') {
      return moveRun(gateway, run, 'needs_person', `step ${next.step}: ${next.why ?? 'needs a person'}`);
    }
    if (next.dueAtMs > gateway.now() || gateway.stopping.aborted) return;
    const tried = await tryUndo(gateway, run, next);
    await noteUndo(gateway, run, next, tried);
    if (tried.kind !== 'done') return;
  }
}

async function tryUndo(gateway: Gateway, run: RunRecord, row: UndoRecord): Promise<Tried> {
  const session = await gateway.store.findSessionById(run.sid);
  const [step] = await gateway.store.findSteps(run.sid, [row.step]);
  if (session === undefined || step === undefined) return person('the step is no longer stored');
  const tool = gateway.loaded.catalogue.tools.get(row.tool);
  if (tool === undefined) return person('the tool of the step is no longer in the catalogue');
  const outcome = await knownOutcome(gateway, step);
  // Undone by somebody else, or never done.
  if (outcome === 'compensated' || outcome === 'failed') return done();
  if (outcome === undefined) return waiting('the step is still on its way');
  const bound = boundArguments(step, tool);
  const why = cannotSend(tool, outcome, bound);
  if (why !== undefined || bound === undefined) return person(why ?? 'the undo cannot be bound');
  if (!step.undoAllowed) {
    const send = (span?: CallSpan): Promise<Tried> =>
      sendUndo(gateway, run, row, session, step, bound, span).then(readAnswer);
    return gateway.tracing === undefined ? send() : gateway.tracing.own('undo', send);
  }
  const earlier = await lastSend(gateway, session, row);
  return earlier === undefined ? waiting('an undo of the step is still on its way') : sendAgain(gateway, earlier);
}

/** The claim of the newest undo that was allowed of a step. */
async function lastSend(gateway: Gateway, session: SessionRecord, row: UndoRecord): Promise<ClaimRecord | undefined> {
  for (const entry of [...(await gateway.store.readEntries(session.sid))].reverse()) {
    const body = readBody(entry);
    if (body.undoes === row.step && body.decision === 'allow') return gateway.store.findClaim({ link: entry.link });
  }
  return undefined;
}

/** An earlier send whose outcome is unknown goes again under the same claim, never beside it. */
async function sendAgain(gateway: Gateway, claim: ClaimRecord): Promise<Tried> {
  if (claim.state !== 'outcome_unknown') return waiting('an undo of the step is still on its way');
  const outcome = claim.runBy === 'host' ? 'unsafe' : await resend(gateway, claim);
  return outcome === 'moved' ? waiting('the undo is being sent by another replica') : readOutcome(outcome);
}

function sendUndo(
  gateway: Gateway,
  run: RunRecord,
  row: UndoRecord,
  session: SessionRecord,
  step: StepRecord,
  bound: string,
  span: CallSpan | undefined,
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
    ...(span === undefined ? {} : { span }),
  });
}

async function readAnswer(answer: EnforceAnswer): Promise<Tried> {
  switch (answer.kind) {
    case 'forwarded': {
      drain(answer);
      const outcome = await answer.outcome;
      const sent = answer.answer;
      // Nothing reached the backend: the same undo may go again as if it had never been tried.
      if (outcome === 'failed' && sent.kind === 'not_sent') return again('undo_pending', sent.why);
      if (outcome === 'failed')
        return person(`the backend refused the undo (${sent.kind === 'answer' ? sent.status : sent.code})`);
      return readOutcome(outcome);
    }
    case 'decided':
      return answer.check.decision === 'confirm'
        ? person(`the undo needs a person: ${answer.check.reason}`)
        : person(`the undo was refused: ${answer.check.reason}`);
    case 'problem':
      return again('undo_pending', answer.problem.detail);
    default:
      return person('the undo was answered in an unexpected way');
  }
}

function readOutcome(outcome: CallOutcome | 'unsafe'): Tried {
  switch (outcome) {
    case 'ran':
      return done();
    case 'failed':
      return person('the backend refused the undo');
    case 'unsafe': {
      const why = 'it is not known whether the undo was done, and its backend is not known to take a key';
      return { kind: 'person', state: 'undo_unknown', why };
    }
    case 'outcome_unknown':
      return again('undoing', 'it is not known whether the undo was done');
  }
}

/** Every undo is done: the run is compensated, unless a write of it stays of which nobody said that it may. */
async function closeRun(gateway: Gateway, run: RunRecord): Promise<void> {
  const left: readonly LeftStep[] = run.left === undefined ? [] : (JSON.parse(run.left) as LeftStep[]);
  const unsaid = left.find(needsWord);
  if (unsaid === undefined) await moveRun(gateway, run, 'compensated', run.why);
  else await moveRun(gateway, run, 'needs_person', `step ${unsaid.step}: ${unsaid.why}`);
}
