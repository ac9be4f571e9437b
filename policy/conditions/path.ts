import { isArray, isObject, type JsonValue } from '../../receipts/json-value.ts';
import { ConditionFault } from './condition.ts';

/** A step of a path: a member's name, or each item of a list. */
type Step = { readonly member: string } | 'each';

/** A path into a JSON value: `amount`, `card.number`, `jobs[].salary`, `[].id` into a value that is a list itself. */
export interface Path {
  readonly text: string;
  readonly steps: readonly Step[];
  /** Whether it leads to each of a list instead of to one value. */
  readonly many: boolean;
}

/** Reads a dotted path. Throws `ConditionFault` where it is none. */
export function parsePath(text: string): Path {
  const steps: Step[] = [];
  for (const [index, part] of text.split('.').entries()) {
    const list = part.indexOf('[');
    const name = list < 0 ? part : part.slice(0, list);
    const suffix = list < 0 ? '' : part.slice(list);
    // Only the first part may be nameless: `[].id` is a path into a list.
    if ((name === '' && (index > 0 || suffix === '')) || name.includes(']') || !isListSuffix(suffix)) {
      throw new ConditionFault(`\`${text}\` is no path; write names with dots, and \`[]\` behind the name of a list`);
    }
    if (name !== '') steps.push({ member: name });
    for (let at = 0; at < suffix.length; at += 2) steps.push('each');
  }
  return { text, steps, many: steps.includes('each') };
}

/** The path with its last list step there, as a filter's `each` means it. */
export function withEach(path: Path): Path {
  return path.steps.at(-1) === 'each' ? path : { text: path.text, steps: [...path.steps, 'each'], many: true };
}

/**
 * The values at a path: one, or those of every item where it leads through lists. `undefined` where a member is missing,
 * or something on the way is not what the path says: then nobody could read all that is asked for.
 */
export function readPath(value: JsonValue, path: Path): readonly JsonValue[] | undefined {
  const found: JsonValue[] = [];
  return collect(value, path.steps, 0, found) ? found : undefined;
}

/**
 * The values at a path that are there: what is missing or null is left out. `undefined` where something on the way is not
 * what the path says.
 */
export function readPresent(value: JsonValue, path: Path): readonly JsonValue[] | undefined {
  const found: JsonValue[] = [];
  return collectPresent(value, path.steps, 0, found) ? found : undefined;
}

/**
 * What is counted or added up at a path: the items of the list there, or the values of each item of a list on the way
 * (`prices`, `prices[]`, `items[].price`, `orders[].prices`). `undefined` where that cannot be read.
 */
export function readItems(value: JsonValue, path: Path): readonly JsonValue[] | undefined {
  const found = readPath(value, path);
  if (found === undefined || path.steps.at(-1) === 'each') return found;
  if (found.every(isArray)) return found.flat();
  return path.many && !found.some(isArray) ? found : undefined;
}

/** The one value at a path without lists; `undefined` where there is none. */
export function readOne(value: JsonValue, path: Path): JsonValue | undefined {
  return path.many ? undefined : readPath(value, path)?.[0];
}

function collect(value: JsonValue, steps: readonly Step[], at: number, found: JsonValue[]): boolean {
  const step = steps[at];
  if (step === undefined) {
    found.push(value);
    return true;
  }
  if (step === 'each') return isArray(value) && value.every((item) => collect(item, steps, at + 1, found));
  if (!isObject(value) || !Object.hasOwn(value, step.member)) return false;
  const member = value[step.member];
  return member !== undefined && collect(member, steps, at + 1, found);
}

function collectPresent(value: JsonValue, steps: readonly Step[], at: number, found: JsonValue[]): boolean {
  if (value === null) return true;
  const step = steps[at];
  if (step === undefined) {
    found.push(value);
    return true;
  }
  if (step === 'each') return isArray(value) && value.every((item) => collectPresent(item, steps, at + 1, found));
  if (!isObject(value)) return false;
  const member = Object.hasOwn(value, step.member) ? value[step.member] : undefined;
  return member === undefined || collectPresent(member, steps, at + 1, found);
}

function isListSuffix(suffix: string): boolean {
  for (let at = 0; at < suffix.length; at += 2) if (suffix[at] !== '[' || suffix[at + 1] !== ']') return false;
  return true;
}
