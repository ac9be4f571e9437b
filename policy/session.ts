import type { Decision, Outcome } from '../receipts/history.ts';
import type { Tool } from './tool.ts';

/**
 * What a session's history comes to for the check: counts and marks, never the entries themselves, so that a check
 * costs the same on the first call and on the ten-thousandth. A view is plain JSON; the store keeps it beside the head
 * that it belongs to and swaps both together.
 */
export interface SessionView {
  /** By tool pair. */
  readonly tools: Readonly<Record<string, ToolMarks>>;
  /** Labels that reading from outside put on the session, sorted. */
  readonly labels: readonly string[];
  readonly runs: Readonly<Record<string, RunMarks>>;
  /** The newest step that a confirmation of an earlier point does not reach over: an allowed write, or a new label. */
  readonly barrier: number;
  /** What an agent's session starts with, from its caller's other sessions (docs/check.md, "Sessions"). */
  readonly carried: Carried;
}

/** What became of the calls of one tool in a session. */
export interface ToolMarks {
  /** Allowed and not known to have failed. */
  readonly allowed: number;
  /** Known to have run, and not undone since. */
  readonly ran: number;
  /** Ever allowed, whatever became of it. */
  readonly ever: boolean;
}

/** What a run comes to for the check. */
export interface RunMarks {
  /** Writes that ran or may have run, and would be undone if the run failed. */
  readonly undoable: number;
  /** The run takes no more forward calls. */
  readonly ended: boolean;
}

/** Counts and marks that follow a caller from one session into the next. */
export interface Carried {
  /** Tool pair → calls that still count for `at_most`; a key alone says the tool was allowed. */
  readonly tools: Readonly<Record<string, number>>;
  readonly labels: readonly string[];
}

export const EMPTY_CARRIED: Carried = { tools: {}, labels: [] };
const NO_MARKS: ToolMarks = { allowed: 0, ran: 0, ever: false };

/** The view of a session that has no entry yet. */
export function openView(carried: Carried = EMPTY_CARRIED): SessionView {
  return { tools: {}, labels: [], runs: {}, barrier: -1, carried };
}

/** The marks of a tool; all zero where it was never called. */
export function marksOf(view: SessionView, toolId: string): ToolMarks {
  return Object.hasOwn(view.tools, toolId) ? (view.tools[toolId] ?? NO_MARKS) : NO_MARKS;
}

/** Calls of the tool that count for `at_most`, what was carried over among them. */
export function countOf(view: SessionView, toolId: string): number {
  const carried = Object.hasOwn(view.carried.tools, toolId) ? (view.carried.tools[toolId] ?? 0) : 0;
  return marksOf(view, toolId).allowed + carried;
}

/** Whether the tool was ever allowed in the session, or in one that it carries on. */
export function everAllowed(view: SessionView, toolId: string): boolean {
  return marksOf(view, toolId).ever || Object.hasOwn(view.carried.tools, toolId);
}

/** Labels that reading from outside put on the session and on those that it carries on, sorted. */
export function sessionLabels(view: SessionView): readonly string[] {
  return view.carried.labels.length === 0 ? view.labels : sortedUnion(view.labels, view.carried.labels);
}

/** The marks of a run; none where the session has no run of that name. */
export function runOf(view: SessionView, run: string): RunMarks | undefined {
  return Object.hasOwn(view.runs, run) ? view.runs[run] : undefined;
}

/** An entry that is about to be appended, as far as the view reads it. */
export interface AppendedEntry {
  readonly step: number;
  /** Absent for a tool that the catalogue lacks; such an entry is never an allow. */
  readonly tool?: Tool;
  readonly decision: Decision;
  readonly labels: readonly string[];
  readonly run?: string;
  readonly undoes?: number;
}

