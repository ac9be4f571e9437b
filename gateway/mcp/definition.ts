import { createHash } from 'node:crypto';
import { canonicalize } from '../../receipts/canonical.ts';
import { isObject, type JsonObject, type JsonValue } from '../../receipts/json-value.ts';
import { isRecordedRead } from './recorded-reads.ts';

/** A tool as a server lists it, as far as its shape was looked at. */
export interface Definition {
  readonly name: string;
  readonly description?: string;
  readonly input: JsonObject;
  readonly output?: JsonObject;
  /** All of it, as it came. */
  readonly listed: JsonObject;
  /** `sha256:<hex>` of what a pin holds. */
  readonly digest: string;
}

const LONGEST_NAME = 128;

/** Reads one entry of `tools/list`; in place of one that cannot be a tool, why. */
export function parseDefinition(value: JsonValue): Definition | string {
  if (!isObject(value)) return 'an entry is no object';
  const { name, description, inputSchema, outputSchema } = value;
  if (typeof name !== 'string' || name === '') return 'an entry has no name';
  if (name.length > LONGEST_NAME || !isPlainName(name))
    return `the name \`${shown(name)}\` is too long or holds characters that no name has`;
  if (isRecordedRead(name)) return `the name \`${name}\` stands for a method of the protocol`;
  if (!isObject(inputSchema)) return `\`${shown(name)}\` has no \`inputSchema\` that is an object`;
  return {
    name,
    ...(typeof description === 'string' ? { description } : {}),
    input: inputSchema,
    ...(isObject(outputSchema) ? { output: outputSchema } : {}),
    listed: value,
    digest: definitionDigest(value),
  };
}

/** What a pin holds of a definition: all that a model is shown of the tool or its arguments are judged by. */
export function pinnedPart(listed: JsonObject): JsonObject {
  const { name, title, description, inputSchema, outputSchema, annotations } = listed;
  const part = { name, title, description, inputSchema, outputSchema, annotations };
  return Object.fromEntries(
    Object.entries(part).flatMap(([key, value]) => (value === undefined ? [] : [[key, value]])),
  );
}

function definitionDigest(listed: JsonObject): string {
  return `sha256:${createHash('sha256')
    .update(canonicalize(pinnedPart(listed)))
    .digest('hex')}`;
}

/** Letters, digits and the marks that names have; no spaces, controls or anything that looks like something else. */
function isPlainName(name: string): boolean {
  return /^[A-Za-z0-9_./:-]+$/.test(name);
}

function shown(text: string): string {
  return text.length > 64 ? `${text.slice(0, 64)}…` : text;
}
