import { Ajv2020, type ErrorObject, type ValidateFunction } from 'ajv/dist/2020.js';
import type { JsonObject, JsonValue } from '../../receipts/json-value.ts';
import schema from './gateway.schema.json' with { type: 'json' };
import type { RawConfig } from './raw.ts';

/** The JSON Schema of gateway.yaml, as the package ships it. */
export const GATEWAY_SCHEMA: JsonObject = schema;

const ajv = new Ajv2020({
  allErrors: true,
  verbose: true,
  strict: true,
  allowUnionTypes: true,
  ownProperties: true,
  // Every start waits for this schema to be compiled: a test holds it against its dialect, and its code runs once.
  validateSchema: false,
  inlineRefs: false,
  code: { optimize: false },
});
// Words of our own in the schema: they mark what the loader does with a value and judge nothing.
ajv.addVocabulary(['x-secret']);

const validateRaw: ValidateFunction<RawConfig> = ajv.compile<RawConfig>(schema);

/** Tells whether a value is a configuration as the schema has it; `rawConfigErrors` says why the last one was not. */
export function isRawConfig(value: JsonValue): value is JsonValue & RawConfig {
  return validateRaw(withPlainNumbers(value));
}

/** Why the value that `isRawConfig` was asked about last is none. */
export function rawConfigErrors(): readonly SchemaError[] {
  return (validateRaw.errors ?? []) as readonly SchemaError[];
}

/** The validator knows no integers beyond 2^53; for the shape of a value the nearest number serves as well. */
export function withPlainNumbers(value: JsonValue): JsonValue {
  if (typeof value === 'bigint') return Number(value);
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map((item: JsonValue) => withPlainNumbers(item));
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, withPlainNumbers(member)]));
}

/** The validator of one `$defs` entry, by its `#/$defs/name`. */
export function validatorOf(ref: string): ValidateFunction {
  const found = ajv.getSchema(`${schema.$id}${ref}`);
  if (found === undefined) throw new Error(`gateway.schema.json has no \`${ref}\``);
  return found;
}

export type SchemaError = ErrorObject<string, Record<string, unknown>, unknown>;
