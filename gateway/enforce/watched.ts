import type { ToolAnswer } from '../../policy/conditions/condition.ts';
import { canonicalize } from '../../receipts/canonical.ts';
import { parseJson } from '../../receipts/json.ts';
import type { JsonObject, JsonValue } from '../../receipts/json-value.ts';
import type { Gateway } from '../gateway.ts';
import type { WatchPlan } from '../load/watch-plans.ts';
import type { Loaded } from '../loaded.ts';
import type { Session } from '../sessions.ts';
import type { Operation, WatchedRecord } from '../store/port.ts';
import { factsOf } from './result-facts.ts';
import { valueAt } from './undo-arguments.ts';

const NO_ANSWERS: readonly ToolAnswer[] = [];

/** What tools answered in the session, newest first, as far as the rules of a tool read it. */
export async function findAnswers(
  gateway: Gateway,
  loaded: Loaded,
  session: Session,
  toolId: string | undefined,
): Promise<readonly ToolAnswer[]> {
  if (toolId === undefined || session.isNew) return NO_ANSWERS;
  const tools = loaded.answersRead(toolId);
  if (tools.length === 0) return NO_ANSWERS;
  return (await gateway.store.findWatched(session.record.sid, tools)).map(answerOf);
}

/** A call that ran, as far as its answer is read later. */
export interface WatchedCall {
  readonly sid: string;
  readonly step: number;
  readonly toolId: string;
  readonly arguments: JsonObject;
  /** Absent where the answer could not be read. */
  readonly result?: JsonValue;
}

/**
 * Keeps of an answer what rules read later, and nothing else of it. An answer that could not be read is kept too, as one
 * without values: what the tool said before is no longer what it last said.
 */
export function watchAnswer(loaded: Loaded, call: WatchedCall): readonly Operation[] {
  const plan = loaded.rules.watched.get(call.toolId);
  if (plan === undefined) return [];
  const record: WatchedRecord = {
    tool: call.toolId,
    step: call.step,
    arguments: canonicalize(pick(call.arguments, plan.arguments)),
    result: canonicalize(
      call.result === undefined ? {} : pickResult(factsOf(loaded, serverOf(call.toolId), call.result), plan),
    ),
  };
  return [{ op: 'watch', sid: call.sid, record, keep: plan.keep }];
}

function serverOf(toolId: string): string {
  return toolId.slice(0, toolId.indexOf('/'));
}

function pickResult(result: JsonValue, plan: WatchPlan): JsonObject {
  return pick(result, plan.fields);
}

type Tree = Map<string, Tree | JsonValue>;

/** The members at dotted paths, each in its place; those that are not there are left out. */
function pick(from: JsonValue, paths: readonly string[]): JsonObject {
  const picked: Tree = new Map();
  for (const path of paths) {
    const value = valueAt(from, path);
    if (value !== undefined) plant(picked, path.split('.'), value);
  }
  return grow(picked);
}

function plant(tree: Tree, [name = '', ...rest]: readonly string[], value: JsonValue): void {
  if (rest.length === 0) {
    tree.set(name, value);
    return;
  }
  const known = tree.get(name);
  // `card` and `card.number` are both read: the whole holds the part.
  if (known !== undefined && !(known instanceof Map)) return;
  const branch: Tree = known ?? new Map();
  tree.set(name, branch);
  plant(branch, rest, value);
}

function grow(tree: Tree): JsonObject {
  return Object.fromEntries([...tree].map(([name, value]) => [name, value instanceof Map ? grow(value) : value]));
}

function answerOf(record: WatchedRecord): ToolAnswer {
  const { tool, step } = record;
  return { tool, step, arguments: parseObject(record.arguments), result: parseObject(record.result) };
}

function parseObject(text: string): JsonObject {
  const value = parseJson(text);
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as JsonObject;
  throw new Error('an answer in the store is no object');
}
