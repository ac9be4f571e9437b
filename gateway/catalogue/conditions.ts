import { OPERATORS, type Operator } from '../../policy/conditions/condition.ts';
import { literalFault, type SubjectWord } from '../../policy/conditions/literals.ts';
import type { JsonValue } from '../../receipts/json-value.ts';
import type { ConfigPath } from '../config/problem.ts';
import type { RawCondition, RawOperand } from '../config/raw.ts';
import type { ResultField } from './names.ts';
import { checkArgument, checkPath, type Drafts, resolveResultField, type ToolDraft, watchField } from './tool-draft.ts';

/** Where conditions stand, which says what their `field` is a path into. */
type Place = 'arguments' | 'record' | 'answer';

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
  const { log } = drafts;
  const subjects = (['field', 'total', 'count', 'any'] as const).filter((word) => condition[word] !== undefined);
  const operators = OPERATORS.filter((word) => condition[word] !== undefined);
  const [subject] = subjects;
  if (subjects.length !== 1 || subject === undefined) {
    log.error('condition_form', path, 'a condition has one of `field`, `total`, `count`, `any`');
    return;
  }
  if (condition.unknown !== undefined && place !== 'record') {
    log.error('condition_form', [...path, 'unknown'], '`unknown` stands in the `keep` of a filter alone', 'key');
  }
  if (condition.any !== undefined) {
    if (operators.length > 0)
      log.error('condition_form', path, '`any` holds conditions and has no operator of its own');
    checkConditions(drafts, draft, condition.any, [...path, 'any'], place, references);
    return;
  }
  const field = condition[subject];
  if (typeof field === 'string' && checkPath(drafts, field, [...path, subject]) && place === 'arguments') {
    checkArgument(drafts, draft, field, [...path, subject]);
  }
  const [operator, ...more] = operators;
  if (operator === undefined || more.length > 0) {
    const message =
      operator === undefined
        ? 'the condition compares with nothing'
        : 'a condition has one operator; write two conditions';
    log.error('condition_form', path, `${message} (${OPERATORS.map((word) => `\`${word}\``).join(', ')})`);
    return;
  }
  const fault = checkOperand(drafts, draft, operator, condition[operator], [...path, operator], place, references);
  if (fault) return;
  const literal = condition[operator];
  if (subject === 'any' || literal === undefined || referenceOf(literal) !== undefined) return;
  const wrong = literalFault(subject satisfies SubjectWord, operator, literal as JsonValue);
  if (wrong !== undefined) log.error('condition_form', [...path, operator], wrong);
}

/** True where a fault was told, or the operand is read when the call comes. */
function checkOperand(
  drafts: Drafts,
  draft: ToolDraft,
  operator: Operator,
  operand: RawOperand | undefined,
  path: ConfigPath,
  place: Place,
  references: Map<string, ResultField>,
): boolean {
  const { log } = drafts;
  const reference = referenceOf(operand);
  if (reference !== undefined) {
    if ((reference.from === undefined) === (reference.fromRow === undefined)) {
      log.error(
        'condition_form',
        path,
        'what is read when the call comes is `{from: tool.field}`, in a filter also `{from_row: field}`',
      );
    } else if (reference.fromRow !== undefined && place !== 'record') {
      log.error('condition_form', path, '`from_row` stands in the `keep` of a filter alone');
    } else if (reference.fromRow !== undefined) {
      checkPath(drafts, reference.fromRow, [...path, 'from_row']);
    } else if (reference.from !== undefined) {
      const found = resolveResultField(drafts, reference.from, draft.route.name, [...path, 'from']);
      if (found !== undefined && checkPath(drafts, found.field, [...path, 'from'])) {
        references.set(reference.from, found);
      }
      if (reference.same !== undefined) checkTie(drafts, draft, found?.tool, reference.same, [...path, 'same']);
      else if (place === 'arguments') {
        log.warning(
          'from_without_same',
          path,
          `\`${reference.from}\` may be about something else than this call; tie the two with \`same\``,
        );
      }
    }
    return true;
  }
  const list = Array.isArray(operand) ? (operand as readonly JsonValue[]) : undefined;
  if (operator === 'between' && list?.length !== 2) {
    log.error('condition_form', path, '`between` takes a list of two values');
    return true;
  } else if ((operator === 'one_of' || operator === 'none_of') && list === undefined) {
    log.error('condition_form', path, `\`${operator}\` takes a list`);
    return true;
  } else if (operator !== 'between' && operator !== 'one_of' && operator !== 'none_of' && list !== undefined) {
    log.error('condition_form', path, `\`${operator}\` takes one value; for a list there is \`one_of\``);
    return true;
  }
  return false;
}

/** What ties an answer to a call is an argument of the call, and an argument or a field of the answer. */
function checkTie(drafts: Drafts, draft: ToolDraft, source: string | undefined, same: string, path: ConfigPath): void {
  if (!checkPath(drafts, same, path)) return;
  checkArgument(drafts, draft, same, path);
  const read = source === undefined ? undefined : drafts.byId.get(source);
  if (read !== undefined && !read.input.declares(same)) watchField(drafts, read, same, path);
}

interface Reference {
  readonly from: string | undefined;
  readonly fromRow: string | undefined;
  readonly same: string | undefined;
}

function referenceOf(operand: RawOperand | undefined): Reference | undefined {
  if (operand === null || typeof operand !== 'object' || Array.isArray(operand)) return undefined;
  const text = (word: string): string | undefined => {
    const value = Object.entries(operand).find(([key]) => key === word)?.[1];
    return typeof value === 'string' ? value : undefined;
  };
  return { from: text('from'), fromRow: text('from_row'), same: text('same') };
}
