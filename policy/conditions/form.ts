import { isArray, isObject, type JsonValue } from '../../receipts/json-value.ts';
import { type ConditionSource, OPERATORS, type Operator } from './condition.ts';
import { literalFault, pathFault, type SubjectWord } from './literals.ts';

/** Where conditions stand: on arguments, on a record of a filter, on an answer, or in the `check` cell of a rule sheet. */
export type ConditionPlace = 'arguments' | 'record' | 'answer' | 'cell';

/** What is wrong with a condition, in words, and where in it. */
interface FormFault {
  readonly at: readonly string[];
  /** The word itself is at fault, not what it says. */
  readonly part: 'key' | 'value';
  readonly message: string;
}

/** `{from, same}`: a value that is read when the call comes. */
export interface Reference {
  readonly from: string;
  readonly same?: string;
}

/** A condition taken apart. What could not be made out is absent, and told in `faults`. */
export interface ConditionForm {
  readonly faults: readonly FormFault[];
  /** A path that is one, and which word it stands behind. */
  readonly subject?: { readonly word: SubjectWord; readonly path: string };
  readonly any?: readonly ConditionSource[];
  readonly operator?: Operator;
  /** What it compares with, where that is what a tool returned. */
  readonly reference?: Reference;
}

const SUBJECTS = ['field', 'total', 'count', 'any'] as const;

/**
 * Takes one condition apart and tells what is wrong with its form: all that can be known without the names of tools and
 * arguments. The conditions of `any` are looked at by themselves.
 */
export function readForm(condition: ConditionSource, place: ConditionPlace): ConditionForm {
  const [subject, ...others] = SUBJECTS.filter((word) => condition[word] !== undefined);
  if (subject === undefined || others.length > 0)
    return faulty([], 'a condition has one of `field`, `total`, `count`, `any`');
  const faults: FormFault[] = [];
  if (condition.unknown !== undefined && place !== 'record') {
    faults.push(fault(['unknown'], '`unknown` stands in the `keep` of a filter alone', 'key'));
  }
  const operators = OPERATORS.filter((word) => condition[word] !== undefined);
  if (subject === 'any') {
    if (operators.length > 0) faults.push(fault([], '`any` holds conditions and has no operator of its own'));
    return { faults, any: condition.any ?? [] };
  }
  const path = condition[subject] ?? '';
  const wrongPath = pathFault(path);
  if (wrongPath !== undefined) faults.push(fault([subject], wrongPath));
  const own = wrongPath === undefined ? { subject: { word: subject, path } } : {};
  const [operator, ...more] = operators;
  if (operator === undefined || more.length > 0) {
    const words = OPERATORS.map((word) => `\`${word}\``).join(', ');
    const said =
      operator === undefined
        ? 'the condition compares with nothing'
        : 'a condition has one operator; write two conditions';
    return { ...own, faults: [...faults, fault([], `${said} (${words})`)] };
  }
  const operand = readOperand(subject, operator, condition[operator] as JsonValue, place);
  return { ...own, ...operand, operator, faults: [...faults, ...operand.faults] };
}

function readOperand(
  subject: SubjectWord,
  operator: Operator,
  operand: JsonValue,
  place: ConditionPlace,
): Pick<ConditionForm, 'faults' | 'reference'> {
  if (isObject(operand)) return readReference(operator, operand, place);
  const wrong = shapeFault(operator, operand) ?? literalFault(subject, operator, operand);
  return wrong === undefined ? { faults: [] } : faulty([operator], wrong);
}

function readReference(
  operator: Operator,
  operand: { readonly [word: string]: JsonValue },
  place: ConditionPlace,
): Pick<ConditionForm, 'faults' | 'reference'> {
  if (place === 'cell') {
    const message =
      'a `check` cell compares with a value of its own; what a tool returned is a fact, in the `when` cell';
    return faulty([operator], message);
  }
  const { from, from_row: fromRow, same } = operand;
  if ((typeof from === 'string') === (typeof fromRow === 'string')) {
    const message = 'what is read when the call comes is `{from: tool.field}`, in a filter also `{from_row: field}`';
    return faulty([operator], message);
  }
  if (typeof from === 'string') {
    return { faults: [], reference: { from, ...(typeof same === 'string' ? { same } : {}) } };
  }
  if (place !== 'record') return faulty([operator], '`from_row` stands in the `keep` of a filter alone');
  const wrong = pathFault(String(fromRow));
  return wrong === undefined ? { faults: [] } : faulty([operator, 'from_row'], wrong);
}

/** A list where one value belongs, or one value where a list does: nothing is ever the same as that. */
function shapeFault(operator: Operator, operand: JsonValue): string | undefined {
  const isList = isArray(operand);
  if (operator === 'between')
    return isList && operand.length === 2 ? undefined : '`between` takes a list of two values';
  if (operator === 'one_of' || operator === 'none_of') return isList ? undefined : `\`${operator}\` takes a list`;
  return isList ? `\`${operator}\` takes one value; for a list there is \`one_of\`` : undefined;
}

function faulty(at: readonly string[], message: string): { readonly faults: readonly FormFault[] } {
  return { faults: [fault(at, message)] };
}

function fault(at: readonly string[], message: string, part: FormFault['part'] = 'value'): FormFault {
  return { at, message, part };
}
