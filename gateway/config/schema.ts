import { Ajv2020, type ErrorObject, type ValidateFunction } from 'ajv/dist/2020.js';
import type { JsonObject } from '../../receipts/json-value.ts';
import schema from './gateway.schema.json' with { type: 'json' };
import type { RawConfig } from './raw.ts';

/** The JSON Schema of gateway.yaml, as the package ships it. */
export const GATEWAY_SCHEMA: JsonObject = schema;

const ajv = new Ajv2020({ allErrors: true, verbose: true, strict: true, allowUnionTypes: true, ownProperties: true });
// Words of our own in the schema: they mark what the loader does with a value and judge nothing.
ajv.addVocabulary(['x-secret']);

/** Tells whether a value is a configuration as the schema has it; `.errors` says why not. */
export const isRawConfig: ValidateFunction<RawConfig> = ajv.compile<RawConfig>(schema);

/** The validator of one `$defs` entry, by its `#/$defs/name`. */
export function validatorOf(ref: string): ValidateFunction {
  const found = ajv.getSchema(`${schema.$id}${ref}`);
  if (found === undefined) throw new Error(`gateway.schema.json has no \`${ref}\``);
  return found;
}

export type SchemaError = ErrorObject<string, Record<string, unknown>, unknown>;
