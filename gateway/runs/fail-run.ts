import { endRunInView } from '../../policy/session.ts';
import type { Tool } from '../../policy/tool.ts';
import type { EntryBody, Outcome } from '../../receipts/history.ts';
import { parseJson } from '../../receipts/json.ts';
import type { JsonObject, JsonValue } from '../../receipts/json-value.ts';
import { outcomeOf, readBody } from '../enforce/step-facts.ts';
import { endHolds } from '../enforce/usage.ts';
import type { Gateway } from '../gateway.ts';
import { applyReports, type StepReport } from '../session-reports.ts';
import type { Session } from '../sessions.ts';
import type { ClaimRecord, Operation, RunRecord, SessionKey, StepRecord, UndoRecord } from '../store/port.ts';

/** A write that stays done when its run is undone, as a run's report names it. */
export interface LeftStep {
  readonly step: number;
  readonly tool: string;
  readonly why: string;
}

/** What failing a run would undo, what it leaves, and whether a person must look. */
export interface UndoPlan {
  readonly undos: readonly UndoRecord[];
  readonly left: readonly LeftStep[];
}

const MAX_ATTEMPTS = 8;

/** Far enough for an undo that the gateway does not send: its caller carries the history and sends it itself. */
const NEVER_MS = 8_640_000_000_000_000;

/**
 * Marks a run failed: in one commit it takes no more calls, and every write of it that ran or may have run gets an undo
 * row (docs/execution.md, "Runs and undo"). Does nothing to a run that has ended. Resolves with whether it failed now.
 */
export async function failRun(gateway: Gateway, key: SessionKey, run: string, why: string): Promise<boolean> {
  return gateway.sessions.inLine(key, async () => {
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      const session = await gateway.sessions.find(key);
      const record = await gateway.store.findRun(key.caller, run);
      if (session === undefined || record === undefined || record.sid !== session.record.sid) return false;
      if (record.state !== 'open') return false;
      if (await failOnce(gateway, session, record, why)) return true;
      gateway.sessions.forget(key);
    }
    throw new Error(`the run ${run} could not be marked failed: other calls of its session kept coming first`);
  });
}

async function failOnce(gateway: Gateway, session: Session, run: RunRecord, why: string): Promise<boolean> {
  const now = gateway.now();
  const steps = await gateway.store.readEntries(session.record.sid);
  const before = session.record;
  const released = await releasedClaims(gateway, run.run, steps);
  const change = applyReports(session, released.map(reportOf(gateway)), (view) => endRunInView(view, run.run));
  const letGo = new Set(released.map(({ step }) => step.step));
  const plan = planUndos(
    gateway,
    session,
    run,
    steps.filter(({ step }) => !letGo.has(step)),
    now,
  );
  const line = gateway.audit.prepare({
    event: 'run',
    act: 'fail',
    why,
    run: run.run,
    caller: run.caller,
    agent: run.agent,
    session: before.session,
  });
  const failed: RunRecord = {
    ...run,
    state:
      plan.undos.length === 0 && plan.left.every(({ why: reason }) => reason !== NO_UNDO) ? 'compensated' : 'failed',
    why,
    left: JSON.stringify(plan.left),
    updatedAtMs: now,
  };
  const operations: Operation[] = [
    ...change.operations,
    { op: 'touch_run', run: failed, from: ['open'] },
    ...plan.undos.map((undo) => ({ op: 'put_undo', undo }) as const),
    ...released.flatMap((released) => releaseOf(gateway, released.claim)),
    { op: 'outbox', replica: gateway.audit.replica, n: line.n, line: line.line },
  ];
  const result = await gateway.commit(operations);
  if (!result.ok) {
    gateway.audit.abandon(line);
    return false;
  }
  gateway.sessions.keep(change.record, session);
  await gateway.audit.write(line);
  return true;
}

/** Why a write is named among what is left. */
export const NO_UNDO = 'its tool says nothing about undoing it';

