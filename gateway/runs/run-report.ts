import { parseJson } from '../../receipts/json.ts';
import type { JsonObject } from '../../receipts/json-value.ts';
import { readBody } from '../enforce/step-facts.ts';
import type { Gateway } from '../gateway.ts';
import type { RunRecord, SessionRecord, StepRecord, UndoRecord } from '../store/port.ts';
import { knownOutcome } from './known-outcome.ts';

/**
 * How a run stands (docs/execution.md): its steps with their outcomes, its undos highest step first, what stays done and
 * why. For a caller that carries its history, `send` is the undo to send next, as the members of a call.
 */
export async function renderRun(gateway: Gateway, run: RunRecord, session: SessionRecord): Promise<JsonObject> {
  const undos = await gateway.store.listUndos(run.caller, run.run);
  const entries = await gateway.store.readEntries(session.sid);
  const steps: JsonObject[] = [];
  for (const entry of entries) {
    const body = readBody(entry);
    if (body.run !== run.run || body.decision !== 'allow') continue;
    const outcome = await knownOutcome(gateway, entry);
    steps.push({
      step: entry.step,
      tool: body.tool,
      outcome: outcome ?? 'on_its_way',
      ...(body.undoes === undefined ? {} : { undoes: body.undoes }),
    });
  }
  const next = session.mode === 'carried' ? undos.find(({ state }) => state !== 'compensated') : undefined;
  return {
    run: run.run,
    session: session.session,
    agent: run.agent,
    state: run.state,
    ...(run.why === undefined ? {} : { why: run.why }),
    steps,
    undos: undos.map(renderUndo),
    left: run.left === undefined ? [] : parseJson(run.left),
    ...(next === undefined ? {} : { send: sendOf(next, entries) }),
  };
}

function renderUndo({ step, tool, undoTool, state, round, attempts, why }: UndoRecord): JsonObject {
  return { step, tool, undo_tool: undoTool, state, round, attempts, ...(why === undefined ? {} : { why }) };
}

/** What a caller that carries its history sends next. Strictly last step first: the next is told once this one ran. */
function sendOf(undo: UndoRecord, entries: readonly StepRecord[]): JsonObject {
  const bound = entries.find(({ step }) => step === undo.step)?.undoArguments ?? undo.arguments;
  return {
    tool: undo.undoTool,
    arguments: bound === undefined ? {} : parseJson(bound),
    run: undo.run,
    undoes: undo.step,
  };
}
