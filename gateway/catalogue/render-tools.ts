import type { Tool } from '../../policy/tool.ts';
import type { JsonObject } from '../../receipts/json-value.ts';
import type { BuiltCatalogue } from './build.ts';
import type { ToolSettings } from './tool-settings.ts';

/** The catalogue for people, as a table, or for scripts, as JSON: what `toolgate tools` prints. Ends with a line break. */
export function renderTools(built: BuiltCatalogue, options: { readonly json: boolean }): string {
  const tools = [...built.catalogue.tools.values()].map((tool) => describeTool(tool, built.settings.get(tool.id)));
  const refused = refusedOf(built);
  if (options.json) {
    return `${JSON.stringify({ tools, ...(refused.length === 0 ? {} : { refused }) }, jsonSafe, 2)}\n`;
  }
  const rows = tools.map((tool) => [
    tool.tool,
    tool.request ?? '-',
    tool.effect,
    tool.arguments.join(' ') || '-',
    tool.agents.join(' '),
    tool.notes.join(', '),
  ]);
  return renderTable([
    ['tool', 'request', 'effect', 'arguments', 'agents', 'notes'],
    ...rows,
    ...refused.map(refusedRow),
  ]);
}

/** An operation of a document that is no tool. */
interface RefusedLine {
  readonly tool: string;
  readonly request: string;
  readonly refused: string;
}

function refusedOf({ routes }: BuiltCatalogue): readonly RefusedLine[] {
  return routes.flatMap(({ name: route, document }) =>
    (document?.api.refused ?? []).map(({ name, method, pathTemplate, reason }) => ({
      tool: `${route}/${name}`,
      request: `${method} ${pathTemplate}`.trim(),
      refused: reason,
    })),
  );
}

function refusedRow({ tool, request, refused }: RefusedLine): readonly string[] {
  return [tool, request, `refused: ${refused}`];
}

interface ToolLine {
  readonly tool: string;
  readonly description: string;
  /** Method and path template; absent for an MCP tool. */
  readonly request?: string;
  readonly effect: 'reads' | 'writes';
  /** Names; a `?` behind one that may be left out. */
  readonly arguments: readonly string[];
  readonly agents: readonly string[];
  /** What the operator said of the tool, in words. */
  readonly notes: readonly string[];
  /** Why the arguments cannot be judged in full. */
  readonly partial: readonly string[];
  /** One schema that stands by itself. */
  readonly input: JsonObject;
}

function describeTool(tool: Tool, settings: ToolSettings | undefined): ToolLine {
  const operation = settings?.operation;
  const { required } = tool.input;
  return {
    tool: tool.id,
    description: tool.description,
    ...(operation === undefined ? {} : { request: `${operation.method} ${operation.pathTemplate}` }),
    effect: tool.writes ? 'writes' : 'reads',
    arguments: tool.input.topLevel.map((name) => (required.includes(name) ? name : `${name}?`)),
    agents: [...tool.agents],
    notes: notesOf(tool, settings),
    partial: tool.input.partial,
    input: tool.input.render(),
  };
}

function notesOf(tool: Tool, settings: ToolSettings | undefined): readonly string[] {
  const notes: string[] = [];
  if (tool.pin !== undefined) notes.push(`not callable: pin ${tool.pin}`);
  // The waived question is the operator's decision and must be seen wherever the tool is looked at.
  if (tool.confirm === 'reasons' && tool.writes) notes.push('waived: write');
  if (tool.irreversible) notes.push('irreversible');
  if (tool.undo === 'none') notes.push('undo: none');
  else if (tool.undo !== undefined) notes.push(`undo: ${tool.undo.tool}`);
  else if (tool.writes && !tool.irreversible) notes.push('undo: not said');
  if (tool.idempotent) notes.push('idempotent');
  if (tool.idempotency !== undefined)
    notes.push('header' in tool.idempotency ? `key: ${tool.idempotency.header}` : `key: ${tool.idempotency.argument}`);
  if (settings?.idempotencyRequired) notes.push('key required');
  if (tool.sendsOut) notes.push('sends out');
  if (tool.readsOutside) notes.push('reads outside');
  if (tool.confidential) notes.push('confidential');
  if (tool.privilege > 0) notes.push(`privilege: ${tool.privilege}`);
  for (const rule of tool.after) notes.push(`after: ${rule.tool}`);
  for (const mark of tool.notAfter) notes.push(`not after: ${mark}`);
  if (tool.atMost !== undefined) notes.push(`at most ${tool.atMost} per session`);
  for (const { count, per } of settings?.limits ?? []) notes.push(`at most ${count} per ${per}`);
  for (const spend of settings?.spend ?? [])
    notes.push(`at most ${spend.at_most} ${settings?.currency ?? ''} of ${spend.field} per ${spend.per}`);
  if ((settings?.checks.length ?? 0) > 0) notes.push(`${settings?.checks.length} checks`);
  if (settings?.filter !== undefined) notes.push('filtered');
  if (settings?.outcome !== undefined) notes.push(`followed by ${settings.outcome.follow}`);
  if (tool.input.partial.length > 0) notes.push(`partial: ${tool.input.partial.join('; ')}`);
  return notes;
}

/** A longer cell pushes what follows it to the right: one tool of forty arguments does not make every line as long. */
const MAX_COLUMN = 60;

function renderTable(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, column) =>
    rows.reduce((widest, row) => Math.max(widest, Math.min((row[column] ?? '').length, MAX_COLUMN)), 0),
  );
  return rows
    .map(
      (row) =>
        `${row
          .map((cell, column) => cell.padEnd(widths[column] ?? 0))
          .join('  ')
          .trimEnd()}\n`,
    )
    .join('');
}

function jsonSafe(_key: string, value: unknown): unknown {
  return typeof value === 'bigint' ? value.toString() : value;
}
