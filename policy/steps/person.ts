import type { JsonObject } from '../../receipts/json-value.ts';
import type { Call, Snapshot } from '../call.ts';
import { taintsOf } from '../labels.ts';
import { believeOrigin } from '../origin-trust.ts';
import { type ReasonText, reasonOf } from '../reasons.ts';
import { runOf } from '../session.ts';
import type { Step, StepAnswer, Work } from '../verdict.ts';

/** Row 11. Every reason at once, so that a person is asked once. */
export const PERSON_STEP: Step = {
  name: 'person',
  checks:
    'every reason why a write needs a person, all together; a write with none of them is still confirmed, for `write`',
  answers: 'confirm',
  reasons: ['gate_clarify', 'argument_origin', 'tainted_call', 'irreversible_pivot', 'schema_partial', 'write'],
  run: checkPerson,
};

function checkPerson(snapshot: Snapshot, call: Call, work: Work): StepAnswer | undefined {
  const { reasons } = personReasons(snapshot, call, work);
  if (reasons.length === 0) return undefined;
  return { decision: 'confirm', reasons, detail: whatToShow(snapshot, call, work, reasons) };
}

/** The reasons of row 11 in table order, and those that the operator's words waive. */
export function personReasons(
  snapshot: Snapshot,
  call: Call,
  work: Work,
): { readonly reasons: readonly ReasonText[]; readonly waived: readonly ReasonText[] } {
  const { tool } = work;
  const reasons: ReasonText[] = [];
  if (work.question !== undefined) reasons.push('gate_clarify');
  // The person approved the write that this undoes; an agent's own undo is a write like any other.
  const approvedBefore = work.undoBound && (call.fromEngine || call.caller.host);
  if (!tool.writes || approvedBefore) return { reasons, waived: [] };
  const asked = askedArguments(snapshot, call, work);
  if (asked.length > 0) reasons.push(`argument_origin: ${asked.join(', ')}`);
  if (taintsOf(snapshot, tool, work.labels).length > 0) reasons.push('tainted_call');
  if (isPivot(snapshot, call, work)) reasons.push('irreversible_pivot');
  if (tool.input.partial.length > 0) reasons.push('schema_partial');
  if (reasons.length > 0) return { reasons, waived: [] };
  return tool.confirm === 'reasons' ? { reasons: [], waived: ['write'] } : { reasons: ['write'], waived: [] };
}

function askedArguments(snapshot: Snapshot, call: Call, work: Work): readonly string[] {
  return argumentNames(call, work).filter((name) => {
    const value = call.arguments[name];
    return value !== undefined && !believeOrigin(name, value, call, snapshot).trusted;
  });
}

/** Names of the call's arguments in schema order; what an open schema let in comes last, as sent. */
function argumentNames(call: Call, work: Work): readonly string[] {
  const declared = work.tool.input.topLevel.filter((name) => Object.hasOwn(call.arguments, name));
  const known = new Set(declared);
  return [...declared, ...Object.keys(call.arguments).filter((name) => !known.has(name))];
}

function isPivot(snapshot: Snapshot, call: Call, work: Work): boolean {
  if (!work.tool.irreversible || call.run === undefined) return false;
  return (runOf(snapshot.session.view, call.run)?.undoable ?? 0) > 0;
}

/** What a person must see: each argument with its value and where it came from, and every reason in a sentence. */
function whatToShow(snapshot: Snapshot, call: Call, work: Work, reasons: readonly ReasonText[]): JsonObject {
  const shown = argumentNames(call, work).map((name) => {
    const value = call.arguments[name] ?? null;
    return { name, value, origin: believeOrigin(name, value, call, snapshot).word };
  });
  return {
    ...(work.confirmation === undefined ? {} : { confirmation: work.confirmation }),
    arguments: shown,
    sentences: reasons.map((reason) => sentenceOf(snapshot, work, reason)),
    ...(work.question === undefined ? {} : { question: work.question.question, ...work.question.detail }),
  };
}

function sentenceOf(snapshot: Snapshot, work: Work, reason: ReasonText): string {
  const { sentence } = reasonOf(reason);
  if (reason === 'gate_clarify' && work.question !== undefined) return `${sentence}: ${work.question.question}`;
  if (reason === 'tainted_call') return `${sentence}: ${taintsOf(snapshot, work.tool, work.labels).join(', ')}`;
  if (reason === 'schema_partial') return `${sentence}: ${work.tool.input.partial.join('; ')}`;
  const colon = reason.indexOf(': ');
  return colon === -1 ? sentence : `${sentence}: ${reason.slice(colon + 2)}`;
}
