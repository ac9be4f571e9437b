import type { JsonObject, JsonValue } from '../../receipts/json-value.ts';
import {
  type CompiledConditions,
  ConditionFault,
  type ConditionSource,
  HOLDS,
  type Judgement,
  type Lookups,
  OPERATORS,
  type Operator,
} from './condition.ts';
import { sumDecimals } from './decimals.ts';
import { compileOperand, type Operand, type ResolveField } from './operand.ts';
import { COMPARE } from './operators.ts';
import { type Path, parsePath, readItems, readPath, readPresent } from './path.ts';
import { type Side, typeName } from './values.ts';

type Judge = (subject: JsonValue, lookups: Lookups) => Judgement;

/** The values that a condition compares, each with the operand; `undefined` where they could not be read. */
interface Subject {
  readonly read: (subject: JsonValue) => readonly Side[] | undefined;
  /** As `read`, for a record that is kept where it lacks the value: without what is missing or null. */
  readonly readPresent: (subject: JsonValue) => readonly Side[] | undefined;
  readonly text: string;
}

/**
 * Compiles conditions that must all hold. Form and names were checked when the configuration was loaded; what is still
 * wrong throws `ConditionFault`, so that no condition is dropped.
 */
export function compileConditions(sources: readonly ConditionSource[], resolve: ResolveField): CompiledConditions {
  const judges = sources.map((source) => compileCondition(source, resolve));
  return {
    judge: (subject, lookups) => {
      let unknown: Judgement | undefined;
      for (const judge of judges) {
        const judgement = judge(subject, lookups);
        if (judgement.verdict === 'failed') return judgement;
        if (judgement.verdict === 'unknown') unknown ??= judgement;
      }
      return unknown ?? HOLDS;
    },
  };
}

function compileCondition(source: ConditionSource, resolve: ResolveField): Judge {
  if (source.any !== undefined) return compileAny(source, source.any, resolve);
  const subject = compileSubject(source);
  const [operator, ...others] = OPERATORS.filter((word) => source[word] !== undefined);
  const written = operator === undefined ? undefined : source[operator];
  if (operator === undefined || written === undefined || others.length > 0) {
    throw new ConditionFault(`\`${subject.text}\` is compared by one operator`);
  }
  const operand = compileOperand(written, resolve);
  const compare = COMPARE[operator];
  const read = source.unknown === 'pass' ? subject.readPresent : subject.read;
  const name = nameOf(subject, operator, operand);
  return (row, lookups) => {
    const values = read(row);
    if (values?.length === 0 && source.unknown === 'pass') return HOLDS;
    const compared = operand.read(row, lookups);
    if (values === undefined) return told(source, name, 'unknown', undefined, compared);
    let unknown: Judgement | undefined;
    for (const value of values) {
      const holds = compare(value, compared);
      if (holds === false) return told(source, name, 'failed', value, compared);
      if (holds === undefined) unknown ??= told(source, name, 'unknown', value, compared);
    }
    // Of no values nothing can be said against what they are compared with, unless that could not be read.
    if (compared === undefined) return unknown ?? told(source, name, 'unknown', undefined, compared);
    return unknown ?? HOLDS;
  };
}

/** Holds where one of its conditions holds; fails where every one of them certainly fails. */
function compileAny(source: ConditionSource, options: readonly ConditionSource[], resolve: ResolveField): Judge {
  const judges = options.map((option) => compileCondition(option, resolve));
  return (row, lookups) => {
    const judgements: JsonObject[] = [];
    let verdict: 'failed' | 'unknown' = 'failed';
    for (const judge of judges) {
      const judgement = judge(row, lookups);
      if (judgement.verdict === 'holds') return HOLDS;
      if (judgement.verdict === 'unknown') verdict = 'unknown';
      judgements.push(judgement.detail);
    }
    return { verdict, detail: { condition: 'any', any: judgements, ...becauseOf(source) } };
  };
}

function compileSubject(source: ConditionSource): Subject {
  const { field, total, count } = source;
  if (field !== undefined) {
    const path = parsePath(field);
    return { read: (value) => readPath(value, path), readPresent: (value) => readPresent(value, path), text: field };
  }
  if (total !== undefined) {
    const path = parsePath(total);
    const read = (value: JsonValue): readonly Side[] | undefined => totalOf(readItems(value, path));
    return { read, readPresent: unlessAbsent(path, read), text: `total of ${total}` };
  }
  if (count !== undefined) {
    const path = parsePath(count);
    const read = (value: JsonValue): readonly Side[] | undefined => countOf(readItems(value, path));
    return { read, readPresent: unlessAbsent(path, read), text: `count of ${count}` };
  }
  throw new ConditionFault('a condition has one of `field`, `total`, `count`, `any`');
}

/** No value where the list is missing or null; else what `read` makes of it. */
function unlessAbsent(path: Path, read: Subject['read']): Subject['read'] {
  const { steps } = path;
  const list = { ...path, steps: steps.slice(0, steps.indexOf('each') < 0 ? steps.length : steps.indexOf('each')) };
  return (value) => (readPresent(value, list)?.length === 0 ? [] : read(value));
}

function totalOf(values: readonly JsonValue[] | undefined): readonly Side[] | undefined {
  const numbers: (number | bigint)[] = [];
  for (const value of values ?? []) {
    if (typeof value !== 'number' && typeof value !== 'bigint') return undefined;
    numbers.push(value);
  }
  const sum = values === undefined ? undefined : sumDecimals(numbers);
  return sum === undefined ? undefined : [sum];
}

function countOf(values: readonly JsonValue[] | undefined): readonly Side[] | undefined {
  return values === undefined ? undefined : [values.length];
}

function nameOf(subject: Subject, operator: Operator, operand: Operand): string {
  return `${subject.text} ${operator}${operand.text === '' ? '' : ` ${operand.text}`}`;
}

function told(
  source: ConditionSource,
  condition: string,
  verdict: 'failed' | 'unknown',
  value: Side,
  compared: JsonValue | undefined,
): Judgement {
  const types = [typeName(value), typeName(compared)];
  return { verdict, detail: { condition, types, ...becauseOf(source) } };
}

function becauseOf(source: ConditionSource): JsonObject {
  return source.because === undefined ? {} : { because: source.because };
}
