import type { JsonObject, JsonValue } from '../../receipts/json-value.ts';
import type { ConfigPath, ProblemLog } from './problem.ts';
import { GATEWAY_SCHEMA, isRawConfig, rawConfigErrors, type SchemaError, validatorOf } from './schema.ts';
import { nearestWord, suggest } from './suggest.ts';

/** One thing that is wrong with a configuration's shape. */
interface ShapeFault {
  readonly code: 'unknown_word' | 'missing_word' | 'wrong_type' | 'wrong_value';
  readonly path: ConfigPath;
  readonly message: string;
  readonly part: 'key' | 'value';
}

/**
 * Tells every place where `value` is not as gateway.schema.json has it, and returns it without those places, so that
 * what the rest says can be looked at too; undefined where too little would be left.
 */
export function checkShape(value: JsonValue, log: ProblemLog): JsonValue | undefined {
  let rest = value;
  // Taking one word out can uncover another fault (an entry that needed it); the rounds are bounded by that nesting.
  for (let round = 0; round < 5; round += 1) {
    if (isRawConfig(rest)) return rest;
    const faults = shapeFaults(rawConfigErrors(), rest, []);
    if (round === 0) for (const fault of faults) log.error(fault.code, fault.path, fault.message, fault.part);
    for (const fault of faults) {
      // Without a call or an agent, every name that means it would be told as a fault too.
      if (names(fault)) return undefined;
      const without = withoutMember(rest, fault.path);
      if (without === undefined) return undefined;
      rest = without;
    }
  }
  return undefined;
}

function names({ code, path }: ShapeFault): boolean {
  if (path[0] === 'agents') return path.length <= 2;
  return path[0] === 'routes' && path[2] === 'http' && code !== 'unknown_word';
}

function errorsOf(errors: readonly unknown[] | null | undefined): readonly SchemaError[] {
  return (errors ?? []) as readonly SchemaError[];
}

function shapeFaults(errors: readonly SchemaError[], root: JsonValue, base: ConfigPath): readonly ShapeFault[] {
  // A union tells every branch's errors and then its own. The branch that was meant is found by the value's type, and
  // only its errors are told.
  const unions = errors
    .filter((error) => error.keyword === 'anyOf')
    .filter(
      (error, _, all) => !all.some((outer) => outer !== error && isBelow(error.instancePath, outer.instancePath)),
    );
  const faults: ShapeFault[] = [];
  for (const error of errors) {
    if (error.keyword === 'propertyNames' || error.keyword === 'anyOf') continue;
    if (unions.some((union) => isAtOrBelow(error.instancePath, union.instancePath))) continue;
    faults.push(faultOf(error, [...base, ...pathOf(error.instancePath, root)]));
  }
  for (const union of dedupe(unions)) {
    faults.push(...unionFaults(union, [...base, ...pathOf(union.instancePath, root)]));
  }
  return faults;
}

function dedupe(unions: readonly SchemaError[]): readonly SchemaError[] {
  // The union that was met last at a place is the outermost there.
  return [...new Map(unions.map((union) => [union.instancePath, union])).values()];
}

function unionFaults(union: SchemaError, path: ConfigPath): readonly ShapeFault[] {
  const refs = (union.schema as readonly { $ref: string }[]).map((branch) => branch.$ref);
  const data = union.data as JsonValue;
  const meant = refs.filter((ref) => typesOf(ref).has(typeOf(data)));
  const [only, ...others] = meant;
  if (only === undefined) {
    const wanted = refs.map((ref) => lowerFirst(describe(ref))).join(' Or: ');
    return [{ code: 'wrong_type', path, message: `${shown(data)} does not fit: ${wanted}`, part: 'value' }];
  }
  if (others.length === 0) {
    const validate = validatorOf(only);
    validate(data);
    const faults = shapeFaults(errorsOf(validate.errors), data, path);
    if (faults.length > 0) return faults;
  }
  // Of several lists, the one whose items are of the same kind would be no clearer than all of them.
  const wanted = meant.map((ref) => lowerFirst(describe(ref))).join(' Or: ');
  return [{ code: 'wrong_value', path, message: `${shown(data)} does not fit: ${wanted}`, part: 'value' }];
}

