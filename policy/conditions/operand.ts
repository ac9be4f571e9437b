import { isObject, type JsonValue } from '../../receipts/json-value.ts';
import { ConditionFault, type FieldSource, type Lookups, type OperandSource } from './condition.ts';
import { type Path, parsePath, readOne, readPath } from './path.ts';
import { isSame } from './values.ts';

/** What a condition compares with, ready to be read. */
export interface Operand {
  /** The value now; `undefined` where nobody could read it. `row` is the record that the condition stands on. */
  readonly read: (row: JsonValue, lookups: Lookups) => JsonValue | undefined;
  /** How an answer names it; empty for a value of the configuration, which is never told. */
  readonly text: string;
}

/** Resolves `tool.field` as written; `undefined` where the loader found no such field. */
export type ResolveField = (from: string) => FieldSource | undefined;

/** Compiles what stands behind an operator. Throws `ConditionFault` for a reference that means nothing. */
export function compileOperand(source: OperandSource, resolve: ResolveField): Operand {
  if (!isObject(source as JsonValue)) {
    const value = source as JsonValue;
    return { read: () => value, text: '' };
  }
  const { from, same, from_row: fromRow } = source as { from?: string; same?: string; from_row?: string };
  if (fromRow !== undefined) {
    const path = parsePath(fromRow);
    return { read: (row) => present(readValue(row, path)), text: `{from_row: ${fromRow}}` };
  }
  if (from === undefined) throw new ConditionFault('what is read when the call comes is `{from: tool.field}`');
  const field = resolve(from);
  if (field === undefined) throw new ConditionFault(`\`${from}\` is no field of a tool`);
  const path = parsePath(field.field);
  const tie = same === undefined ? undefined : parsePath(same);
  return {
    read: (_row, lookups) => {
      const result = newestAnswer(field.tool, tie, lookups);
      return result === undefined ? undefined : present(readValue(result, path));
    },
    text: `{from: ${from}${same === undefined ? '' : `, same: ${same}`}}`,
  };
}

/** The newest answer decides; where its value could not be read an older one is not taken instead. */
function newestAnswer(tool: string, tie: Path | undefined, lookups: Lookups): JsonValue | undefined {
  const own = tie === undefined ? undefined : readOne(lookups.arguments, tie);
  if (tie !== undefined && own === undefined) return undefined;
  for (const answer of lookups.answers) {
    if (answer.tool !== tool) continue;
    if (tie === undefined) return answer.result;
    const about = readOne(answer.arguments, tie) ?? readOne(answer.result, tie);
    if (isSame(about, own) === true) return answer.result;
  }
  return undefined;
}

function readValue(value: JsonValue, path: Path): JsonValue | undefined {
  const found = readPath(value, path);
  return path.many ? found : found?.[0];
}

/** A null that a tool returned says that there is no value; `is: null` asks for one in the configuration's own words. */
function present(value: JsonValue | undefined): JsonValue | undefined {
  return value === null ? undefined : value;
}