/** The view after an entry is appended. */
export function appendToView(view: SessionView, entry: AppendedEntry): SessionView {
  const { tool } = entry;
  if (entry.decision !== 'allow' || tool === undefined) return view;
  const marks = marksOf(view, tool.id);
  const label = tool.readsOutside ? `untrusted:${tool.name}` : undefined;
  const newLabel = label !== undefined && !sessionLabels(view).includes(label);
  const opensUndo = tool.writes && entry.run !== undefined && entry.undoes === undefined && isUndoable(tool);
  return {
    tools: { ...view.tools, [tool.id]: { allowed: marks.allowed + 1, ran: marks.ran, ever: true } },
    labels: label === undefined ? view.labels : withLabel(view.labels, label),
    runs: entry.run === undefined ? view.runs : withRun(view, entry.run, opensUndo ? 1 : 0),
    barrier: tool.writes || newLabel ? entry.step : view.barrier,
    carried: view.carried,
  };
}

/** What a report says of a step, before and after. `undefined` is "nothing reported". */
export interface ReportedStep {
  readonly tool: Tool;
  readonly run?: string;
  readonly undoes?: number;
  readonly before: Outcome | undefined;
  readonly after: Outcome;
}

/** The view after a step's outcome became known, or changed. */
export function reportToView(view: SessionView, step: ReportedStep): SessionView {
  const { tool, before, after } = step;
  if (before === after) return view;
  const marks = marksOf(view, tool.id);
  const allowed = marks.allowed + counts(after) - counts(before);
  const ran = marks.ran + Number(after === 'ran') - Number(before === 'ran');
  const undone = tool.writes && step.undoes === undefined && isUndoable(tool) ? open(after) - open(before) : 0;
  return {
    ...view,
    tools: { ...view.tools, [tool.id]: { allowed: Math.max(allowed, 0), ran: Math.max(ran, 0), ever: marks.ever } },
    runs: step.run === undefined || undone === 0 ? view.runs : withRun(view, step.run, undone),
  };
}

/** The view after a run stopped taking forward calls. */
export function endRunInView(view: SessionView, run: string): SessionView {
  const marks = runOf(view, run) ?? { undoable: 0, ended: false };
  return { ...view, runs: { ...view.runs, [run]: { ...marks, ended: true } } };
}

/** What a caller's sessions of late hand on to its next one. */
export function carryOver(views: Iterable<SessionView>): Carried {
  const tools: Record<string, number> = {};
  let labels: readonly string[] = [];
  for (const view of views) {
    for (const [id, marks] of Object.entries(view.tools)) {
      if (marks.ever) tools[id] = (Object.hasOwn(tools, id) ? (tools[id] ?? 0) : 0) + marks.allowed;
    }
    labels = sortedUnion(labels, view.labels);
  }
  return { tools, labels };
}

/** The view with what the caller's other sessions carry over by now; nothing that was carried before gets less. */
export function carryInto(view: SessionView, carried: Carried): SessionView {
  const tools: Record<string, number> = { ...view.carried.tools };
  for (const [id, count] of Object.entries(carried.tools)) {
    tools[id] = Math.max(count, Object.hasOwn(tools, id) ? (tools[id] ?? 0) : 0);
  }
  return { ...view, carried: { tools, labels: sortedUnion(view.carried.labels, carried.labels) } };
}

/** Union of two label lists, sorted by UTF-16 code units, without repetition. */
export function sortedUnion(one: readonly string[], other: readonly string[]): readonly string[] {
  if (other.length === 0) return one;
  return [...new Set([...one, ...other])].sort((a, b) => (a < b ? -1 : a > b ? 1 : 0));
}

/** The list itself where the label is in it, so that reading on costs nothing. */
function withLabel(labels: readonly string[], label: string): readonly string[] {
  return labels.includes(label) ? labels : sortedUnion(labels, [label]);
}

function isUndoable(tool: Tool): boolean {
  return !tool.irreversible && tool.undo !== undefined && tool.undo !== 'none';
}

function counts(outcome: Outcome | undefined): number {
  return outcome === 'failed' ? 0 : 1;
}

function open(outcome: Outcome | undefined): number {
  return outcome === 'failed' || outcome === 'compensated' ? 0 : 1;
}

function withRun(view: SessionView, run: string, added: number): SessionView['runs'] {
  const marks = runOf(view, run) ?? { undoable: 0, ended: false };
  return { ...view.runs, [run]: { undoable: Math.max(marks.undoable + added, 0), ended: marks.ended } };
}