/** What undoing a run comes to, from its entries; the engine goes through the rows highest step first. */
export function planUndos(
  gateway: Gateway,
  session: Session,
  run: RunRecord,
  steps: readonly StepRecord[],
  nowMs: number,
): UndoPlan {
  const undos: UndoRecord[] = [];
  const left: LeftStep[] = [];
  for (const step of steps) {
    const body = readBody(step);
    if (body.run !== run.run || body.decision !== 'allow' || body.undoes !== undefined) continue;
    const tool = gateway.loaded.catalogue.tools.get(body.tool);
    const outcome = step.seen ? outcomeOf(step.outcome) : undefined;
    if (tool?.writes === false || outcome === 'failed' || outcome === 'compensated') continue;
    const stays = whyLeft(tool);
    if (stays !== undefined) left.push({ step: step.step, tool: body.tool, why: stays });
    else if (tool !== undefined) undos.push(undoRow(session, run, step, body, tool, outcome, nowMs));
  }
  return { undos, left };
}

function whyLeft(tool: Tool | undefined): string | undefined {
  if (tool === undefined) return 'its tool is no longer in the catalogue';
  if (tool.irreversible) return 'irreversible';
  if (tool.undo === 'none') return 'undo: none';
  return tool.undo === undefined ? NO_UNDO : undefined;
}

function undoRow(
  session: Session,
  run: RunRecord,
  step: StepRecord,
  body: EntryBody,
  tool: Tool,
  outcome: Outcome | undefined,
  nowMs: number,
): UndoRecord {
  const undo = tool.undo === undefined || tool.undo === 'none' ? undefined : tool.undo;
  const bound = boundArguments(step, tool);
  const why = cannotSend(tool, outcome, bound);
  return {
    caller: run.caller,
    run: run.run,
    step: step.step,
    tool: body.tool,
    undoTool: undo?.tool ?? '',
    state: why === undefined ? 'undo_pending' : 'needs_person',
    round: 1,
    attempts: 0,
    dueAtMs: session.record.mode === 'carried' ? NEVER_MS : nowMs,
    ...(bound === undefined ? {} : { arguments: bound }),
    ...(why === undefined ? {} : { why }),
  };
}

/** The bound arguments, canonical, where every one of them is there. */
export function boundArguments(step: StepRecord, tool: Tool): string | undefined {
  if (tool.undo === undefined || tool.undo === 'none' || step.undoArguments === undefined) return undefined;
  const bound: JsonValue = parseJson(step.undoArguments);
  return isObject(bound) && Object.keys(tool.undo.with).every((name) => Object.hasOwn(bound, name))
    ? step.undoArguments
    : undefined;
}

/** Why the engine must leave a step to a person. A step that is still on its way is looked at again when its turn comes. */
export function cannotSend(tool: Tool, outcome: Outcome | undefined, bound: string | undefined): string | undefined {
  if (tool.undo === undefined || tool.undo === 'none') return NO_UNDO;
  if (outcome === 'outcome_unknown') {
    const argumentsAlone = Object.values(tool.undo.with).every(({ from }) => from === 'arguments');
    if (!tool.undo.safeIfNothingHappened || !argumentsAlone) return 'it is not known whether the step was done';
  }
  if (outcome === 'ran' && bound === undefined) return 'a value that the undo binds was not in the answer of the step';
  return undefined;
}

interface Released {
  readonly step: StepRecord;
  readonly claim: ClaimRecord;
}

/** Claims of the run that nothing was sent for yet: they are let go. What is being sent is waited for. */
async function releasedClaims(
  gateway: Gateway,
  run: string,
  steps: readonly StepRecord[],
): Promise<readonly Released[]> {
  const released: Released[] = [];
  for (const step of steps) {
    if (step.outcome !== undefined || !step.forwarded || readBody(step).run !== run) continue;
    const claim = await gateway.store.findClaim({ link: step.link });
    if (claim?.state === 'claimed') released.push({ step, claim });
  }
  return released;
}

function reportOf(gateway: Gateway): (released: Released) => StepReport {
  return ({ step }) => {
    const body = readBody(step);
    const tool = gateway.loaded.catalogue.tools.get(body.tool);
    const run = body.run === undefined ? {} : { run: body.run };
    return { step: step.step, tool, before: undefined, after: 'failed', believed: true, ...run };
  };
}

function releaseOf(gateway: Gateway, { link, fence, tool }: ClaimRecord): readonly Operation[] {
  const at = { atMs: gateway.now(), why: 'run_failed' } as const;
  return [
    { op: 'move_claim', link, fence, from: ['claimed'], to: 'failed', ...at },
    ...endHolds(gateway.loaded, tool, link, 'failed'),
  ];
}

function isObject(value: JsonValue): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
