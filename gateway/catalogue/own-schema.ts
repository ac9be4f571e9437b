import { Ajv } from 'ajv';
import { Ajv2019 } from 'ajv/dist/2019.js';
import { Ajv2020 } from 'ajv/dist/2020.js';
import type { JsonObject, JsonValue } from '../../receipts/json-value.ts';
import type { ConfigPath, ProblemLog } from '../config/problem.ts';
import { nearestWord } from '../config/suggest.ts';

/** Keywords whose value is one schema, a list of schemas, or schemas by name (JSON Schema 2020-12 and before). */
const ONE = [
  'additionalProperties',
  'unevaluatedProperties',
  'propertyNames',
  'items',
  'additionalItems',
  'unevaluatedItems',
  'contains',
  'not',
  'if',
  'then',
  'else',
  'contentSchema',
];
const LIST = ['allOf', 'anyOf', 'oneOf', 'prefixItems', 'items'];
const NAMED = ['properties', 'patternProperties', 'dependentSchemas', '$defs', 'definitions', 'dependencies'];
const PLAIN = [
  '$schema',
  '$id',
  '$ref',
  '$anchor',
  '$dynamicRef',
  '$dynamicAnchor',
  '$recursiveRef',
  '$recursiveAnchor',
  '$comment',
  '$vocabulary',
  'type',
  'enum',
  'const',
  'multipleOf',
  'maximum',
  'exclusiveMaximum',
  'minimum',
  'exclusiveMinimum',
  'maxLength',
  'minLength',
  'pattern',
  'maxItems',
  'minItems',
  'uniqueItems',
  'maxContains',
  'minContains',
  'maxProperties',
  'minProperties',
  'required',
  'dependentRequired',
  'format',
  'contentEncoding',
  'contentMediaType',
  'title',
  'description',
  'default',
  'deprecated',
  'readOnly',
  'writeOnly',
  'examples',
];
const KNOWN: ReadonlySet<string> = new Set([...ONE, ...LIST, ...NAMED, ...PLAIN]);

interface MetaValidator {
  validateSchema(schema: object): unknown;
  readonly errors?: readonly { readonly instancePath: string; readonly message?: string }[] | null;
}

// Made at first use: most configurations have one dialect, an OpenAPI route's none.
const validators = new Map<string, MetaValidator>();

/**
 * Tells what is wrong with a schema that stands in the configuration itself: against the metaschema of its dialect, and
 * words that no dialect has. A part of such a schema that judges nothing is a slip of its author, not a server's habit.
 */
export function checkOwnSchema(schema: JsonObject, path: ConfigPath, log: ProblemLog): void {
  const validator = validatorFor(String(schema['$schema'] ?? ''));
  if (validator.validateSchema(JSON.parse(JSON.stringify(schema, asDouble))) !== true) {
    const told = new Set<string>();
    for (const { instancePath, message } of validator.errors ?? []) {
      if (told.has(instancePath)) continue;
      told.add(instancePath);
      const at = instancePath
        .split('/')
        .slice(1)
        .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'));
      log.error(
        'bad_schema',
        [...path, ...at],
        `the schema is wrong${instancePath === '' ? '' : ` at \`${instancePath}\``}: it ${message ?? 'does not fit'}`,
      );
    }
  }
  checkWords(schema, schema, path, log);
}

function checkWords(schema: JsonValue | undefined, root: JsonObject, path: ConfigPath, log: ProblemLog): void {
  if (schema === null || typeof schema !== 'object' || Array.isArray(schema)) return;
  for (const [word, value] of Object.entries(schema as JsonObject)) {
    const at = [...path, word];
    if (!KNOWN.has(word) && !word.startsWith('x-')) {
      const near = nearestWord(word, KNOWN);
      log.error(
        'bad_schema',
        at,
        `JSON Schema has no word \`${word}\`${near === undefined ? '' : `; did you mean \`${near}\`?`}`,
        'key',
      );
    }
    if (word === '$ref' && typeof value === 'string' && !leadsSomewhere(value, root)) {
      log.error(
        'bad_schema',
        at,
        `\`${value}\` leads to no schema here; a reference begins with \`#\`, and none is ever fetched`,
      );
    }
    if (ONE.includes(word) && !Array.isArray(value)) checkWords(value, root, at, log);
    else if (LIST.includes(word) && Array.isArray(value)) {
      for (const [index, item] of (value as readonly JsonValue[]).entries())
        checkWords(item, root, [...at, index], log);
    } else if (NAMED.includes(word) && value !== null && typeof value === 'object' && !Array.isArray(value)) {
      for (const [name, member] of Object.entries(value)) checkWords(member, root, [...at, name], log);
    }
  }
}

/** Whether a reference leads to a place in the schema; an anchor or identifier of its own is left to the compiler. */
function leadsSomewhere(reference: string, root: JsonObject): boolean {
  if (!reference.startsWith('#'))
    return JSON.stringify(root, asDouble).includes(`"$id":${JSON.stringify(reference.split('#')[0])}`);
  if (reference !== '#' && !reference.startsWith('#/')) return true;
  let node: JsonValue | undefined = root;
  for (const part of reference.split('/').slice(1)) {
    if (node === null || node === undefined || typeof node !== 'object') return false;
    const name = decoded(part).replaceAll('~1', '/').replaceAll('~0', '~');
    const object: Readonly<Record<string, JsonValue>> = Array.isArray(node)
      ? Object.fromEntries(node.entries())
      : (node as JsonObject);
    node = Object.hasOwn(object, name) ? object[name] : undefined;
  }
  return node !== undefined;
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

function validatorFor(dialect: string): MetaValidator {
  const name = dialect.includes('draft-07') ? 'draft-07' : dialect.includes('2019-09') ? '2019-09' : '2020-12';
  let validator = validators.get(name);
  if (validator === undefined) {
    const options = { allErrors: true, strict: false, logger: false } as const;
    validator =
      name === 'draft-07' ? new Ajv(options) : name === '2019-09' ? new Ajv2019(options) : new Ajv2020(options);
    validators.set(name, validator);
  }
  return validator;
}

function asDouble(_key: string, value: unknown): unknown {
  return typeof value === 'bigint' ? Number(value) : value;
}
