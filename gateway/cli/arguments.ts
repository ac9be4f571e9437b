import { readFileSync } from 'node:fs';
import { parseJson } from '../../receipts/json.ts';
import { JsonFault } from '../../receipts/json-fault.ts';
import { isArray, type JsonObject, type JsonValue } from '../../receipts/json-value.ts';
import { systemCode } from '../audit/fault.ts';
import { CliFault } from './command.ts';

/** A JSON object that an option gives, read as strictly as a call's. Throws `CliFault`. */
export function parseObject(option: string, text: string): JsonObject {
  let value: JsonValue;
  try {
    value = parseJson(text);
  } catch (error) {
    throw jsonFault(`\`${option}\``, error);
  }
  if (typeof value !== 'object' || value === null || isArray(value)) {
    throw new CliFault(2, `\`${option}\` must be a JSON object, such as '{"order_id":"4411"}'`);
  }
  return value;
}

/** The JSON value in a file, `-` for standard input. Throws `CliFault`. */
export function readJsonFile(file: string): JsonValue {
  let bytes: Uint8Array;
  try {
    bytes = readFileSync(file === '-' ? 0 : file);
  } catch (error) {
    throw new CliFault(2, `cannot read \`${file}\`: ${systemCode(error)}`);
  }
  try {
    return parseJson(bytes);
  } catch (error) {
    throw jsonFault(`\`${file}\``, error);
  }
}

function jsonFault(what: string, error: unknown): unknown {
  if (!(error instanceof JsonFault)) return error;
  const at = error.pointer === '' ? '' : ` at \`${error.pointer}\``;
  return new CliFault(2, `${what} cannot be read${at}: ${error.message}`);
}
