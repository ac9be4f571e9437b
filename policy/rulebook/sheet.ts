import type { JsonValue } from '../../receipts/json-value.ts';
import type { Condition } from './condition.ts';
import { parseExpression } from './expression.ts';
import type { Line } from './line.ts';
import { lowerCondition } from './lower.ts';
import { isToolName } from './message.ts';
import { didYouMean, quoted } from './nearest.ts';
import type { Position, Problem } from './problem.ts';
import { Problems } from './problem.ts';
import type { RecordFlow, RecordNode } from './record.ts';

/** A cell's text and where it stands. */
export interface SheetCell extends Position {
  readonly text: string;
}

/** The parsed value of a `check` cell and where it stands. */
export interface SheetCheck extends Position {
  readonly value: JsonValue;
}

/** One row as a reader hands it over; an empty cell is left out. */
export interface SheetRow {
  readonly at: Position;
  readonly tool?: SheetCell;
  readonly when?: SheetCell;
  readonly check?: SheetCheck;
  readonly decision?: SheetCell;
  readonly rule?: SheetCell;
  readonly because?: SheetCell;
}

/** A sheet: its rows in order, under a name that decisions give as their flow. */
export interface RuleSheet {
  readonly file: string;
  readonly name: string;
  readonly rows: readonly SheetRow[];
}

export interface SheetOptions {
  /** What is wrong with a `check` cell's condition, or undefined; left out, such cells are not looked into. */
  readonly checkFault?: (condition: JsonValue) => string | undefined;
}

const DECISIONS: readonly ('allow' | 'refuse' | 'confirm')[] = ['allow', 'refuse', 'confirm'];

/** A sheet is read whole and by people, as a rulebook is. */
const MAX_ROWS = 10_000;

interface Branch {
  readonly when: Condition;
  readonly row: SheetRow;
  readonly decision: 'allow' | 'refuse' | 'confirm';
}

/**
 * Compiles a sheet into one flow for each tool that it names: a ladder of its rows, of which the first that holds
 * decides, and a refusal (`no_rule`) where none does.
 */
export function compileRuleSheet(
  sheet: RuleSheet,
  options: SheetOptions = {},
): { readonly flows: readonly RecordFlow[]; readonly problems: readonly Problem[] } {
  const problems = new Problems();
  const byTool = new Map<string, Branch[]>();
  if (sheet.rows.length > MAX_ROWS) {
    const at = { file: sheet.file, line: 1, column: 1 };
    problems.error('too_many_lines', at, `a rule sheet may hold ${MAX_ROWS} rows at most; split it`);
    return { flows: [], problems: problems.list };
  }
  for (const row of sheet.rows) {
    const tool = parseTool(row, problems);
    const decision = parseDecision(row, problems);
    const when = parseWhen(row, options, problems);
    if (tool === undefined || decision === undefined || when === undefined) continue;
    const branches = byTool.get(tool) ?? [];
    branches.push({ when, row, decision });
    byTool.set(tool, branches);
  }
  const flows = [...byTool].map(([tool, branches]) => sheetFlow(sheet, tool, branches));
  return { flows, problems: problems.list };
}

function parseTool(row: SheetRow, problems: Problems): string | undefined {
  const text = row.tool?.text.trim() ?? '';
  if (isToolName(text)) return text;
  const message =
    text === ''
      ? 'this row names no tool; write one under `tool`'
      : `${quoted(text)} cannot name a tool; write \`NAME\` or \`SERVER/NAME\``;
  problems.error('tool_cell', row.tool ?? row.at, message);
  return undefined;
}

function parseDecision(row: SheetRow, problems: Problems): 'allow' | 'refuse' | 'confirm' | undefined {
  const text = row.decision?.text.trim().toLowerCase() ?? '';
  const found = DECISIONS.find((decision) => decision === text);
  if (found === undefined) {
    const said = text === '' ? 'this row decides nothing' : `${quoted(text)} is no decision`;
    problems.error(
      'decision_cell',
      row.decision ?? row.at,
      `${said}; write \`allow\`, \`refuse\` or \`confirm\`${didYouMean(text, DECISIONS)}`,
    );
  }
  return found;
}

/** Undefined where the row's condition could not be read; true where it has none. */
function parseWhen(row: SheetRow, options: SheetOptions, problems: Problems): Condition | undefined {
  const parts: Condition[] = [];
  const cell = row.when;
  if (cell !== undefined && cell.text.trim() !== '') {
    const line: Line = {
      file: cell.file,
      text: cell.text.replaceAll(/[\r\n\t]/g, ' '),
      indent: 0,
      line: cell.line,
      segments: [{ at: 0, line: cell.line, column: cell.column }],
    };
    const expression = parseExpression(line, 0, problems);
    if (expression === undefined) return undefined;
    parts.push(lowerCondition({ expression, line }, { assigned: () => undefined }, problems));
  }
  if (row.check !== undefined) {
    const fault = options.checkFault?.(row.check.value);
    if (fault !== undefined) {
      problems.error('check_cell', row.check, fault);
      return undefined;
    }
    parts.push({ check: row.check.value });
  }
  const [first] = parts;
  if (first === undefined) return true;
  return parts.length === 1 ? first : { and: parts };
}

function sheetFlow(sheet: RuleSheet, tool: string, branches: readonly Branch[]): RecordFlow {
  const line = branches[0]?.row.at.line ?? 1;
  const nodes: RecordNode[] = [
    { op: 'answer', tool, decision: 'refuse', reason: null, question: null, because: null, line },
  ];
  const ladder: { when: Condition; to: number; line: number }[] = [];
  for (const { when, row, decision } of branches) {
    const rule = row.rule?.text.trim() || undefined;
    const because = row.because?.text.trim() || null;
    ladder.push({ when, to: nodes.length, line: row.at.line });
    nodes.push({
      op: 'answer',
      tool,
      decision,
      reason: rule ?? decision,
      question: decision === 'confirm' ? (because ?? rule ?? 'May this call run?') : null,
      because,
      line: row.at.line,
    });
  }
  nodes.push({ op: 'if', branches: ladder, otherwise: 0, line });
  return { name: sheet.name, file: sheet.file, line, entry: true, loops: false, start: nodes.length - 1, nodes };
}
