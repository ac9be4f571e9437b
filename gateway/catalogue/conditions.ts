import { type ConditionPlace, type Reference, readForm } from '../../policy/conditions/form.ts';
import type { ConfigPath } from '../config/problem.ts';
import type { RawCondition } from '../config/raw.ts';
import type { ResultField } from './names.ts';
import { checkArgument, checkPath, type Drafts, resolveResultField, type ToolDraft, watchField } from './tool-draft.ts';

/** Where conditions stand, which says what their `field` is a path into. */
type Place = Exclude<ConditionPlace, 'cell'>;

/**
 * Tells what is wrong with conditions that can be known before a call: their form, fields that are not declared, tools
 * that are not there. `from` texts are collected in `references`.
 */
export function checkConditions(
  drafts: Drafts,
  draft: ToolDraft,
  conditions: readonly RawCondition[],
  path: ConfigPath,
  place: Place,
  references: Map<string, ResultField>,
): void {
  for (const [index, condition] of conditions.entries()) {
    checkCondition(drafts, draft, condition, [...path, index], place, references);
  }
}

function checkCondition(
  drafts: Drafts,
  draft: ToolDraft,
  condition: RawCondition,
  path: ConfigPath,
  place: Place,
  references: Map<string, ResultField>,
): void {
  const { faults, subject, any, operator, reference } = readForm(condition, place);
  for (const { at, message, part } of faults) drafts.log.error('condition_form', [...path, ...at], message, part);
  if (any !== undefined) checkConditions(drafts, draft, any, [...path, 'any'], place, references);
  if (subject !== undefined && place === 'arguments') {
    checkArgument(drafts, draft, subject.path, [...path, subject.word]);
  }
  if (operator !== undefined && reference !== undefined) {
    checkReference(drafts, draft, reference, [...path, operator], place, references);
  }
}

function checkReference(
  drafts: Drafts,
  draft: ToolDraft,
  { from, same }: Reference,
  path: ConfigPath,
  place: Place,
  references: Map<string, ResultField>,
): void {
  const found = resolveResultField(drafts, from, draft.route.name, [...path, 'from']);
  if (found !== undefined && checkPath(drafts, found.field, [...path, 'from'])) references.set(from, found);
  if (same !== undefined) checkTie(drafts, draft, found?.tool, same, [...path, 'same']);
  else if (place === 'arguments') {
    drafts.log.warning(
      'from_without_same',
      path,
      `\`${from}\` may be about something else than this call; tie the two with \`same\``,
    );
  }
}

/** What ties an answer to a call is an argument of the call, and an argument or a field of the answer. */
function checkTie(drafts: Drafts, draft: ToolDraft, source: string | undefined, same: string, path: ConfigPath): void {
  if (!checkPath(drafts, same, path)) return;
  checkArgument(drafts, draft, same, path);
  const read = source === undefined ? undefined : drafts.byId.get(source);
  if (read !== undefined && !read.input.declares(same)) watchField(drafts, read, same, path);
}