function faultOf(error: SchemaError, path: ConfigPath): ShapeFault {
  const parent = error.parentSchema ?? {};
  switch (error.keyword) {
    case 'additionalProperties': {
      const word = String(error.params['additionalProperty']);
      const known = Object.keys((parent['properties'] as object | undefined) ?? {});
      const message = `unknown word \`${word}\`${suggest(word, known)}`;
      return { code: 'unknown_word', path: [...path, word], message, part: 'key' };
    }
    case 'required': {
      const word = String(error.params['missingProperty']);
      return { code: 'missing_word', path: [...path, word], message: `\`${word}\` is missing`, part: 'key' };
    }
    case 'type': {
      const types = [error.params['type']].flat().map(String);
      const description = parent['description'];
      if (typeof parent['pattern'] === 'string' && typeof description === 'string') {
        const message = `${shown(error.data as JsonValue)} does not fit: ${lowerFirst(description)}`;
        return { code: 'wrong_type', path, message, part: 'value' };
      }
      const message = `${shown(error.data as JsonValue)} must be ${types.map((type) => TYPE_NAMES[type] ?? type).join(' or ')}`;
      return { code: 'wrong_type', path, message, part: 'value' };
    }
    case 'enum': {
      const allowed = (error.schema as readonly JsonValue[]).map(String);
      const data = error.data as JsonValue;
      const near = typeof data === 'string' ? nearestWord(data, allowed) : undefined;
      const message = `${shown(data)} must be one of ${allowed.map((word) => `\`${word}\``).join(', ')}${near === undefined ? '' : `; did you mean \`${near}\`?`}`;
      return { code: 'wrong_value', path, message, part: 'value' };
    }
    default: {
      const named = (error as { propertyName?: string }).propertyName;
      const data = named ?? (error.data as JsonValue);
      const description = parent['description'];
      const why =
        error.keyword === 'pattern' && typeof description === 'string'
          ? lowerFirst(description)
          : `it ${RULES[error.keyword]?.(String(error.schema)) ?? error.message}`;
      const message = `${shown(data)} does not fit: ${why}`;
      return named === undefined
        ? { code: 'wrong_value', path, message, part: 'value' }
        : { code: 'wrong_value', path: [...path, named], message, part: 'key' };
    }
  }
}

/** What the schema's keywords ask for, in words. */
const RULES: Readonly<Record<string, (limit: string) => string>> = {
  minimum: (limit) => `must be at least ${limit}`,
  maximum: (limit) => `must be at most ${limit}`,
  exclusiveMinimum: (limit) => `must be over ${limit}`,
  minLength: () => 'must not be empty',
  maxLength: (limit) => `must have at most ${limit} characters`,
  minItems: () => 'must not be empty',
  minProperties: () => 'must not be empty',
  uniqueItems: () => 'must not hold anything twice',
};

const TYPE_NAMES: Readonly<Record<string, string>> = {
  object: 'a mapping',
  array: 'a list',
  string: 'a text',
  integer: 'a whole number',
  number: 'a number',
  boolean: '`true` or `false`',
  null: 'null',
};

function definition(ref: string): JsonObject {
  const defs = GATEWAY_SCHEMA['$defs'] as JsonObject;
  return defs[ref.replace('#/$defs/', '')] as JsonObject;
}

function describe(ref: string): string {
  return String(definition(ref)['description'] ?? ref);
}

function typesOf(ref: string): ReadonlySet<string> {
  const types = [definition(ref)['type'] ?? []].flat().map(String);
  return new Set(types.flatMap((type) => (type === 'integer' ? ['number'] : [type])));
}

function typeOf(value: JsonValue): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'array';
  return typeof value === 'bigint' ? 'number' : typeof value;
}

function shown(value: JsonValue): string {
  if (value === null) return 'an empty value';
  if (Array.isArray(value)) return 'the list';
  if (typeof value === 'object') return 'the mapping';
  const text = String(value);
  return `\`${text.length > 80 ? `${text.slice(0, 80)}…` : text}\``;
}

function lowerFirst(text: string): string {
  return text.charAt(0).toLowerCase() + text.slice(1).replace(/\.$/, '');
}

function isBelow(pointer: string, outer: string): boolean {
  return pointer.startsWith(`${outer}/`);
}

function isAtOrBelow(pointer: string, outer: string): boolean {
  return pointer === outer || isBelow(pointer, outer);
}

/** A JSON pointer as a path; a part is an index where it leads into a list. */
function pathOf(pointer: string, root: JsonValue): ConfigPath {
  const path: (string | number)[] = [];
  let node: JsonValue | undefined = root;
  for (const part of pointer.split('/').slice(1)) {
    const name = part.replaceAll('~1', '/').replaceAll('~0', '~');
    if (Array.isArray(node)) {
      path.push(Number(name));
      node = (node as readonly JsonValue[])[Number(name)];
    } else {
      path.push(name);
      node = node !== null && typeof node === 'object' ? (node as JsonObject)[name] : undefined;
    }
  }
  return path;
}

/** `value` without the member at `path`; itself where there is none; undefined where it is a list's item or the whole. */
function withoutMember(value: JsonValue, path: ConfigPath): JsonValue | undefined {
  const [part, ...rest] = path;
  if (part === undefined) return undefined;
  if (Array.isArray(value)) {
    const list = value as readonly JsonValue[];
    const item = list[Number(part)];
    if (item === undefined) return value;
    const without = withoutMember(item, rest);
    return without === undefined ? undefined : list.with(Number(part), without);
  }
  if (value === null || typeof value !== 'object') return value;
  const object = value as JsonObject;
  const member = Object.hasOwn(object, String(part)) ? object[String(part)] : undefined;
  if (member === undefined) return value;
  if (rest.length === 0) {
    return Object.fromEntries(Object.entries(object).filter(([key]) => key !== String(part)));
  }
  const without = withoutMember(member, rest);
  // An item of a list cannot go without moving the others: the word that holds the list goes.
  if (without === undefined) {
    return Object.fromEntries(Object.entries(object).filter(([key]) => key !== String(part)));
  }
  return { ...object, [String(part)]: without };
}
