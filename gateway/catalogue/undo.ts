import type { UndoBinding, UndoSource } from '../../policy/tool.ts';
import type { ConfigPath } from '../config/problem.ts';
import {
  checkArgument,
  type Drafts,
  isOptional,
  requiredOf,
  resolveTool,
  type ToolDraft,
  watchField,
} from './tool-draft.ts';

/**
 * The undo of a tool, every argument of it bound: by `with`, else by equal names from the step's arguments, then from
 * its result's top-level fields. Faults: an undo that cannot be, or whose arguments cannot all be bound.
 */
export function readUndo(drafts: Drafts, draft: ToolDraft): UndoBinding | 'none' | undefined {
  const { log } = drafts;
  const said = draft.words.said.undo;
  const path = draft.words.pathOf('undo');
  if (said === undefined) {
    if (draft.writes && draft.words.said.irreversible !== true) {
      log.warning(
        'undo_not_said',
        draft.source.path,
        `nothing is said of how \`${draft.id}\` is undone: a failed run that wrote by it waits for a person; say \`undo\` (a tool or \`none\`) or \`irreversible\``,
      );
    }
    return undefined;
  }
  if (!draft.writes) {
    // A glob may well say of all tools what means something for the writes among them.
    if (draft.words.isExact('undo')) {
      log.error('undo_of_read', path, `\`${draft.id}\` only reads: there is nothing to undo`);
    }
    return undefined;
  }
  if (said === 'none') return 'none';
  if (draft.words.said.irreversible === true) {
    log.error(
      'undo_and_irreversible',
      path,
      `\`${draft.id}\` is \`irreversible\` and has an \`undo\`; it can only be one`,
    );
  }
  const { tool: name, with: given } = typeof said === 'string' ? { tool: said, with: undefined } : said;
  const id = resolveTool(drafts, name, draft.route.name, typeof said === 'string' ? path : [...path, 'tool']);
  const undo = id === undefined ? undefined : drafts.byId.get(id);
  if (id === undefined || undo === undefined) return undefined;
  if (undo === draft) log.error('undo_of_itself', path, `\`${draft.id}\` cannot be its own undo`);
  if (!undo.writes) log.error('undo_reads', path, `\`${id}\` only reads: it undoes nothing`);
  checkReach(drafts, draft, undo, path);
  const binding =
    given === undefined
      ? bindByName(drafts, draft, undo, path)
      : bindByHand(drafts, draft, undo, given, [...path, 'with']);
  const safe = undo.words.said.safe_if_nothing_happened === true;
  if (safe && Object.values(binding).some((source) => source.from === 'result')) {
    log.warning(
      'safe_but_result',
      path,
      `\`${id}\` is \`safe_if_nothing_happened\`, but it is bound to the result of \`${draft.id}\`, which an unknown outcome has none of`,
    );
  }
  return { tool: id, with: binding, safeIfNothingHappened: safe };
}

function checkReach(drafts: Drafts, draft: ToolDraft, undo: ToolDraft, path: ConfigPath): void {
  const cannot = [...draft.agents].filter((agent) => !undo.agents.has(agent));
  if (cannot.length === 0) return;
  drafts.log.warning(
    'compensation_out_of_reach',
    path,
    `${cannot.map((agent) => `\`${agent}\``).join(', ')} can call \`${draft.id}\` but not its undo \`${undo.id}\`; the gateway still sends it for a failed run`,
  );
}

function bindByName(drafts: Drafts, draft: ToolDraft, undo: ToolDraft, path: ConfigPath): Record<string, UndoSource> {
  const binding: Record<string, UndoSource> = {};
  const required = new Set(requiredOf(undo));
  for (const name of undo.input.topLevel) {
    if (draft.input.topLevel.includes(name)) {
      binding[name] = { from: 'arguments', path: name };
      warnOptional(drafts, draft, undo, name, name, required, path);
    } else if (draft.result?.topLevel.includes(name)) {
      binding[name] = { from: 'result', path: name };
      draft.watched.add(name);
    } else if (required.has(name)) {
      drafts.log.error(
        'undo_unbindable',
        path,
        `\`${undo.id}\` needs \`${name}\`, and \`${draft.id}\` has no such argument${draft.result === undefined ? ' and declares no `result`' : ' nor result field'}; bind it with \`undo: {tool, with}\``,
      );
    }
  }
  return binding;
}

function bindByHand(
  drafts: Drafts,
  draft: ToolDraft,
  undo: ToolDraft,
  given: Readonly<Record<string, string>>,
  path: ConfigPath,
): Record<string, UndoSource> {
  const binding: Record<string, UndoSource> = {};
  const required = new Set(requiredOf(undo));
  for (const [name, text] of Object.entries(given)) {
    const at = [...path, name];
    checkArgument(drafts, undo, name, at, 'key');
    const dot = text.indexOf('.');
    const from = text.slice(0, dot) === 'result' ? 'result' : 'arguments';
    const field = text.slice(dot + 1);
    if (from === 'result') watchField(drafts, draft, field, at);
    else if (checkArgument(drafts, draft, field, at)) warnOptional(drafts, draft, undo, name, field, required, at);
    binding[name] = { from, path: field };
  }
  for (const name of required) {
    if (Object.hasOwn(given, name)) continue;
    drafts.log.error('undo_unbindable', path, `\`${undo.id}\` needs \`${name}\`, which \`with\` does not bind`);
  }
  return binding;
}

function warnOptional(
  drafts: Drafts,
  draft: ToolDraft,
  undo: ToolDraft,
  name: string,
  field: string,
  required: ReadonlySet<string>,
  path: ConfigPath,
): void {
  if (!required.has(name) || field.includes('.') || !isOptional(draft, field)) return;
  drafts.log.warning(
    'undo_may_lack',
    path,
    `\`${undo.id}\` needs \`${name}\`, but \`${draft.id}\` may be called without \`${field}\`: such a call can only be undone by a person`,
  );
}
