import { endRunInView, type SessionView } from '../../policy/session.ts';
import type { Tool } from '../../policy/tool.ts';
import type { EntryBody, Outcome } from '../../receipts/history.ts';
import { parseJson } from '../../receipts/json.ts';
import { isObject, type JsonValue } from '../../receipts/json-value.ts';
import type { PreparedLine } from '../audit/line.ts';
import { outcomeOf, readBody } from '../enforce/step-facts.ts';
import { endHolds } from '../enforce/usage.ts';
import { faultPoint } from '../fault-points.ts';
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
interface UndoPlan {
  readonly undos: readonly UndoRecord[];
  readonly left: readonly LeftStep[];
}

const MAX_ATTEMPTS = 8;

/** Far enough for an undo that the gateway does not send: its caller carries the history and sends it itself. */
const NEVER_MS = 8_640_000_000_000_000;

/** What marking a run failed takes, for the commit of whoever does it; its audit line goes along. */
export interface Failure {
  readonly reports: readonly StepReport[];
  readonly alsoChange: (view: SessionView) => SessionView;
  readonly operations: readonly Operation[];
  readonly line: PreparedLine;
}

/**
 * Marks a run failed: in one commit it takes no more calls, and every write of it that ran or may have run gets an undo
 * row (docs/execution.md, "Runs and undo"). Does nothing to a run that has ended. Resolves with whether it failed now.
 */
export async function failRun(gateway: Gateway, key: SessionKey, run: string, why: string): Promise<boolean> {
  return gateway.sessions.inLine(key, async () => {
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      const session = await gateway.sessions.find(key);
      if (session === undefined) return false;
      const failure = await planFailure(gateway, session, run, why);
      if (failure === undefined) return false;
      const { reports, alsoChange, operations, line } = failure;
      const change = applyReports(session, reports, alsoChange);
      const committing = gateway.commit([
        ...change.operations,
        ...operations,
        { op: 'outbox', replica: gateway.audit.replica, n: line.n, line: line.line },
      ]);
      faultPoint('marking-run-failed');
      const result = await committing;
      if (result.ok) {
        gateway.sessions.keep(change.record, session);
        gateway.undoWork.ring();
        await gateway.audit.write(line);
        return true;
      }
      gateway.audit.abandon(line);
      gateway.sessions.forget(key);
    }
    throw new Error(`the run ${run} could not be marked failed: other calls of its session kept coming first`);
  });
}

/**
 * What failing a run takes now. `undefined` where the session has no open run of that name.
 * @param known Outcomes that the same commit stores.
 */
export async function planFailure(
  gateway: Gateway,
  session: Session,
  name: string,
  why: string,
  known: ReadonlyMap<number, Outcome> = new Map(),
): Promise<Failure | undefined> {
  const { sid, caller, session: sessionName } = session.record;
  const run = await gateway.store.findRun(caller, name);
  if (run === undefined || run.sid !== sid || run.state !== 'open') return undefined;
  const now = gateway.now();
  const steps = await gateway.store.readEntries(sid);
  const released = (await releasedClaims(gateway, name, steps)).filter(({ step }) => !known.has(step.step));
  const letGo = new Map(released.map(({ step }) => [step.step, 'failed' as const]));
  const plan = planUndos(gateway, session, run, steps, new Map<number, Outcome>([...known, ...letGo]), now);
  const line = gateway.audit.prepare({
    event: 'run',
    act: 'fail',
    why,
    run: name,
    caller,
    agent: run.agent,
    session: sessionName,
  });
  const failed: RunRecord = { ...run, ...stateOf(plan, why), left: JSON.stringify(plan.left), updatedAtMs: now };
  return {
    reports: released.map(reportOf(gateway)),
    alsoChange: (view) => endRunInView(view, name),
    operations: [
      { op: 'touch_run', run: failed, from: ['open'] },
      ...plan.undos.map((undo) => ({ op: 'put_undo', undo }) as const),
      ...released.flatMap(({ claim }) => releaseOf(gateway, claim)),
    ],
    line,
  };
}

/** Where a run stands right after it failed: the engine takes it, unless nothing is to be done or a person must look first. */
function stateOf({ undos, left }: UndoPlan, why: string): Pick<RunRecord, 'state' | 'why'> {
  const first = undos.at(-1);
  if (first?.state === 'needs_person') return { state: 'needs_person', why: `step ${first.step}: ${first.why}` };
  if (first !== undefined) return { state: 'failed', why };
  const unsaid = left.find(needsWord);
  if (unsaid === undefined) return { state: 'compensated', why };
  return { state: 'needs_person', why: `step ${unsaid.step}: ${unsaid.why}` };
}

/** A write that stays although nobody said that it may. */
export function needsWord({ why }: LeftStep): boolean {
  return why === NO_UNDO || why === NO_TOOL;
}

/** Why a write is named among what is left. */
const NO_UNDO = 'its tool says nothing about undoing it';
const NO_TOOL = 'its tool is no longer in the catalogue';

/** What undoing a run comes to, from its entries; the engine goes through the rows highest step first. */
function planUndos(
  gateway: Gateway,
  session: Session,
  run: RunRecord,
  steps: readonly StepRecord[],
  known: ReadonlyMap<number, Outcome>,
  nowMs: number,
): UndoPlan {
  const undos: UndoRecord[] = [];
  const left: LeftStep[] = [];
  for (const step of steps) {
    const body = readBody(step);
    if (body.run !== run.run || body.decision !== 'allow' || body.undoes !== undefined) continue;
    const tool = gateway.loaded.catalogue.tools.get(body.tool);
    const outcome = known.get(step.step) ?? (step.seen ? outcomeOf(step.outcome) : undefined);
    if (tool?.writes === false || outcome === 'failed' || outcome === 'compensated') continue;
    const stays = whyLeft(tool);
    if (stays !== undefined) left.push({ step: step.step, tool: body.tool, why: stays });
    else if (tool !== undefined) undos.push(undoRow(session, run, step, body, tool, outcome, nowMs));
  }
  return { undos, left };
}

function whyLeft(tool: Tool | undefined): string | undefined {
  if (tool === undefined) return NO_TOOL;
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
